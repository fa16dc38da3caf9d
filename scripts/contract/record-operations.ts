import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'

/** The operations on one kind of record. */
export interface RecordOperations {
  /** The name of the path parameter with the ID of a record. */
  name: string
  list: Operation | undefined
  create: Operation
  get: Operation
  update: Operation
  remove: Operation
}

export function findOperation(
  { operations }: Contract,
  method: string,
  path: string,
): Operation | undefined {
  return operations.find((one) => one.method === method && one.path === path)
}

/** The kinds of records that can be created, read, updated and deleted. */
export function listRecordOperations(contract: Contract): RecordOperations[] {
  const find = (method: string, path: string) => findOperation(contract, method, path)
  return contract.operations.flatMap((get): RecordOperations[] => {
    const [, collection = '', name = ''] = /^([^{]*)\/\{([^}]+)\}$/.exec(get.path) ?? []
    const create = find('post', collection)
    const update = find('patch', get.path)
    const remove = find('delete', get.path)
    if (get.method !== 'get' || !create || !update || !remove) return []
    return [{ name, list: find('get', collection), create, get, update, remove }]
  })
}
