/** Is valid data taken, and invalid data refused? At the limits of each schema, and at random. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type { OperationId } from '../../generated/operations.ts'
import type { Operation } from '../model/operations.ts'
import type { Schema } from '../model/schema.ts'
import { beginningOf, ContractBroken } from './checks.ts'
import { type Fault, faults, objectFaults } from './invalid-values.ts'
import type { Answer, Request } from './request.ts'
import {
  emptyInput,
  type Input,
  idOf,
  newRequest,
  parametersIn,
  pathOf,
  type Question,
  type Run,
  requestFor,
  schemaOf,
  textOf,
  validBody,
} from './test-run.ts'
import { type Sample, validValues } from './valid-values.ts'
import { limits } from './value-limits.ts'

const MAX_SHRINKING_MS = 15_000

/** Rules that a schema cannot say: for valid data, 422 may name these fields. */
const RULES: Partial<Record<OperationId, RegExp>> = {
  // Of each address and external id there is one in an account.
  createParticipant: /^(email|external_id)$/,
  updateParticipant: /^(email|external_id)$/,
  // A time whose offset leads out of the years that we take.
  createTask: /^due_at$/,
  updateTask: /^due_at$/,
  // The keys of the questions of a job differ.
  createJob: /^screening_questions\.\d+\.key$/,
  updateJob: /^(screening_questions\.\d+\.key|status)$/,
  updateJobApplication: /^status$/,
  // The filters are those of the resource's list.
  createExport: /^filters\./,
}
/** One field of a sort is there once, in one direction. */
const RULE_OF_LISTS = /^sort$/

/** Sends what is valid, and throws unless it is taken, or refused for a reason that no schema can say. */
async function sendValid(run: Run, operation: Operation, input: Input): Promise<Answer> {
  const { 'Idempotency-Key': key, ...headers } = input.headers
  const request = await requestFor(
    run,
    operation,
    key === undefined ? input : { ...input, headers: { ...headers, ...unused(String(key)) } },
  )
  const answer = await run.send(idOf(operation), request)
  const { status } = answer
  const isFine =
    status === operation.success.status ||
    (status === 304 && 'If-None-Match' in request.headers) ||
    (status === 412 && 'If-Match' in request.headers) ||
    (status === 422 && isExplained(operation, answer))
  if (!isFine)
    throw new ContractBroken(
      'positive_data_acceptance',
      request,
      `valid data got ${status}: ${beginningOf(answer.text)}`,
    )
  return answer
}

/** The key, ending so that no other request has had it. */
function unused(key: string): { 'Idempotency-Key': string } {
  const unique = randomUUID()
  return {
    'Idempotency-Key':
      key.length < unique.length ? key + unique : key.slice(0, -unique.length) + unique,
  }
}

function isExplained(operation: Operation, { json }: Answer): boolean {
  const fields = Object.keys((json as { errors?: object }).errors ?? {})
  const rule = RULES[idOf(operation)] ?? (operation.method === 'get' ? RULE_OF_LISTS : undefined)
  return fields.length > 0 && fields.every((field) => rule?.test(field))
}

/** Sends what is invalid, and throws unless it is refused. */
async function sendInvalid(run: Run, operation: Operation, request: Request): Promise<void> {
  const { status, text } = await run.send(idOf(operation), request)
  if (status !== 422 && status !== 400)
    throw new ContractBroken(
      'negative_data_rejection',
      request,
      `invalid data got ${status}: ${beginningOf(text)}`,
    )
}

export async function* askLimits(run: Run, operation: Operation): AsyncGenerator<Question> {
  const schema = run.records.schemaOf(operation)
  const question = (what: string, input: Partial<Input>): Question => ({
    what,
    ask: async () => void (await sendValid(run, operation, { ...emptyInput(), ...input })),
  })
  const body = schema === null ? [] : limits(schema)
  for (const { what, value } of body) yield question(what, { body: value as Input['body'] })
  if (body.length === 0) yield question('no more than the address', {})
  for (const where of ['query', 'header'] as const)
    for (const parameter of parametersIn(operation, where))
      for (const { what, value } of limits(schemaOf(run, parameter))) {
        const given = { [parameter.name]: value }
        const rest = where === 'query' ? { query: given } : { headers: given }
        // An empty header is the same as none, to most servers; text beyond Latin-1 cannot be one.
        if (where === 'query' || /^[ -~]+$/.test(String(value)))
          yield question(`${parameter.name}: ${what}`, {
            ...rest,
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
          const schema = schemaOf(run, parameter)
          return [parameter.name, change(validValues(schema), schema, parameter.name)]
        }),
      ),
      { requiredKeys: [] },
    )
  const schema = run.records.schemaOf(operation)
  return fc.record({
    query: values('query', (given, _, name) =>
      name === 'sort' ? given.map((sorts) => oncePerField(sorts as string[])) : given,
    ),
    // HTTP takes away spaces at both ends.
    headers: values('header', (given, { pattern }) =>
      pattern ? given : fc.string({ unit: 'grapheme-ascii' }).map((text) => text.trim()),
    ),
    body:
      schema === null
        ? fc.constant(undefined)
        : (validValues(schema) as fc.Arbitrary<Input['body']>),
  })
}

