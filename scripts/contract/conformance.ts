/** Compares a response with what the contract declares for its operation. */
import { type CheckName, ContractBroken, shorten } from './contract-broken.ts'
import type { ReceivedResponse, Request } from './request.ts'

/** Returns whether the data is valid. If not, `errors` has the reasons until the next call. */
interface Validator {
  (data: unknown): boolean
  errors?: { instancePath: string; message?: string; params: object }[] | null
}

/** The validators that `muster generate` wrote for the contract. */
export interface Validators {
  /** By operation ID, then by status. `headers` validates an object with lower-case names; null:
   *  the contract declares no header. `body` has a validator for each media type, or null for a
   *  media type that is not JSON. If `body` itself is null, the response must have no body. */
  responses: Readonly<
    Record<
      string,
      Readonly<
        Record<
          number,
          { headers: Validator | null; body: Readonly<Record<string, Validator | null>> | null }
        >
      >
    >
  >
  /** By event type. */
  events: Readonly<Record<string, { payload: Validator; headers: Validator }>>
}

/** Throws ContractBroken for the first part of the response that the contract does not allow, and
 *  for every status from 500, even a declared one. `isSelection`: the body may lack required fields, so it is not
 *  validated. */
export function assertConforms(
  { responses }: Validators,
  operationId: string,
  request: Request,
  response: ReceivedResponse,
  { isSelection = false } = {},
): void {
  const { status, headers, text } = response
  const broken = (check: CheckName, message: string): ContractBroken =>
    new ContractBroken(check, request, message)
  if (status >= 500) throw broken('not_a_server_error', `returned ${status}: ${shorten(text)}`)
  const expected = responses[operationId]?.[status]
  if (expected === undefined)
    throw broken(
      'status_code_conformance',
      `returned ${status}, which ${operationId} does not declare`,
    )

  const mediaType = headers.get('content-type') ?? ''
  if (expected.body === null) {
    if (text !== '')
      throw broken(
        'response_schema_conformance',
        `${status} must not have a body: ${shorten(text)}`,
      )
  } else if (!Object.hasOwn(expected.body, mediaType)) {
    const declared = Object.keys(expected.body).join(' or ')
    throw broken(
      'content_type_conformance',
      `${status} has the media type ${mediaType || 'none'} instead of ${declared}`,
    )
  }
  if (expected.headers && !expected.headers(Object.fromEntries(headers)))
    throw broken(
      'response_headers_conformance',
      `${status}: the headers ${formatFirstError(expected.headers)}`,
    )
  const validator = expected.body?.[mediaType]
  if (!validator || isSelection) return
  if (response.json === undefined)
    throw broken('response_schema_conformance', `${status} is not JSON: ${shorten(text)}`)
  if (!validator(response.json))
    throw broken(
      'response_schema_conformance',
      `${status}: the body ${formatFirstError(validator)}`,
    )
}

/** The end of a sentence that begins with the name of the invalid value. */
export function formatFirstError({ errors }: Validator): string {
  const [error] = errors ?? []
  return `at ${error?.instancePath || '/'} ${error?.message} ${JSON.stringify(error?.params ?? {})}`
}
