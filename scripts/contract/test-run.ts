/** A run of the contract tests, and the requests that it makes. */
import type { OperationId } from '../../generated/operations.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { mapValues, type Schema } from '../model/schema.ts'
import type { Coverage } from './coverage.ts'
import type { Answer, Request } from './request.ts'
import type { Records } from './test-records.ts'

const EXPORT_MS = 30_000

export interface Target {
  /** Without a slash at its end. */
  url: string
  /** Full Access, of a user with every permission. */
  key: string
  /** Read Only, of a user of the same account without the Finance permission. */
  restrictedKey?: string
}

export interface Options {
  ids: readonly OperationId[]
  seed: number
  /** Of random data, for each operation: so many valid and so many invalid requests. */
  runs: number
}

export interface Run {
  contract: Contract
  target: Target
  options: Options
  coverage: Coverage
  /** A command that repeats the request. */
  toCurl(request: Request): string
  records: Records
  /** Asks without holding the answer to an operation. */
  plain(request: Request): Promise<Answer>
  /** Asks; throws ContractBroken unless the answer is one of the operation. */
  send(id: OperationId, request: Request): Promise<Answer>
}

/** A part of a request that the operation takes. Parameters are by name. */
export interface Input {
  query: Record<string, unknown>
  headers: Record<string, unknown>
  body?: Record<string, unknown>
}

/** One request or a few: throws ContractBroken. */
export interface Question {
  what: string
  ask(): Promise<void>
}

export type Ask = (run: Run, operation: Operation) => AsyncIterable<Question> | Iterable<Question>

export const idOf = ({ id }: Operation): OperationId => id as OperationId

export const emptyInput = (): Input => ({ query: {}, headers: {} })

/** The request of the input. References in its body name records that there are. */
export async function requestFor(
  run: Run,
  operation: Operation,
  input: Input,
  path?: string,
): Promise<Request> {
  const body =
    operation.body === null
      ? undefined
      : JSON.stringify(await run.records.withReferences(operation, input.body ?? {}))
  return newRequest(run, operation, input, body, path ?? (await pathOf(run, operation)))
}

export function newRequest(
  { target }: Run,
  { method }: Operation,
  { query, headers }: Input,
  body: string | undefined,
  path: string,
): Request {
  const search = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(textOf(value))}`,
  )
  return {
    method: method.toUpperCase(),
    path: search.length === 0 ? path : `${path}?${search.join('&')}`,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...mapValues(headers, textOf),
    },
    body,
    key: target.key,
  }
}

/** A parameter's value as text; a list is one text with commas. */
export function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(',') : String(value)
}

/** An address with a record of its own if the operation changes it, else with one that stays. */
export async function pathOf(
  { records, target, plain }: Run,
  operation: Operation,
): Promise<string> {
  if (operation.method !== 'get') return records.newPath(operation)
  const path = await records.knownPath(operation)
  if (operation.path.includes('{export}'))
    await untilMade(path.replace(/\/file$/, ''), target.key, plain)
  return path
}

async function untilMade(path: string, key: string, plain: Run['plain']): Promise<void> {
  const deadline = Date.now() + EXPORT_MS
  while (Date.now() < deadline) {
    const { json } = await plain({ method: 'GET', path, headers: {}, key })
    if (['completed', 'failed'].includes((json as { status?: string } | undefined)?.status ?? ''))
      return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export function schemaOf({ contract }: Run, { schema }: Parameter): Schema {
  return inlineReferences(contract.sources, schema)
}

export function parametersIn(operation: Operation, where: 'query' | 'header'): Parameter[] {
  return operation.parameters.filter((parameter) => parameter.in === where)
}

/** A valid body with all that is required, naming real records. */
export async function validBody(
  { records }: Run,
  operation: Operation,
): Promise<Record<string, unknown> | undefined> {
  return operation.body === null ? undefined : records.bodyFor(operation)
}
