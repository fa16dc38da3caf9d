/** Path templates, and the faults of the paths of an OpenAPI document. */
import { METHODS } from './operations.ts'
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

/** The path of an Operation Object in its file. */
export type OperationPath = [paths: 'paths', template: string, method: string]

export function listOperationPaths({ root }: Source): OperationPath[] {
  return Object.entries(valueAt(root, ['paths']) ?? {}).flatMap(([template, item]) =>
    METHODS.filter((method) => isObject(item) && isObject(item[method])).map(
      (method): OperationPath => ['paths', template, method],
    ),
  )
}

export function findPathProblems(openapi: Source): Finding[] {
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
  return [...found, ...findEqualPaths(openapi)]
}

function findEqualPaths(openapi: Source): Finding[] {
  const templates = new Map<string, string>()
  return listOperationPaths(openapi).flatMap((path) => {
    const [, template, method] = path
    const key = `${method} ${shapeOf(template)}`
    const earlier = templates.get(key)
    templates.set(key, template)
    const problem = `requests for this operation are also requests for ${earlier}: join the two paths`
    return earlier === undefined ? [] : [{ source: openapi, path, problem }]
  })
}

/** Paths whose Path Item Object is a reference. `listOperationPaths` finds no operation in them. */
export function findPathItemReferences(openapi: Source): Finding[] {
  return Object.entries(valueAt(openapi.root, ['paths']) as object)
    .filter(([, item]) => isObject(item) && item.$ref !== undefined)
    .map(([path]) => ({
      source: openapi,
      path: ['paths', path, '$ref'],
      problem: `the path ${path} is a reference: write its operations here`,
    }))
}
