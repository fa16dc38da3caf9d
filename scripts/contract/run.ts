/** The state of one run of the contract tests, and the requests that it builds. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Contract } from '../model/contract.ts'
import type { JsonObject } from '../model/json.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { mapValues, type Schema } from '../model/schema.ts'
import { meetsCondition, readRecordWords } from '../words/records.ts'
import type { Validators } from './conformance.ts'
import { assertStatus, type CheckName, type ContractBroken } from './contract-broken.ts'
import type { Coverage, Tests } from './coverage/coverage.ts'
import type { Receiver, TestedWebhook } from './deliveries/receiver.ts'
import { exampleFile } from './file-request.ts'
import { readUntil } from './poll.ts'
import { collectionOf } from './record-kinds.ts'
import { type ReceivedResponse, type Request, toSearch, toText } from './request.ts'
import type { Exchange } from './sender.ts'
import type { TestRecords } from './test-records.ts'

const FINISH_TIMEOUT_MS = 30_000
const POLL_MS = 50

/** The most tries of a comparison. A try can fail because the service itself changes a record, such
 *  as an export, between two requests. */
export const MAX_TRIES = 20
export const RETRY_DELAY_MS = 100

/** Creates a webhook for all later events of the account. */
export type CreateWebhook = (url: string) => Promise<TestedWebhook>

export interface Target {
  /** Without a trailing slash. */
  url: string
  /** A Full Access key of a user with every permission. */
  key: string
  /** A Read Only key of a user of the same account without the Finance permission. */
  restrictedKey?: string
  /** A Full Access key of a user without the permission: the user of `restrictedKey`. */
  noPermissionKey?: string
  /** A Full Access key of a third user of the account, whose permission is to read only. */
  readPermissionKey?: string
  /** A Full Access key of a user of another account. */
  otherKey?: string
  /** Keys that are not valid, by what is wrong with them, for example `a revoked key`. */
  invalidKeys?: Record<string, string>
  /** Calls `create` with a URL that leads to the receiver. Undefined: no such URL is known. */
  connect?(receiver: Receiver, create: CreateWebhook): Promise<TestedWebhook>
  /** The time-out of attempts, if it is not that of asyncapi.yaml. */
  webhookTimeoutMs?: number
  /** Creates an account for an oracle that waits for deliveries, and so runs beside the others.
   *  `key`: a Full Access key of a user with every permission. */
  newAccount?(): Promise<{ key: string }>
  /** Gets the deliveries of the whole run. Undefined: each test of deliveries starts a receiver. */
  receiver?: Receiver
}

export interface Options {
  /** The tested operations. */
  ids: readonly string[]
  seed: number
  /** The number of random valid requests to each operation, and also of random invalid ones. */
  randomRequests: number
  /** How long to run further random sequences. */
  minutes?: number
}

export interface Run extends Tests {
  contract: Contract
  validators: Validators
  target: Target
  options: Options
  coverage: Coverage
  /** A command that repeats the request. */
  toCurl(request: Request): string
  records: TestRecords
  /** The records of the other account. Undefined if the target has no `otherKey`. */
  otherRecords: TestRecords | undefined
  /** The latest exchange with this request, or with an equal one. */
  findExchange(request: Request): Exchange | undefined
  /** Sends a request. Throws ContractBroken unless the response conforms to the operation. */
  send(operation: Operation, request: Request): Promise<ReceivedResponse>
  sendUnchecked(request: Request): Promise<ReceivedResponse>
}

/** Parameters by name, and the body. */
export interface Input {
  query?: JsonObject
  headers?: JsonObject
  body?: JsonObject
}

/** One or a few requests with an expected result. */
export interface Check {
  /** What is special about the requests, for example `title: 201 characters`. */
  what: string
  /** Throws ContractBroken if the result differs. */
  perform(): Promise<void>
}

export type Checks = AsyncIterable<Check> | Iterable<Check>

/** A request with the input. Without `path`, `preparePath` gives the path. References in the body
 *  lead to existing records. Without a body, the input gets a valid one if the operation takes
 *  one. */
