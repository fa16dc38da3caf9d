/** The components of openapi.yaml and asyncapi.yaml, and those that nothing uses. */
import type { Contract } from './contract.ts'
import { locate } from './references.ts'
import { type Finding, isObject, type Located, type Source, valueAt } from './source.ts'

/** Kinds of components that need no `$ref` to be used. Security schemes are used by name. Messages
 *  are the events themselves. */
const USED_WITHOUT_REFERENCE = ['securitySchemes', 'messages']

/** The number of steps in the path of a component: `components`, the kind and the name. */
export const COMPONENT_PATH_LENGTH = 3

/** Components that nothing in the contract uses, for example those of a removed operation. */
export function findUnusedComponents({ sources }: Contract): Finding[] {
  const used = new Set<unknown>()
  const visit = (source: Source, node: unknown): void => {
    if (!isObject(node)) return
    if (typeof node.$ref === 'string') markUsed(locate(sources, source, node.$ref))
    for (const value of Object.values(node)) visit(source, value)
  }
  /** A reference into a component uses the whole component. */
  const markUsed = ({ source, path }: Located): void => {
    const component = valueAt(source.root, path.slice(0, COMPONENT_PATH_LENGTH))
    if (used.has(component)) return
    used.add(component)
    visit(source, component)
  }
  const components = Object.values(sources).flatMap(listComponents)
  for (const source of Object.values(sources))
    for (const [key, value] of Object.entries(source.root as object))
      if (key !== 'components') visit(source, value)
  for (const component of components)
    if (USED_WITHOUT_REFERENCE.includes(String(component.path[1]))) markUsed(component)
  return components
    .filter(({ value }) => !used.has(value))
    .map(({ source, path }) => ({
      source,
      path,
      problem: `nothing refers to ${path.join('.')}: remove it, or refer to it`,
    }))
}

export function listComponents(source: Source): Located[] {
  const kinds = (valueAt(source.root, ['components']) ?? {}) as Record<
    string,
    Record<string, unknown>
  >
  return Object.entries(kinds).flatMap(([kind, members]) =>
    Object.entries(members).map(([name, value]) => ({
      source,
      path: ['components', kind, name],
      value,
    })),
  )
}
