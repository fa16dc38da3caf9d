/** Oracle: data with one fault is refused. The rest of the data has short or random values. */
import fc from 'fast-check'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { readListWords } from '../../words/lists.ts'
import { requestSchema } from '../../words/records.ts'
import { fieldErrors, namesFields } from '../../words/refusals.ts'
import { failuresOf, shorten } from '../contract-broken.ts'
import { randomCheck } from '../random-check.ts'
import { type Request, toSearch, toText } from '../request.ts'
import {
  type Check,
  newRequest,
  parameterSchema,
  parametersIn,
  prepareRequest,
  type Run,
} from '../run.ts'
import { type BrokenKeyword, listBroken } from '../values/broken-keywords.ts'
import { invalidValues, type Mutation, objectMutations } from '../values/invalid-values.ts'
import { limitValues, type NamedValue } from '../values/limit-values.ts'
import { validInputs } from './valid-data.ts'

const broken = failuresOf('negative_data_rejection')

export async function* invalidValueChecks(run: Run, operation: Operation): AsyncGenerator<Check> {
  const request = await prepareRequest(run, operation)
  const body = operation.body === null ? {} : JSON.parse(request.body ?? '{}')
  const schema = requestSchema(run.contract, operation)
  const check = (what: string, probe: Request, field: string | undefined, list: Broken): Check => ({
    what,
    async perform() {
      await sendInvalid(run, operation, probe, field)
      const part = probe.body === request.body ? 'parameter' : 'body'
      for (const { name, keyword } of list()) run.tested(operation.id, `${part} ${keyword}`, name)
    },
  })
  const wholes: Mutation[] = (operation.body === null ? [] : [[], 'x', 1, null]).map((value) => ({
    what: `is ${JSON.stringify(value)}`,
    applyTo: () => value,
  }))
  for (const { what, field, applyTo } of [...listBodyMutations(run, operation), ...wholes]) {
    const value = applyTo(body)
    const probe = { ...request, body: JSON.stringify(value) }
    yield check(what, probe, field, () => listBroken(schema, value))
  }
  for (const { what, field, applyTo, broken } of listParameterMutations(run, operation))
    yield check(what, applyTo(request), field, () => broken)
}

type Broken = () => BrokenKeyword[]

export function* randomInvalidChecks(run: Run, operation: Operation): Generator<Check> {
  const mutations = [
    ...listParameterMutations(run, operation).map(({ applyTo }) => applyTo),
    ...listBodyMutations(run, operation).map(({ applyTo }) => (valid: Request): Request => {
      const body = applyTo(JSON.parse(valid.body ?? '{}'))
      return { ...valid, body: JSON.stringify(body) }
    }),
  ]
  yield randomCheck(
    run,
    { what: 'random data', runs: run.options.randomRequests },
    fc.tuple(validInputs(run, operation), fc.constantFrom(...mutations)),
    async ([{ query, body }, mutate]) => {
      const path = await run.records.sharedPath(operation)
      // Without the random headers: the service could refuse a request for its If-Match instead of
      // its invalid data.
      const valid = newRequest(run, operation, path, { query, body })
      await sendInvalid(run, operation, mutate(valid))
    },
  )
}

/** Throws unless the invalid request is refused. If `field` is set and the contract says where
 *  errors name fields, a 422 must also name `field`. */
async function sendInvalid(
  run: Run,
  operation: Operation,
  request: Request,
  field?: string,
): Promise<void> {
  const response = await run.send(operation, request)
  const { status, text } = response
  if (status !== 422 && status !== 400)
    throw broken(request, `invalid data returned ${status}: ${shorten(text)}`)
  if (status !== 422 || field === undefined || !namesFields(run.contract, operation)) return
  const fields = Object.keys(fieldErrors(run.contract, operation, response))
  if (!fields.some((name) => name === field || name.startsWith(`${field}.`)))
    throw broken(request, `the errors name ${fields.join(', ') || 'no field'} instead of ${field}`)
  run.tested(operation.id, 'x-names-fields')
}

