/** Path templates, and the faults of the paths of an OpenAPI document. */
import type { Contract } from './contract.ts'
import type { Operation } from './operations.ts'
import { type Finding, isObject, type Source, valueAt } from './source.ts'

/** The path without the names of its parameters, for example `/pets/{}`. */
export function shapeOf(path: string): string {
  return path.replace(/\{.*?\}/g, '{}')
}

/** The names of the parameters in the path, from left to right. */
export function parameterNames(path: string): string[] {
  return [...path.matchAll(/\{(.*?)\}/g)].map(([, name = '']) => name)
}

/** The type of the record that a parameter or field identifies, as events name it: `export` for
 *  `export_id`. */
export function recordTypeOf(idParameter: string): string {
  return idParameter.replace(/_id$/, '')
}

export function findPathProblems({ openapi, operations }: Contract): Finding[] {
  const found = Object.keys(valueAt(openapi.root, ['paths']) as object).flatMap((path) => {
    const names = parameterNames(path)
    const refuse = (problem: string) => [{ source: openapi, path: ['paths', path], problem }]
    if (path.startsWith('x-')) return []
    if (!path.startsWith('/')) return refuse(`the path ${path} must begin with /: correct it`)
    if (/[?#]/.test(path))
      return refuse('a path cannot have a query or fragment: declare query parameters instead')
    if (new Set(names).size < names.length)
      return refuse(`${path} has a parameter twice: give each its own name`)
    return []
  })
  return [...found, ...findEqualPaths(operations)]
}

function findEqualPaths(operations: Operation[]): Finding[] {
  const templates = new Map<string, string>()
  return operations.flatMap(({ method, path, place }) => {
    const key = `${method} ${shapeOf(path)}`
    const earlier = templates.get(key)
    templates.set(key, path)
    const problem = `requests for this operation are also requests for ${earlier}: join the two paths`
    return earlier === undefined ? [] : [{ ...place, problem }]
  })
}

/** Paths whose Path Item Object is a reference. `readOperations` finds no operation in them. */
export function findPathItemReferences(openapi: Source): Finding[] {
  return Object.entries(valueAt(openapi.root, ['paths']) as object)
    .filter(([, item]) => isObject(item) && item.$ref !== undefined)
    .map(([path]) => ({
      source: openapi,
      path: ['paths', path, '$ref'],
      problem: `the path ${path} is a reference: write its operations here`,
    }))
}
