/** Finds the operation of a request. */
import type { Operation } from '../model/operations.ts'

export interface Route {
  /** By method, in lower case. */
  operations: Map<string, Operation>
  /** Methods for the header `Allow`. */
  allow: string
}

export interface Match {
  route: Route
  /** Decoded. */
  parameters: Record<string, string>
}

interface Template extends Route {
  path: string
  pattern: RegExp
  names: string[]
}

/** Returns the match of a path below `basePath`, or undefined. The function throws URIError for a broken
 *  percent-encoding. */
export function newRouter(
  operations: readonly Operation[],
  basePath: string,
): (path: string) => Match | undefined {
  const byPath = new Map<string, Template>()
  for (const operation of operations) {
    const template = byPath.get(operation.path) ?? newTemplate(operation.path)
    template.operations.set(operation.method, operation)
    byPath.set(operation.path, template)
  }
  for (const template of byPath.values()) template.allow = listMethods(template)
  // The template with more fixed text takes precedence.
  const templates = [...byPath.values()]
    .filter(({ names }) => names.length > 0)
    .sort((a, b) => fixedText(b.path).length - fixedText(a.path).length)
  return (requested) => {
    if (!requested.startsWith(basePath)) return undefined
    const path = requested.slice(basePath.length)
    const fixed = byPath.get(path)
    if (fixed && fixed.names.length === 0) return { route: fixed, parameters: {} }
    for (const template of templates) {
      const found = template.pattern.exec(path)
      if (!found) continue
      const values = template.names.map((name, index): [string, string] => [
        name,
        decodeURIComponent(found[index + 1] ?? ''),
      ])
      return { route: template, parameters: Object.fromEntries(values) }
    }
    return undefined
  }
}

function fixedText(path: string): string {
  return path.replace(/\{.*?\}/g, '')
}

function newTemplate(path: string): Template {
  const names = [...path.matchAll(/\{(.*?)\}/g)].map(([, name]) => name ?? '')
  const source = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{.*?\}/g, '([^/]+?)')
  return { path, names, pattern: new RegExp(`^${source}$`), operations: new Map(), allow: '' }
}

function listMethods({ operations }: Route): string {
  const methods = [...operations.keys()].map((method) => method.toUpperCase())
  if (operations.has('get') && !operations.has('head')) methods.push('HEAD')
  if (!operations.has('options')) methods.push('OPTIONS')
  return methods.join(', ')
}
