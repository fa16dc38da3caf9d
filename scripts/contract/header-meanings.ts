/** Tests that the headers of a response have the values that the contract describes with `x-`
 *  words, such as `x-epoch-seconds`. */
import type { Contract } from '../model/contract.ts'
import type { Operation, OperationResponse } from '../model/operations.ts'
import {
  listCommonHeaders,
  listWordedHeaders,
  type ParameterMeaning,
  type WordedHeader,
} from '../words/headers.ts'
import { failuresOf } from './contract-broken.ts'
import type { ReceivedResponse, Request } from './request.ts'
import { isValid } from './values/validity.ts'

const broken = failuresOf('header_meaning')

/** `Date` has whole seconds. The duration of the request comes on top: the service can compute a value
 *  when the request begins, and `Date` when it ends. */
const CLOCK_TOLERANCE_SECONDS = 5

/** Throws ContractBroken unless the contract allows the values of the response headers. Checks the
 *  headers of `x-response-headers`, and the headers of `declared` that have `x-` words. */
export function assertHeaderMeanings(
  contract: Contract,
  declared: OperationResponse | undefined,
  request: Request,
  response: ReceivedResponse,
): void {
  assertCommonHeaders(contract, request, response)
  const problem = declared && findHeaderProblem(declared, response)
  if (problem !== undefined) throw broken(request, `${response.status}: ${problem}`)
}

/** Throws ContractBroken unless a response of a deprecated operation says since when it is deprecated
 *  (RFC 9745), and when it will be removed (RFC 8594). */
export function assertDeprecation(
  { id, deprecation }: Operation,
  request: Request,
  { headers }: ReceivedResponse,
): void {
  if (deprecation === null) return
  const { since, sunset } = deprecation
  const expected = [
    ['Deprecation', `@${Date.parse(since) / 1000}`],
    ...(sunset === null ? [] : [['Sunset', new Date(sunset).toUTCString()]]),
  ]
  for (const [name = '', value] of expected)
    if (headers.get(name) !== value)
      throw broken(
        request,
        `${id} is deprecated, but ${name} is ${headers.get(name)}, not ${value}`,
      )
}

/** The first header of the response whose value is wrong, and why. Undefined if all are right. */
export function findHeaderProblem(
  declared: OperationResponse,
  response: Pick<ReceivedResponse, 'headers' | 'durationMs'>,
): string | undefined {
  for (const header of listWordedHeaders(declared)) {
    const value = response.headers.get(header.name)
    const problem = value === null ? undefined : findProblem(header, value, response)
    if (problem !== undefined) return `${header.name} is ${value}, ${problem}`
  }
  return undefined
}

function assertCommonHeaders(
  contract: Contract,
  request: Request,
  { status, headers }: ReceivedResponse,
): void {
  const kind = status < 400 ? 'success' : 'error'
  for (const { name, statuses, schema } of listCommonHeaders(contract)) {
    const value = headers.get(name)
    if ((statuses === 'all' || statuses === kind) && !isValid(schema, value ?? undefined))
      throw broken(request, `${status}: ${name} is ${value ?? 'missing'}`)
  }
}

/** Why the value is wrong. Undefined if it is right. */
function findProblem(
  header: WordedHeader,
  value: string,
  { headers, durationMs }: Pick<ReceivedResponse, 'headers' | 'durationMs'>,
): string | undefined {
  const clockTolerance = CLOCK_TOLERANCE_SECONDS + durationMs / 1000
  const date = Date.parse(headers.get('date') ?? '')
  const nowSeconds = (Number.isNaN(date) ? Date.now() : date) / 1000
  const { 'x-epoch-seconds': epoch, 'x-at-most': most, 'x-parameters': parameters = {} } = header
  // The negated comparisons also find values that are no numbers: NaN.
  if (epoch) {
    const secondsAhead = Number(value) - nowSeconds
    if (!(secondsAhead >= -clockTolerance))
      return 'which is in the past: it must be in seconds since 1970'
    if (secondsAhead > epoch.at_most_ahead + clockTolerance)
      return `which is more than ${epoch.at_most_ahead} seconds ahead`
  }
  if (most !== undefined && !(Number(value) <= most)) return `which is more than ${most}`
  for (const [name, meaning] of Object.entries(parameters)) {
    const actual = new RegExp(`;${name}=(\\d+)`).exec(value)?.[1]
    const expected = expectedParameter(meaning, headers, nowSeconds)
    const tolerance = meaning.seconds_until === undefined ? 0 : clockTolerance
    if (expected !== undefined && !(Math.abs(Number(actual) - expected) <= tolerance))
      return `whose ${name} must be ${Math.round(expected)}`
  }
  return undefined
}

/** The value that a parameter of a header must have, for example `t` in `"default";r=59;t=42`.
 *  Undefined if the value depends on a header that is missing. */
function expectedParameter(
  { equals, seconds_until }: ParameterMeaning,
  headers: Headers,
  nowSeconds: number,
): number | undefined {
  if (typeof equals === 'number') return equals
  const other = headers.get(equals ?? seconds_until ?? '')
  if (other === null) return undefined
  return seconds_until === undefined ? Number(other) : Number(other) - nowSeconds
}
