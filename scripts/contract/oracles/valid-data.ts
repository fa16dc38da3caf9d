/** Oracle: valid data is accepted, at the limits of each schema and at random. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type { Operation, Parameter } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { findIdempotencyKey } from '../../words/idempotency.ts'
import { readImportWords } from '../../words/imports.ts'
import type { ListWords } from '../../words/lists.ts'
import { readListWords, readSort } from '../../words/lists.ts'
import { requestSchema } from '../../words/records.ts'
import { fieldErrors, findRule, readMaxRecordBytes } from '../../words/refusals.ts'
import { ContractBroken, shorten } from '../contract-broken.ts'
import { randomCheck } from '../random-check.ts'
import { MAX_URL_BYTES, type ReceivedResponse, type Request } from '../request.ts'
import {
  type Check,
  type Input,
  parameterSchema,
  parametersIn,
  prepareRequest,
  type Run,
} from '../run.ts'
import { jsonBytes, limitValues } from '../values/limit-values.ts'
import { validValues } from '../values/valid-values.ts'
import { assertStored } from './stored-values.ts'

export function* limitChecks(run: Run, operation: Operation): Generator<Check> {
  const check = (what: string, input: Input): Check => ({
    what,
    perform: () => sendValid(run, operation, input),
  })
  const bodies =
    operation.body === null
      ? [{ what: 'the URL only', value: undefined }]
      : limitValues(requestSchema(run.contract, operation))
  for (const { what, value } of bodies) yield check(what, { body: value as Input['body'] })
  const body = bodies[0]?.value as Input['body']
  for (const { what, name, value } of listParameterLimits(run, operation, 'query'))
    yield check(what, { query: { [name]: value }, body })
  // Skips empty text and text that is not printable ASCII: many servers ignore an empty header, and
  // servers read bytes beyond ASCII in different ways.
  for (const { what, name, value } of listParameterLimits(run, operation, 'header'))
    if (/^[ -~]+$/.test(String(value))) yield check(what, { headers: { [name]: value }, body })
}

function listParameterLimits(run: Run, operation: Operation, where: 'query' | 'header') {
  return freeParameters(run, operation, where).flatMap((parameter) =>
    limitValues(parameterSchema(run, parameter)).map(({ what, value }) => ({
      what: `${parameter.name}: ${what}`,
      name: parameter.name,
      value,
    })),
  )
}

export function* randomValidChecks(run: Run, operation: Operation): Generator<Check> {
  yield randomCheck(
    run,
    { what: 'random data', runs: run.options.randomRequests },
    validInputs(run, operation),
    (input) => sendValid(run, operation, input),
  )
}

/** Throws unless the valid request succeeds, or is refused by a rule that a schema cannot
 *  express. */
async function sendValid(run: Run, operation: Operation, input: Input): Promise<void> {
  const headers = withUniqueKey(operation, input.headers ?? {})
  const request = await prepareRequest(run, operation, { ...input, headers })
  const response = await run.send(operation, request)
  const { status } = response
  const isFine =
    status === operation.success.status ||
    (status === 304 && 'If-None-Match' in request.headers) ||
    (status === 409 && run.records.isFound(operation)) ||
    (status === 412 && 'If-Match' in request.headers) ||
    (status === 414 && isTooLong(request)) ||
    (status === 422 && (isTooLarge(run, input) || coverRefusals(run, operation, response)))
  if (!isFine)
    throw new ContractBroken(
      'positive_data_acceptance',
      request,
      `valid data returned ${status}: ${shorten(response.text)}`,
    )
  if (status === operation.success.status) await assertStored(run, operation, request, response)
}

/** Makes the idempotency key unique. A long key keeps its length, so that the longest key is
 *  tested. */
function withUniqueKey(
  operation: Operation,
  headers: Record<string, unknown>,
): Record<string, unknown> {
  const { name = '' } = findIdempotencyKey(operation) ?? {}
  if (!(name in headers)) return headers
  const [key, unique] = [String(headers[name]), randomUUID()]
  const start = key.length < unique.length ? key : key.slice(0, -unique.length)
  return { ...headers, [name]: start + unique }
}

/** Lists of values can make the URL too long, although each value is valid. */
function isTooLong({ path }: Request): boolean {
  return Buffer.byteLength(path) > MAX_URL_BYTES
}

function isTooLarge({ contract }: Run, { body }: Input): boolean {
  return jsonBytes(body) > readMaxRecordBytes(contract)
}

/** Adds the errors that `x-refusals` explains to the coverage. Returns whether there are errors and
 *  `x-refusals` explains each of them. */
function coverRefusals(run: Run, operation: Operation, response: ReceivedResponse): boolean {
  const { contract, coverage } = run
  const errors = Object.entries(fieldErrors(contract, operation, response))
  const refusals = errors.map(([field, messages]) => ({
    rule: findRule(contract, operation, field),
    messages,
  }))
  for (const { rule, messages } of refusals)
    for (const message of messages)
      if (rule !== undefined) coverage.refusals.add(operation.id, rule, message)
  return errors.length > 0 && refusals.every(({ rule }) => rule !== undefined)
}

export function validInputs(run: Run, operation: Operation): fc.Arbitrary<Input> {
  const valuesIn = (
    where: 'query' | 'header',
    valuesOf: (schema: Schema, parameter: Parameter) => fc.Arbitrary<unknown>,
  ) => {
    const values = freeParameters(run, operation, where).map((parameter) => [
      parameter.name,
      valuesOf(parameterSchema(run, parameter), parameter),
    ])
    return fc.record(Object.fromEntries(values), { requiredKeys: [] })
  }
  const sort = readListWords(run.contract)?.sort
  return fc.record({
    query: valuesIn('query', (schema, { name }) =>
      name === sort?.parameter
        ? validValues(schema).map((options) => oncePerField(options as string[], sort))
        : validValues(schema),
    ),
    // Without a pattern any text is valid, but a header can only carry ASCII, and HTTP trims it.
    headers: valuesIn('header', (schema) =>
      schema.pattern
        ? validValues(schema)
        : fc.string({ unit: 'grapheme-ascii' }).map((text) => text.trim()),
    ),
    body:
      operation.body === null
        ? fc.constant(undefined)
        : (validValues(requestSchema(run.contract, operation)) as fc.Arbitrary<Input['body']>),
  })
}

/** Without the cursor of a list, because the service refuses those that it has not returned, and without
 *  the parameter that lets an import change records, because no response names these records. Requests
 *  have its example, which makes the import a trial. */
function freeParameters(
  { contract }: Run,
  operation: Operation,
  where: 'query' | 'header',
): Parameter[] {
  const cursor = readListWords(contract)?.page.after
  const { trial = {} } = readImportWords(operation) ?? {}
  return parametersIn(operation, where).filter(
    ({ name, required }) => name !== cursor && (required || !(name in trial)),
  )
}

/** Keeps one option for each field: the service refuses a sort that names a field twice. */
function oncePerField(options: string[], sort: ListWords['sort']): string[] {
  return [...new Map(options.map((option) => [readSort(option, sort).field, option])).values()]
}
