/** The failures that the contract tests report. */
import type { Request } from './request.ts'

/** The kinds of failures. Where Schemathesis has the same check, the name is the same. */
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
  | 'broken_rule'
  | 'list_contents'
  | 'header_meaning'
  | 'isolation'
  | 'deliveries'
  | 'exported_files'
  | 'imported_rows'
  | 'no_answer'
  | 'sequence'
  | 'test_error'

/** A response breaks the contract. */
export class ContractBroken extends Error {
  override name = 'ContractBroken'
  readonly check: CheckName
  readonly request: Request
  /** The requests that lead to the failure. May contain `request`. */
  readonly earlier: Request[]

  constructor(check: CheckName, request: Request, message: string, earlier: Request[] = []) {
    super(message)
    this.check = check
    this.request = request
    this.earlier = earlier
  }
}

/** Returns a function that creates failures of this kind. */
export function failuresOf(check: CheckName) {
  return (request: Request, message: string, earlier?: Request[]): ContractBroken =>
    new ContractBroken(check, request, message, earlier)
}

interface Expectation {
  check: CheckName
  expected: number
  /** The subject of the message, for example `a simultaneous request`. */
  what: string
}

/** Throws ContractBroken unless the status is `expected`. */
export function assertStatus(
  request: Request,
  status: number,
  { check, expected, what }: Expectation,
): void {
  if (status !== expected)
    throw new ContractBroken(check, request, `${what} returned ${status} instead of ${expected}`)
}

const MAX_SHOWN_CHARACTERS = 200

export function shorten(text: string): string {
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text
}

/** The value as short JSON, for a message. */
export function show(value: unknown): string {
  return shorten(String(JSON.stringify(value)))
}
