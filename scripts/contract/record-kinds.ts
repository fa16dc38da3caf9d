/** The kinds of records that the paths of a contract name. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { shapeOf } from '../model/paths.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'

/** A kind of record. Its name comes from paths and references: `job` for `{job}` and `job_id`. */
export interface Kind {
  name: string
  /** The path of the records, which has the parameters of the records above them. */
  collection: string
  list: Operation | undefined
  create: Operation | undefined
  body: Schema
  /** Values that it needs before another record can refer to it: `x-refers-with` of the
   *  reference. */
  referred: Record<string, unknown>
  canDelete: boolean
}

/** The parameters of the path, each with the part before it: the path of its records. */
export function listCollections(path: string): { name: string; collection: string }[] {
  return [...path.matchAll(/\/\{(.+?)\}/g)].map(({ index, 1: name = '' }) => ({
    name,
    collection: path.slice(0, index),
  }))
}

export function depthOf({ collection }: Kind): number {
  return listCollections(collection).length
}

export function kindOf(kinds: Kind[], collection: string): Kind {
  const found = kinds.find((kind) => shapeOf(kind.collection) === shapeOf(collection))
  if (found === undefined) throw new Error(`no operation has records of ${collection}`)
  return found
}

/** Whether the path is that of one record of the collection. */
export function isBelow(path: string, collection: string): boolean {
  const [parts, wanted] = [path.split('/'), collection.split('/')]
  return (
    parts.length === wanted.length + 1 &&
    wanted.every((part, index) => part.startsWith('{') || part === parts[index])
  )
}

export function listKinds({ operations, sources }: Contract): Kind[] {
  const kinds = new Map<string, Kind>()
  for (const { path } of operations)
    for (const { name, collection } of listCollections(path)) {
      const shape = shapeOf(collection)
      if (kinds.has(shape)) continue
      const find = (method: string, ofRecord = false) =>
        operations.find(
          (other) =>
            other.method === method && shapeOf(other.path) === (ofRecord ? `${shape}/{}` : shape),
        )
      const create = find('post')
      const body = create?.body ? inlineReferences(sources, create.body.schema) : {}
      const canDelete = find('delete', true) !== undefined
      const list = find('get')
      kinds.set(shape, { name, collection, list, create, body, referred: {}, canDelete })
    }
  return [...kinds.values()]
}

/** The kinds of other records that fields of bodies refer to, by field: `x-refers-to`. A contract
 *  without this word names them: `job_id` refers to a `job`. */
export function listReferences(
  { operations, sources }: Contract,
  kinds: Kind[],
): Map<string, Kind> {
  const fields = operations.flatMap(({ body }) =>
    Object.entries(body ? (inlineReferences(sources, body.schema).properties ?? {}) : {}),
  )
  const withKinds = (nameOf: (field: string, schema: Schema) => unknown): [string, Kind][] =>
    fields.flatMap(([field, schema]) => {
      const kind = kinds.find(({ name }) => name === nameOf(field, schema))
      return kind === undefined ? [] : [[field, kind]]
    })
  const worded = withKinds((_, schema) => schema['x-refers-to'])
  return new Map(worded.length > 0 ? worded : withKinds((field) => /^(.+)_id$/.exec(field)?.[1]))
}
