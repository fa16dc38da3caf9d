/** Validates the input of an operation against the contract. */
import { StatusError } from '../errors.ts'
import type { OperationId } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import type { ValidInput } from '../handlers/call.ts'
import { assertValid } from '../validation.ts'
import {
  assertBodyRules,
  assertDistinctSorts,
  assertEmailFilter,
  assertOnePage,
} from './request-rules.ts'

/** The input of a client or a form, before validation. All text in the input is storable: see
 *  operations/storable.ts. */
export interface RawInput {
  path?: Record<string, string>
  /** Converted to the contract's types: lists are arrays, integers are numbers. */
  query?: Record<string, unknown>
  /** The names of query parameters as the client wrote them, by their names in the contract. */
  spellings?: ReadonlyMap<string, string>
  /** By lower-case name. */
  headers?: Record<string, unknown>
  body?: unknown
}

/** Checks the input against the contract and fills in defaults. Throws InvalidInput for the query,
 *  the headers or the body, in this order, and 404 for a path that cannot name a record. */
export function validate<Id extends OperationId>(
  id: Id,
  { path = {}, query = {}, spellings, headers, body }: RawInput,
): ValidInput<Id> {
  const paramValidators = validators.params[id]
  const spell = (name: string): string => spellings?.get(name) ?? name
  assertOnePage(query)
  assertValid(paramValidators.query, query, ([name = '']) => spell(name))
  assertDistinctSorts(query.sort, spell('sort'))
  assertEmailFilter(query['filter[email]'], spell('filter[email]'))
  if (paramValidators.headers && headers) {
    const { names, validator } = paramValidators.headers
    assertValid(
      validator,
      headers,
      ([name]) => names.find((header) => header.toLowerCase() === name) ?? '',
    )
  }
  const bodyValidator = validators.bodies[id]
  if (bodyValidator) assertValid(bodyValidator, body)
  assertBodyRules(id, body)
  if (!paramValidators.path(path)) throw new StatusError(404, 'There is no such record.')
  return { path, query, body } as ValidInput<Id>
}
