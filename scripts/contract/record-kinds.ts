/** The kinds of records in the paths of a contract, and the operations on each kind. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { shapeOf } from '../model/paths.ts'
import { requestSchema } from '../words/records.ts'

export interface Kind {
  /** The path parameter with the ID of a record: `job` in `/jobs/{job}`. */
  name: string
  /** The path template of the list, for example `/jobs`, or `/tasks/{task}/jobs` if nested. */
  collection: string
  list: Operation | undefined
  create: Operation | undefined
  /** Another operation that returns a new record of the kind. */
  cause: Operation | undefined
  get: Operation | undefined
  update: Operation | undefined
  remove: Operation | undefined
}

/** A kind at the top level whose records can be created, read, updated and deleted. */
export interface CrudKind extends Kind {
  create: Operation
  get: Operation
  update: Operation
  remove: Operation
}

export function listKinds({ operations }: Contract): Kind[] {
  const find = (method: string, shape: string) =>
    operations.find((one) => one.method === method && shapeOf(one.path) === shape)
  const kinds = new Map<string, Kind>()
  for (const { name, collection } of operations.flatMap(({ path }) => listCollections(path))) {
    const shape = shapeOf(collection)
    if (kinds.has(shape)) continue
    const get = find('get', `${shape}/{}`)
    kinds.set(shape, {
      name,
      collection,
      list: find('get', shape),
      create: find('post', shape),
      cause: operations.find((one) => one.success.status === 201 && isSameRecord(one, get)),
      get,
      update: find('patch', `${shape}/{}`),
      remove: find('delete', `${shape}/{}`),
    })
  }
  return [...kinds.values()]
}

/** Whether both responses have the same schema. */
function isSameRecord(one: Operation, other: Operation | undefined): boolean {
  const [mine, yours] = [one, other].map(
    (operation) => operation?.success.content['application/json']?.schema.value.$ref,
  )
  return mine !== undefined && mine === yours
}

export function listCrudKinds(contract: Contract): CrudKind[] {
  return listKinds(contract).filter(
    (kind): kind is CrudKind =>
      depthOf(kind) === 0 &&
      [kind.create, kind.get, kind.update, kind.remove].every((one) => one !== undefined),
  )
}

/** The parameters of the path, left to right. The `collection` of each is the path before it. */
export function listCollections(path: string): { name: string; collection: string }[] {
  return [...path.matchAll(/\/\{(.+?)\}/g)].map(({ index, 1: name = '' }) => ({
    name,
    collection: path.slice(0, index),
  }))
}

/** The number of parameters in the path of the collection: 0 at the top level. */
export function depthOf({ collection }: Kind): number {
  return listCollections(collection).length
}

/** The kind of the records at the path. Throws if there is none. */
export function kindAt(kinds: Kind[], collection: string): Kind {
  const found = kinds.find((kind) => shapeOf(kind.collection) === shapeOf(collection))
  if (found === undefined) throw new Error(`no operation has records of ${collection}`)
  return found
}

export function operationOf({ operations }: Contract, id: string): Operation {
  const found = operations.find((one) => one.id === id)
  if (found === undefined) throw new Error(`the contract has no operation ${id}`)
  return found
}

export function findOperation(
  { operations }: Contract,
  method: string,
  path: string | undefined,
): Operation | undefined {
  return operations.find((one) => one.method === method && one.path === path)
}

/** The operation on one record of the collection. */
export function findItemOperation(
  { operations }: Contract,
  method: string,
  collection: string,
): Operation | undefined {
  return operations.find((one) => one.method === method && collectionOf(one.path) === collection)
}

/** `/jobs` for `/jobs/{job}`. Undefined if the path does not end with a parameter. */
export function collectionOf(path: string): string | undefined {
  return /^(.*)\/\{[^}]+\}$/.exec(path)?.[1]
}

/** The ID of the record at the path. */
export function idIn(path: string): string {
  return path.split('/').at(-1) ?? ''
}

/** Whether the path has the form of the template. A query must be removed first. */
export function matchesTemplate(template: string, path: string): boolean {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}$`).test(path)
}

/** The kind of record that each field of the request bodies refers to, by the name of the field:
 *  `x-refers-to` names the kind. */
export function listReferredKinds(contract: Contract, kinds: Kind[]): Map<string, Kind> {
  const fields = contract.operations.flatMap((operation) =>
    Object.entries(requestSchema(contract, operation).properties ?? {}),
  )
  const referring = fields.flatMap(([field, schema]): [string, Kind][] => {
    const kind = kinds.find(({ name }) => name === schema['x-refers-to'])
    return kind === undefined ? [] : [[field, kind]]
  })
  return new Map(referring)
}
