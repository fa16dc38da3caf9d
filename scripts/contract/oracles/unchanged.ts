/** Tests that a request changes nothing. */
import type { Operation } from '../../model/operations.ts'
import { readListWords } from '../../words/lists.ts'
import { readPointer } from '../../words/read.ts'
import { readRecordWords } from '../../words/records.ts'
import { type CheckName, ContractBroken } from '../contract-broken.ts'
import { findOperation } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { newRequest, type Run } from '../run.ts'

interface Attempt {
  operation: Operation
  path: string
  /** The key that reads. By default, that of the run. */
  key?: string
  check: CheckName
  /** The request, for the message. */
  what: string
}

/** Throws ContractBroken unless a GET of the path returns the same before and after `send`. */
export async function assertChangesNothing(
  run: Run,
  { operation, path, key = run.target.key, check, what }: Attempt,
  send: () => Promise<void>,
): Promise<void> {
  const get = findOperation(run.contract, 'get', operation.path)
  if (get === undefined || operation.method === 'get') return await send()
  const read = { ...newRequest(run, get, path), key }
  const before = await readState(run, get, read)
  await send()
  const after = await readState(run, get, read)
  if (after === before) return
  throw new ContractBroken(check, read, `after ${what}, GET returned ${after} instead of ${before}`)
}

/** The record, or the number of the records of a list. Only the status of a record that the service
 *  itself changes. */
async function readState(run: Run, get: Operation, read: Request): Promise<string> {
  const { status, text, json } = await run.sendUnchecked(read)
  const changesItself = readRecordWords(run.contract, get).finished_when !== undefined
  const pointer = readListWords(run.contract)?.meta.total
  const total = pointer === undefined ? undefined : readPointer(json, pointer)
  return `${status} ${total ?? (changesItself ? '' : text)}`.trim()
}
