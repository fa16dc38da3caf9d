/** Checks that valid data is accepted and invalid data refused, at the limits of each schema and at
 *  random. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type { Operation } from '../model/operations.ts'
import type { Schema } from '../model/schema.ts'
import { findIdempotencyKey } from '../words/idempotency.ts'
import { fieldErrors, findRule, namesFields, readMaxRecordBytes } from '../words/refusals.ts'
import { ContractBroken, shorten } from './checks.ts'
import { type Fault, faults, objectFaults } from './invalid-values.ts'
import { assertStored } from './oracles/stored-values.ts'
import { randomCheck } from './random-check.ts'
import type { ReceivedResponse, Request } from './request.ts'
import {
  buildRequest,
  type Check,
  findPath,
  type Input,
  inlineSchema,
  newRequest,
  parametersIn,
  type Run,
  toText,
  validBody,
} from './test-run.ts'
import { type NamedValue, validValues } from './valid-values.ts'
import { jsonBytes, largerThan, limits } from './value-limits.ts'

/** Throws unless the valid request succeeds, or is refused by a rule that a schema cannot
 *  express. */
async function sendValid(run: Run, operation: Operation, input: Input): Promise<ReceivedResponse> {
  const headers = withUniqueKey(operation, input.headers ?? {})
  const request = await buildRequest(run, operation, { ...input, headers })
  const response = await run.send(operation.id, request)
  const { status } = response
  const isFine =
    status === operation.success.status ||
    (status === 304 && 'If-None-Match' in request.headers) ||
    (status === 412 && 'If-Match' in request.headers) ||
    (status === 422 && (isTooLarge(run, input) || isRefusedByRule(run, operation, response)))
  if (!isFine)
    throw new ContractBroken(
      'positive_data_acceptance',
      request,
      `valid data returned ${status}: ${shorten(response.text)}`,
    )
  if (status === operation.success.status) await assertStored(run, operation, request, response)
  return response
}

const isTooLarge = ({ contract }: Run, { body }: Input): boolean =>
  jsonBytes(body) > readMaxRecordBytes(contract)

/** Throws unless the service refuses a record of this size, and the errors name fields that were
 *  sent. */
async function sendTooLarge(run: Run, operation: Operation, body: object): Promise<void> {
  const request = await buildRequest(run, operation, { body: { ...body } })
  const response = await run.send(operation.id, request)
  const { status, text } = response
  const fields = Object.keys(fieldErrors(run.contract, operation, response))
  if (status !== 422 || fields.length === 0 || !fields.every((field) => field in body))
    throw new ContractBroken(
      'negative_data_rejection',
      request,
      `a record that is too large returned ${status}: ${shorten(text)}`,
    )
}

/** No other request has the idempotency key. A long one keeps its length, so that the largest one
 *  is tested. */
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

function isRefusedByRule(run: Run, operation: Operation, response: ReceivedResponse): boolean {
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

/** Throws unless the invalid request is refused, and the errors name the invalid field. */
async function sendInvalid(
  run: Run,
  operation: Operation,
  request: Request,
  field?: string,
): Promise<void> {
  const response = await run.send(operation.id, request)
  const { status, text } = response
  if (status !== 422 && status !== 400)
    throw new ContractBroken(
      'negative_data_rejection',
      request,
      `invalid data returned ${status}: ${shorten(text)}`,
    )
  if (status !== 422 || field === undefined || !namesFields(run.contract, operation)) return
  const fields = Object.keys(fieldErrors(run.contract, operation, response))
  if (!fields.some((name) => name === field || name.startsWith(`${field}.`)))
    throw new ContractBroken(
      'negative_data_rejection',
      request,
      `the errors name ${fields.join(', ') || 'no field'} instead of ${field}`,
    )
}

export async function* limitChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const schema = run.records.inlineSchema(operation)
  const check = (what: string, input: Partial<Input>): Check => ({
    what,
    perform: async () => void (await sendValid(run, operation, input)),
  })
  const body = schema === null ? [] : limits(schema)
  for (const { what, value } of body) yield check(what, { body: value as Input['body'] })
  if (body.length === 0) yield check('the URL only', {})
  const tooLarge = schema && largerThan(readMaxRecordBytes(run.contract), schema)
  if (tooLarge)
    yield {
      what: 'a record that is too large',
      perform: () => sendTooLarge(run, operation, tooLarge),
    }
  for (const where of ['query', 'header'] as const)
    for (const parameter of parametersIn(operation, where))
      for (const { what, value } of limits(inlineSchema(run, parameter))) {
        const values = { [parameter.name]: value }
        const input = where === 'query' ? { query: values } : { headers: values }
        // Only ASCII: many servers ignore an empty header, and read other bytes in different ways.
        if (where === 'query' || /^[ -~]+$/.test(String(value)))
          yield check(`${parameter.name}: ${what}`, {
            ...input,
            body: body[0]?.value as Input['body'],
          })
      }
}

function validInputs(run: Run, operation: Operation): fc.Arbitrary<Input> {
  const values = (
    where: 'query' | 'header',
    change: (values: fc.Arbitrary<unknown>, schema: Schema, name: string) => fc.Arbitrary<unknown>,
  ) =>
    fc.record(
      Object.fromEntries(
        parametersIn(operation, where).map((parameter) => {
          const schema = inlineSchema(run, parameter)
          return [parameter.name, change(validValues(schema), schema, parameter.name)]
        }),
      ),
      { requiredKeys: [] },
    )
  const schema = run.records.inlineSchema(operation)
  return fc.record({
    query: values('query', (given, _, name) =>
      name === 'sort' ? given.map((sorts) => oncePerField(sorts as string[])) : given,
    ),
    // Without a pattern any text is valid, but a header can only carry ASCII, and HTTP trims it.
    headers: values('header', (given, { pattern }) =>
      pattern ? given : fc.string({ unit: 'grapheme-ascii' }).map((text) => text.trim()),
    ),
    body:
      schema === null
        ? fc.constant(undefined)
        : (validValues(schema) as fc.Arbitrary<Input['body']>),
  })
}

