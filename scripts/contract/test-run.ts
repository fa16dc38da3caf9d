/** The state of one run of the contract tests, and the requests that it builds. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { mapValues, type Schema } from '../model/schema.ts'
import { meetsCondition, readRecordWords } from '../words/records.ts'
import type { Validators } from './checks.ts'
import type { Coverage } from './coverage.ts'
import type { Receiver, TestedWebhook } from './receiver.ts'
import type { ReceivedResponse, Request } from './request.ts'
import type { Exchange } from './sender.ts'
import type { RunRecords } from './test-records.ts'

const FINISH_TIMEOUT_MS = 30_000
const POLL_MS = 100

export interface Target {
  /** Without a trailing slash. */
  url: string
  /** A Full Access key of a user with every permission. */
  key: string
  /** A Read Only key of a user of the same account without the Finance permission. */
  restrictedKey?: string
  /** A Full Access key of a user of another account. */
  otherKey?: string
  /** Sends all later events of the account to the receiver. */
  createWebhook?(receiver: Receiver): Promise<TestedWebhook>
  /** Gets the deliveries of the whole run. Undefined: each test starts its own. */
  receiver?: Receiver
}

export interface Options {
  ids: readonly string[]
  seed: number
  /** To each operation: this many valid and this many invalid ones. */
  randomRequests: number
  /** For each kind of record. By default half of `randomRequests`. */
  sequences?: number
  /** The name of the oracle that comes first. */
  firstOracle?: string
}

export interface Run {
  contract: Contract
  validators: Validators
  target: Target
  options: Options
  coverage: Coverage
  /** A command that repeats the request. */
  toCurl(request: Request): string
  records: RunRecords
  /** The latest exchange with this request, or with an equal one. */
  findExchange(request: Request): Exchange | undefined
  /** Sends a request without checking the response. */
  plain(request: Request): Promise<ReceivedResponse>
  /** Sends a request. Throws ContractBroken unless the response conforms to the operation. */
  send(id: string, request: Request): Promise<ReceivedResponse>
}

/** Parameters by name, and the body. */
export interface Input {
  query?: Record<string, unknown>
  headers?: Record<string, unknown>
  body?: Record<string, unknown>
}

/** One or a few requests with an expected result. `perform` throws ContractBroken when the result
 *  differs. */
export interface Check {
  what: string
  perform(): Promise<void>
}

export type ListChecks = (run: Run, operation: Operation) => AsyncIterable<Check> | Iterable<Check>

/** The request for the input, with references to existing records in its body. */
export async function buildRequest(
  run: Run,
  operation: Operation,
  input: Input,
  path?: string,
): Promise<Request> {
  const body =
    operation.body === null
      ? undefined
      : await run.records.withReferences(operation, input.body ?? {})
  const at = path ?? (await findPath(run, operation))
  return newRequest(run, operation, at, { ...input, body })
}

export function newRequest(
  { target }: Run,
  { method }: Operation,
  path: string,
  { query = {}, headers = {}, body }: Input = {},
): Request {
  const search = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(toText(value))}`,
  )
  return {
    method: method.toUpperCase(),
    path: search.length === 0 ? path : `${path}?${search.join('&')}`,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...mapValues(headers, toText),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    key: target.key,
  }
}

/** A list becomes comma-separated text. */
export function toText(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}

/** The path with another ID in place of its last one. */
export function withId({ path: template }: Operation, path: string, id: string): string {
  const index = template.split('/').findLastIndex((part) => part.startsWith('{'))
  return path.split('/').with(index, id).join('/')
}

/** The path of a new record if the operation writes, or of a shared one. */
export async function findPath(run: Run, operation: Operation): Promise<string> {
  if (operation.method !== 'get') return run.records.newPath(operation)
  const path = await run.records.knownPath(operation)
  await waitUntilFinished(run, operation, path)
  return path
}

/** Waits until the service has finished the record that the path names. */
async function waitUntilFinished(
  { contract, target, plain }: Run,
  { path: template }: Operation,
  path: string,
): Promise<void> {
  const item = contract.operations.find(
    (other) =>
      other.method === 'get' && other.path.endsWith('}') && template.startsWith(other.path),
  )
  const { finished_when } = item ? readRecordWords(contract, item) : {}
  if (!item || !finished_when) return
  const recordPath = path.split('/').slice(0, item.path.split('/').length).join('/')
  const deadline = Date.now() + FINISH_TIMEOUT_MS
  while (Date.now() < deadline) {
    const { json } = await plain({ method: 'GET', path: recordPath, headers: {}, key: target.key })
    if (meetsCondition((json ?? {}) as Record<string, unknown>, finished_when)) return
    await delay(POLL_MS)
  }
}

export function inlineSchema({ contract }: Run, { schema }: Parameter): Schema {
  return inlineReferences(contract.sources, schema)
}

export function parametersIn(operation: Operation, where: 'query' | 'header'): Parameter[] {
  return operation.parameters.filter((parameter) => parameter.in === where)
}

/** A valid body with the required fields and references to existing records. */
export async function validBody(
  { records }: Run,
  operation: Operation,
): Promise<Record<string, unknown> | undefined> {
  return operation.body === null ? undefined : records.bodyFor(operation)
}
