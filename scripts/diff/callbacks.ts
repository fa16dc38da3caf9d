import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { dereference } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { isObject, type Located, type Place, valueAt } from '../model/source.ts'
import { type Change, compareSchemaParts, type Subject, toChange } from './change.ts'

/** Compares the requests that the service sends for an operation. The rules of responses apply to
 *  the bodies of these requests, because the service writes them. Compares only the first media
 *  type of each body. */
export function compareCallbacks(subject: Subject, old: Operation, now: Operation): Change[] {
  const [before, after] = [listRequests(subject.base, old), listRequests(subject.revision, now)]
  const removed = [...before].filter(([name]) => !after.has(name))
  return [
    ...removed.map(([name, place]) => {
      const part = { name: `the callback ${name}`, place, isGone: true }
      return toChange(subject, part, 'api-callback-removed', 'is gone')
    }),
    ...[...after].flatMap(([name, place]) => {
      const part = { name: `the callback ${name}`, place }
      const oldPlace = before.get(name)
      if (!oldPlace) return [toChange(subject, part, 'api-callback-added', 'is new')]
      const [oldSchema] = listSchemas(subject.base, oldPlace)
      const [newSchema] = listSchemas(subject.revision, place)
      return oldSchema && newSchema
        ? compareSchemaParts(subject, 'callbackBody', { ...part, old: oldSchema, now: newSchema })
        : []
    }),
  ]
}

/** The requests by callback name, method and URL. A key is for example
 *  `paid: POST {$request.body#/url}`. */
function listRequests(contract: Contract, { place }: Operation): Map<string, Place> {
  const requests = listChildren(contract, place, 'callbacks').flatMap(([name, callback]) =>
    listChildren(contract, callback).flatMap(([url, item]) =>
      listChildren(contract, item).map(([method, request]): [string, Place] => [
        `${name}: ${method.toUpperCase()} ${url}`,
        request,
      ]),
    ),
  )
  return new Map(requests)
}

/** The schemas of the request's body, one for each media type. */
function listSchemas(contract: Contract, request: Place): Located<Schema>[] {
  return listChildren(contract, request, 'requestBody')
    .filter(([key]) => key === 'content')
    .flatMap(([, content]) => listChildren(contract, content))
    .flatMap(([, mediaType]) => listChildren(contract, mediaType))
    .filter(([key]) => key === 'schema')
    .map(([, schema]) => schema as Located<Schema>)
}

/** The mappings directly below the place, or below its `key`. Follows references. */
function listChildren(
  { sources }: Contract,
  { source, path }: Place,
  key?: string,
): [string, Located][] {
  const here = key === undefined ? path : [...path, key]
  const target = dereference(sources, { source, path: here, value: valueAt(source.root, here) })
  const entries = isObject(target.value) ? Object.entries(target.value) : []
  return entries
    .filter(([, value]) => isObject(value) && !Array.isArray(value))
    .map(([name, value]) => [name, { source: target.source, path: [...target.path, name], value }])
}
