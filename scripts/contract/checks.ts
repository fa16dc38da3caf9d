/** Checks that every response of an operation must pass. */
import type { ReceivedResponse, Request } from './request.ts'

/** The names of Schemathesis, where it has the check. */
export type CheckName =
  | 'not_a_server_error'
  | 'status_code_conformance'
  | 'content_type_conformance'
  | 'response_headers_conformance'
  | 'response_schema_conformance'
  | 'positive_data_acceptance'
  | 'negative_data_rejection'
  | 'unsupported_method'
  | 'allow_header_conformance'
  | 'use_after_delete'
  | 'ensure_resource_availability'
  | 'ignored_auth'
  | 'ignored_permission'
  | 'conditional_request'
  | 'idempotency'
  | 'emitted_events'
  | 'stored_values'
  | 'list_contents'
  | 'header_meaning'
  | 'isolation'
  | 'deliveries'
  | 'no_answer'
  | 'sequence'
  | 'test_error'

/** A response breaks the contract. */
export class ContractBroken extends Error {
  override name = 'ContractBroken'
  readonly check: CheckName
  readonly request: Request
  /** The requests before it, without which it does not fail. */
  readonly earlier: Request[]

  constructor(check: CheckName, request: Request, message: string, earlier: Request[] = []) {
    super(message)
    this.check = check
    this.request = request
    this.earlier = earlier
  }
}

interface Expectation {
  check: CheckName
  expected: number
  /** Names the request. */
  what: string
}

/** Throws ContractBroken for another status. */
export function assertStatus(
  request: Request,
  status: number,
  { check, expected, what }: Expectation,
): void {
  if (status !== expected)
    throw new ContractBroken(check, request, `${what} returned ${status} instead of ${expected}`)
}

/** Returns whether the data is valid. If not, `errors` has the reasons until the next call. */
interface Validator {
  (data: unknown): boolean
  errors?: { instancePath: string; message?: string; params: object }[] | null
}

/** The validators that `muster generate` wrote for the contract. */
export interface Validators {
  /** By operation and status. `headers` and `body` by lower-case name and media type; null: nothing
   *  to validate. */
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

/** Throws ContractBroken at the first part of the response that the contract does not allow. */
export function assertConforms(
  { responses }: Validators,
  id: string,
  request: Request,
  response: ReceivedResponse,
): void {
  const { status, headers, text } = response
  const broken = (check: CheckName, message: string): ContractBroken =>
    new ContractBroken(check, request, message)
  if (status >= 500) throw broken('not_a_server_error', `returned ${status}: ${shorten(text)}`)
  const expected = responses[id]?.[status]
  if (expected === undefined)
    throw broken('status_code_conformance', `returned ${status}, which ${id} does not declare`)

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
  if (!validator) return
  if (response.json === undefined)
    throw broken('response_schema_conformance', `${status} is not JSON: ${shorten(text)}`)
  if (!validator(response.json))
    throw broken(
      'response_schema_conformance',
      `${status}: the body ${formatFirstError(validator)}`,
    )
}

function formatFirstError({ errors }: Validator): string {
  const [error] = errors ?? []
  return `at ${error?.instancePath || '/'} ${error?.message} ${JSON.stringify(error?.params ?? {})}`
}

const MAX_SHOWN_CHARACTERS = 200

export function shorten(text: string): string {
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text
}