function oncePerField(sorts: string[]): string[] {
  return [...new Map(sorts.map((sort) => [sort.replace(/^-/, ''), sort])).values()]
}

/** One property of random data as one question: what fails is shrunk first. */
function property<T>(
  { options, records }: Run,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Question {
  return {
    what: 'at random',
    async ask() {
      let shrinksUntil = Number.POSITIVE_INFINITY
      const tried = fc.asyncProperty(values, async (value) => {
        if (Date.now() > shrinksUntil) return
        try {
          await holds(value)
        } catch (error) {
          shrinksUntil = Math.min(shrinksUntil, Date.now() + MAX_SHRINKING_MS)
          throw error
        } finally {
          await records.cleanUp()
        }
      })
      const details = await fc.check(tried, { seed: options.seed, numRuns: options.runs })
      if (details.failed) throw details.errorInstance
    },
  }
}

export function* askValid(run: Run, operation: Operation): Generator<Question> {
  yield property(
    run,
    validInputs(run, operation),
    async (input) => void (await sendValid(run, operation, input)),
  )
}

/** Text that is no value of a query parameter of the type. */
const WRONG_TEXTS: Record<string, string[]> = {
  integer: ['', 'abc', '1.5', ' 2', '0x1', '1e0', '99999999999999999999'],
  number: ['', 'abc'],
  boolean: ['', '1', 'TRUE'],
}

/** The faults of a value that is written as text: there every text is of the type string, and an address has no half of a surrogate pair. */
function textFaults(schema: Schema): Sample[] {
  const isWritten = ({ value }: Sample): boolean =>
    schema.type === 'array'
      ? Array.isArray(value) && value.every((item) => typeof item === 'string')
      : typeof value === (schema.type === 'integer' ? 'number' : schema.type)
  const texts = (WRONG_TEXTS[String(schema.type)] ?? []).map((value) => ({
    what: `is "${value}"`,
    value,
  }))
  return [...faults(schema).filter(isWritten), ...texts].filter(({ value }) =>
    textOf(value).isWellFormed(),
  )
}

/** Ways to spoil the operation's request: each with the fault of its body, or of its parameters. */
function faultsOf(
  run: Run,
  operation: Operation,
): { body: Fault[]; input: { what: string; spoil(request: Request): Request }[] } {
  const schema = run.records.schemaOf(operation)
  const query = (what: string, ...pairs: [string, unknown][]) => ({
    what,
    spoil: (request: Request): Request => {
      const search = pairs
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(textOf(value))}`)
        .join('&')
      return { ...request, path: `${request.path.split('?')[0]}?${search}` }
    },
  })
  const ofQuery = parametersIn(operation, 'query').flatMap((parameter) => {
    const given = schemaOf(run, parameter)
    const [valid] = limits(given)
    return [
      ...textFaults(given).map(({ what, value }) =>
        query(`${parameter.name}: ${what}`, [parameter.name, value]),
      ),
      query(
        `${parameter.name}: given twice`,
        [parameter.name, valid?.value],
        [parameter.name, valid?.value],
      ),
    ]
  })
  const ofHeaders = parametersIn(operation, 'header').flatMap((parameter) =>
    faults(schemaOf(run, parameter))
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
    input: [
      ...ofQuery,
      query('a parameter that there is not', ['not_a_parameter', 1]),
      ...ofHeaders,
    ],
  }
}

export async function* askFaults(run: Run, operation: Operation): AsyncGenerator<Question> {
  const { body, input } = faultsOf(run, operation)
  const valid = await validBody(run, operation)
  const path = await pathOf(run, operation)
  const request = newRequest(run, operation, emptyInput(), valid && JSON.stringify(valid), path)
  const others = (run.records.schemaOf(operation) === null ? [] : [[], 'x', 1, null]).map(
    (value): Fault => ({ what: `is ${JSON.stringify(value)}`, applyTo: () => value }),
  )
  const send = (what: string, spoiled: Request): Question => ({
    what,
    ask: () => sendInvalid(run, operation, spoiled),
  })
  for (const { what, applyTo } of [...body, ...others])
    yield send(what, { ...request, body: JSON.stringify(applyTo(valid ?? {})) })
  for (const { what, spoil } of input) yield send(what, spoil(request))
}

/** As above, with the rest of the request at random. */
export function* askInvalid(run: Run, operation: Operation): Generator<Question> {
  const { body, input } = faultsOf(run, operation)
  const choices = [
    ...body.map((fault) => ({ fault, spoil: undefined })),
    ...input.map(({ spoil }) => ({ fault: undefined, spoil })),
  ]
  yield property(
    run,
    fc.tuple(validInputs(run, operation), fc.constantFrom(...choices)),
    async ([valid, { fault, spoil }]) => {
      // What has been refused for another reason would hide the fault.
      const given = { ...valid, headers: {} }
      const spoiled =
        fault === undefined
          ? given
          : { ...given, body: fault.applyTo(given.body ?? {}) as Input['body'] }
      const path = await run.records.knownPath(operation)
      const request = newRequest(
        run,
        operation,
        spoiled,
        operation.body === null ? undefined : JSON.stringify(spoiled.body),
        path,
      )
      await sendInvalid(run, operation, spoil === undefined ? request : spoil(request))
    },
  )
}