function listBodyMutations({ contract }: Run, operation: Operation): Mutation[] {
  return operation.body === null ? [] : objectMutations(requestSchema(contract, operation))
}

/** Turns a valid request into one with an invalid query or header. */
interface ParameterMutation {
  what: string
  /** The parameter that errors must name. Undefined: any. */
  field?: string
  /** The keywords that the value breaks. A wrong name breaks none. */
  broken: BrokenKeyword[]
  applyTo(valid: Request): Request
}

/** Text that a header can carry: printable ASCII without spaces at its ends. */
const HEADER_TEXT = /^[!-~]([ -~]*[!-~])?$/

function listParameterMutations(run: Run, operation: Operation): ParameterMutation[] {
  const query = parametersIn(operation, 'query').flatMap((parameter) => {
    const { name } = parameter
    const schema = parameterSchema(run, parameter)
    const [valid] = limitValues(schema)
    const twice: [string, unknown] = [name, valid?.value]
    const mayRepeat = schema.type === 'array' && !schema.uniqueItems
    return [
      ...invalidTexts(schema).map(({ what, value }) =>
        withQuery(name, what, [[name, value]], listBroken(schema, value, name)),
      ),
      ...(mayRepeat ? [] : [withQuery(name, 'twice', [twice, twice])]),
    ]
  })
  const headers = parametersIn(operation, 'header').flatMap((parameter) => {
    const { name } = parameter
    const schema = parameterSchema(run, parameter)
    return invalidValues(schema)
      .filter(({ value }) => typeof value === 'string' && HEADER_TEXT.test(value))
      .map(({ what, value }) => ({
        what: `${name}: ${what}`,
        field: name,
        broken: listBroken(schema, value, name),
        applyTo: (valid: Request) => ({
          ...valid,
          headers: { ...valid.headers, [name]: String(value) },
        }),
      }))
  })
  const unknown = {
    ...withQuery('not_a_parameter', 'is unknown', [['not_a_parameter', 1]]),
    field: undefined,
  }
  return [...query, ...listDoubleSorts(run, operation), unknown, ...headers]
}

/** A sort by one field in both directions. */
function listDoubleSorts(run: Run, operation: Operation): ParameterMutation[] {
  const sort = readListWords(run.contract)?.sort
  const parameter = operation.parameters.find(({ name }) => name === sort?.parameter)
  const [option] = parameter ? (parameterSchema(run, parameter).items?.enum ?? []) : []
  if (sort?.twice !== 'refused' || option === undefined) return []
  const value = [option, `${sort.descending}${option}`]
  return [withQuery(sort.parameter, value.join(), [[sort.parameter, value]])]
}

function withQuery(
  field: string,
  what: string,
  parameters: [string, unknown][],
  broken: BrokenKeyword[] = [],
): ParameterMutation {
  const search = toSearch(parameters)
  return {
    what: `${field}: ${what}`,
    field,
    broken,
    applyTo: (valid) => ({ ...valid, path: `${valid.path.split('?')[0]}?${search}` }),
  }
}

/** Invalid text of a query parameter, by type. */
const WRONG_TEXTS: Record<string, string[]> = {
  integer: ['', 'abc', '1.5', ' 2', '0x1', '1e0', '99999999999999999999'],
  number: ['', 'abc'],
  boolean: ['', '1', 'TRUE'],
}

/** Invalid values of a query parameter, as text or as values of its type. Leaves out values of
 *  other types, which can be valid as text: 1 for a string, for example. */
function invalidTexts(schema: Schema): NamedValue[] {
  const hasOwnType = ({ value }: NamedValue): boolean =>
    schema.type === 'array'
      ? Array.isArray(value) && value.every((item) => typeof item === 'string')
      : typeof value === (schema.type === 'integer' ? 'number' : schema.type)
  const texts = (WRONG_TEXTS[String(schema.type)] ?? []).map((value) => ({
    what: `is "${value}"`,
    value,
  }))
  // A URL cannot have half of a surrogate pair.
  return [...invalidValues(schema).filter(hasOwnType), ...texts].filter(({ value }) =>
    toText(value).isWellFormed(),
  )
}