export async function prepareRequest(
  run: Run,
  operation: Operation,
  input: Input = {},
  path?: string,
): Promise<Request> {
  const { records } = run
  const takesFile = operation.files.length > 0
  const body =
    (input.body === undefined || operation.body === null) && !takesFile
      ? await records.validBody(operation)
      : input.body && (await records.withReferences(operation, input.body))
  const at = path ?? (await preparePath(run, operation))
  return newRequest(run, operation, at, { ...input, body })
}

/** A request with exactly the input. If the operation takes a file, with an example of it and of the
 *  parameters: the fields of `body` are then further parameters. */
export function newRequest(
  { target }: Run,
  operation: Operation,
  path: string,
  { query = {}, headers = {}, body }: Input = {},
): Request {
  const file = exampleFile(operation)
  const mediaType = file?.mediaType ?? (body && 'application/json')
  const search = toSearch(Object.entries(file ? { ...file.query, ...body, ...query } : query))
  return {
    method: operation.method.toUpperCase(),
    path: search === '' ? path : `${path}?${search}`,
    headers: {
      ...(mediaType && { 'Content-Type': mediaType }),
      ...mapValues(headers, toText),
    },
    body: file?.text ?? (body && JSON.stringify(body)),
    key: target.key,
  }
}

/** The operation's path with the IDs of new records, or for a GET, of shared records. For a GET,
 *  waits until the service has finished the record that the path names. */
export async function preparePath(run: Run, operation: Operation): Promise<string> {
  if (operation.method !== 'get') return run.records.newPath(operation)
  const path = await run.records.sharedPath(operation)
  await waitUntilFinished(run, operation, path)
  return path
}

/** Waits until the service has finished the record that the path names, or until the time limit. */
export async function waitUntilFinished(
  { contract, target, sendUnchecked }: Run,
  operation: Operation,
  path: string,
): Promise<void> {
  const get = contract.operations.find(
    (other) =>
      other.method === 'get' && collectionOf(other.path) && operation.path.startsWith(other.path),
  )
  const { finished_when } = get ? readRecordWords(contract, get) : {}
  if (!get || !finished_when) return
  const recordPath = path.split('/').slice(0, get.path.split('/').length).join('/')
  const request = { method: 'GET', path: recordPath, headers: {}, key: target.key }
  await readUntil(
    () => sendUnchecked(request),
    ({ json }) => meetsCondition((json ?? {}) as JsonObject, finished_when),
    FINISH_TIMEOUT_MS,
    POLL_MS,
  )
}

/** Compares again, until `compare` finds no failure. Throws the last one. */
export async function compareInTries(
  compare: () => Promise<ContractBroken | undefined>,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const failure = await compare()
    if (failure === undefined) return
    if (tries === MAX_TRIES) throw failure
    await delay(RETRY_DELAY_MS)
  }
}

/** The record at the path. Throws ContractBroken unless the response conforms to the operation. */
export async function readRecord(run: Run, get: Operation, path: string): Promise<JsonObject> {
  return (await run.send(get, newRequest(run, get, path))).json as JsonObject
}

/** Throws unless the service refuses or accepts the probe as it does the usual request. */
export async function assertSameStatus(
  run: Run,
  operation: Operation,
  { usual, probe }: { usual: Request; probe: Request },
  { check, what }: { check: CheckName; what: string },
): Promise<void> {
  const { status: expected } = await run.send(operation, usual)
  const { status } = await run.send(operation, probe)
  assertStatus(probe, status, { check, expected, what })
}

/** No record has this ID. */
export const UNKNOWN_ID = '019cade2-11c0-7000-8000-000000000000'

/** `path` with `id` in place of the last ID that the path contains. */
export function withId({ path: template }: Operation, path: string, id: string): string {
  const index = template.split('/').findLastIndex((part) => part.startsWith('{'))
  return path.split('/').with(index, id).join('/')
}

/** Whether the operation has one of the parameters. */
export function hasParameter({ parameters }: Operation, ...names: string[]): boolean {
  return parameters.some(({ name }) => names.includes(name))
}

export function parametersIn(operation: Operation, where: 'query' | 'header'): Parameter[] {
  return operation.parameters.filter((parameter) => parameter.in === where)
}

export function parameterSchema({ contract }: Run, { schema }: Parameter): Schema {
  return inlineReferences(contract.sources, schema)
}