/** A sort that names a field twice is refused. */
function oncePerField(sorts: string[]): string[] {
  return [...new Map(sorts.map((sort) => [sort.replace(/^-/, ''), sort])).values()]
}

export function* randomValidChecks(run: Run, operation: Operation): Generator<Check> {
  yield randomCheck(
    run,
    { what: 'random data', runs: run.options.randomRequests },
    validInputs(run, operation),
    async (input) => void (await sendValid(run, operation, input)),
  )
}

/** Invalid text of a query parameter, by type. */
const WRONG_TEXTS: Record<string, string[]> = {
  integer: ['', 'abc', '1.5', ' 2', '0x1', '1e0', '99999999999999999999'],
  number: ['', 'abc'],
  boolean: ['', '1', 'TRUE'],
}

/** Invalid values of a parameter. A value of another type can become valid as text, such as 1 for a
 *  string, so only faults of the parameter's own type are used. */
function textFaults(schema: Schema): NamedValue[] {
  const hasOwnType = ({ value }: NamedValue): boolean =>
    schema.type === 'array'
      ? Array.isArray(value) && value.every((item) => typeof item === 'string')
      : typeof value === (schema.type === 'integer' ? 'number' : schema.type)
  const texts = (WRONG_TEXTS[String(schema.type)] ?? []).map((value) => ({
    what: `is "${value}"`,
    value,
  }))
  // A URL cannot have half of a surrogate pair.
  return [...faults(schema).filter(hasOwnType), ...texts].filter(({ value }) =>
    toText(value).isWellFormed(),
  )
}

/** Changes of the body, or of the parameters, that make a request invalid. */
function listFaults(
  run: Run,
  operation: Operation,
): { body: Fault[]; input: { what: string; spoil(request: Request): Request }[] } {
  const schema = run.records.inlineSchema(operation)
  const query = (what: string, ...pairs: [string, unknown][]) => ({
    what,
    spoil: (request: Request): Request => {
      const search = pairs
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(toText(value))}`)
        .join('&')
      return { ...request, path: `${request.path.split('?')[0]}?${search}` }
    },
  })
  const queryFaults = parametersIn(operation, 'query').flatMap((parameter) => {
    const schema = inlineSchema(run, parameter)
    const [valid] = limits(schema)
    return [
      ...textFaults(schema).map(({ what, value }) =>
        query(`${parameter.name}: ${what}`, [parameter.name, value]),
      ),
      query(
        `${parameter.name}: twice`,
        [parameter.name, valid?.value],
        [parameter.name, valid?.value],
      ),
    ]
  })
  const headerFaults = parametersIn(operation, 'header').flatMap((parameter) =>
    faults(inlineSchema(run, parameter))
      .filter(({ value }) => typeof value === 'string' && /^[!-~]([ -~]*[!-~])?$/.test(value))
      .map(({ what, value }) => ({
        what: `${parameter.name}: ${what}`,
        spoil: (request: Request): Request => ({
          ...request,
          headers: { ...request.headers, [parameter.name]: String(value) },
        }),
      })),
  )
  return {
    body: schema === null ? [] : objectFaults(schema),
    input: [...queryFaults, query('an unknown parameter', ['not_a_parameter', 1]), ...headerFaults],
  }
}

export async function* faultChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const { body, input } = listFaults(run, operation)
  const valid = await validBody(run, operation)
  const path = await findPath(run, operation)
  const request = newRequest(run, operation, path, { body: valid })
  const nonObjects = (run.records.inlineSchema(operation) === null ? [] : [[], 'x', 1, null]).map(
    (value): Fault => ({ what: `is ${JSON.stringify(value)}`, applyTo: () => value }),
  )
  const send = (what: string, spoiled: Request): Check => ({
    what,
    perform: () => sendInvalid(run, operation, spoiled, fieldOf(what)),
  })
  for (const { what, applyTo } of [...body, ...nonObjects])
    yield send(what, { ...request, body: JSON.stringify(applyTo(valid ?? {})) })
  for (const { what, spoil } of input) yield send(what, spoil(request))
}

/** The field that the name of a fault begins with. */
function fieldOf(what: string): string | undefined {
  return /^([^ :]+): /.exec(what)?.[1]
}

/** Like `faultChecks`, with random values in the rest of the request. */
export function* randomInvalidChecks(run: Run, operation: Operation): Generator<Check> {
  const { body, input } = listFaults(run, operation)
  const choices = [
    ...body.map((fault) => ({ fault, spoil: undefined })),
    ...input.map(({ spoil }) => ({ fault: undefined, spoil })),
  ]
  yield randomCheck(
    run,
    { what: 'random data', runs: run.options.randomRequests },
    fc.tuple(validInputs(run, operation), fc.constantFrom(...choices)),
    async ([valid, { fault, spoil }]) => {
      // Without the random headers: a conditional request could be refused first.
      const unconditional = { ...valid, headers: {} }
      const spoiled =
        fault === undefined
          ? unconditional
          : { ...unconditional, body: fault.applyTo(valid.body ?? {}) as Input['body'] }
      const path = await run.records.knownPath(operation)
      const request = newRequest(run, operation, path, spoiled)
      await sendInvalid(run, operation, spoil === undefined ? request : spoil(request))
    },
  )
}
