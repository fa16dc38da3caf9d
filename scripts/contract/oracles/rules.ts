/** Oracle: the service refuses what the rules of the contract refuse, and nothing else: `x-refusals`
 *  with a condition, `unique` of `x-record` and `x-max-record-bytes`. */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { type Rule, readMaxRecordBytes, readRules } from '../../words/refusals.ts'
import { type Kind, listKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, preparePath, type Run } from '../run.ts'
import { jsonBytes } from '../values/limit-values.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { assertAccepted, assertRefused } from './refused.ts'

/** Shorter random text could be the value of another record. */
const MIN_UNIQUE_CHARACTERS = 10
/** Takes more bytes as JSON than any other character. */
const ESCAPED_CHARACTER = '\u0001'
const ESCAPED_BYTES = '\\u0001'.length
/** Has two bytes, so that a service that counts characters accepts too large a record. */
const WIDE_CHARACTER = 'é'
const MAX_WIDE = 100
/** Another field of the request cannot be shortened by this many bytes. */
const LARGE_EXCESS = 2000

export function* ruleChecks(run: Run, operation: Operation): Generator<Check> {
  const { contract } = run
  const kind = listKinds(contract).find((one) => [one.create, one.update].includes(operation))
  for (const [field, rule] of Object.entries(readRules(operation))) {
    for (const one of listBodies(run, operation, field, rule))
      yield bodyCheck(run, operation, { field, why: rule.reason, ...one })
    if (rule.unique && !isOfEntry(field) && kind)
      yield* uniqueChecks(run, operation, kind, field, rule)
  }
  const { unique } = readRecordWords(contract, operation)
  if (unique && operation === kind?.create) yield togetherUnique(run, operation, kind, unique)
  yield* recordSizeChecks(run, operation)
}

/** A request of the operation with these fields of the body, or with these parameters if it takes no
 *  body. An update is for a new record. */
async function requestWith(run: Run, operation: Operation, fields: JsonObject): Promise<Request> {
  const path = await preparePath(run, operation)
  if (operation.body === null) return newRequest(run, operation, path, { query: fields })
  const body = { ...(await run.records.validBody(operation)), ...fields }
  return newRequest(run, operation, path, { body })
}

/** Fields of a body, or parameters, that a rule accepts or refuses. */
interface RuleBody {
  what: string
  fields: JsonObject
  /** The fields that the errors must name. Undefined: the rule accepts the body. */
  wrong?: string[]
}

/** `field` is a field of the entries of a list, for example `items.*.key`. */
function isOfEntry(field: string): boolean {
  return field.includes('.*.')
}

function listBodies(run: Run, operation: Operation, field: string, rule: Rule): RuleBody[] {
  const { accepts = [], refuses = [], unique } = rule
  const bodies: RuleBody[] = [
    ...accepts.map((fields) => ({ what: `accepts ${JSON.stringify(fields)}`, fields })),
    ...refuses.map((fields) => ({
      what: `refuses ${JSON.stringify(fields)}`,
      fields,
      wrong: [field],
    })),
  ]
  if (!unique || !isOfEntry(field)) return bodies
  const [list = ''] = field.split('.*.')
  const { items = {} } = requestSchema(run.contract, operation).properties?.[list] ?? {}
  const [first, second] = variants(items, 2)
  const wrong = [1, 2].map((index) => field.replace('*', String(index)))
  return [
    ...bodies,
    { what: 'twice', fields: { [list]: [first, second, second] }, wrong },
    { what: 'two values', fields: { [list]: [first, second] } },
  ]
}

function bodyCheck(
  run: Run,
  operation: Operation,
  { field, why, what, fields, wrong }: RuleBody & { field: string; why: string },
): Check {
  return {
    what: `${field}: ${what}`,
    async perform() {
      const request = await requestWith(run, operation, fields)
      if (wrong === undefined) await assertAccepted(run, operation, request, 'valid data')
      else {
        await assertRefused(run, operation, request, { fields: wrong, why })
        run.tested(operation.id, 'x-refusals', field)
      }
    },
  }
}

/** A field that is unique among the records. Each check begins with a new record that has the
 *  value: the holder. */
function* uniqueChecks(
  run: Run,
  operation: Operation,
  { create, get, update, remove }: Kind,
  field: string,
  { reason: why, ignore_case = false }: Rule,
): Generator<Check> {
  if (!create || !get) return
  const schema = requestSchema(run.contract, create).properties?.[field] ?? {}
  const newValue = (): string => uniqueText(schema)
  const sample = newValue()
  const isLongEnough = sample.length >= MIN_UNIQUE_CHARACTERS
  if (!isLongEnough || ![sample, sample.toLowerCase()].every((text) => isValid(schema, text)))
    return
  const check = (
    what: string,
    perform: (value: string, holder: string) => Promise<void>,
  ): Check => ({
    what: `${field}: ${what}`,
    async perform() {
      const value = newValue()
      await perform(value, await run.records.newPath(get, { [field]: value }))
    },
  })
  const send = (value: string) => requestWith(run, operation, { [field]: value })
  const assertTaken = async (value: string): Promise<void> => {
    await assertRefused(run, operation, await send(value), { fields: [field], why })
    run.tested(operation.id, 'x-refusals', field)
  }
  const assertFree = async (value: string, what: string): Promise<void> => {
    await assertAccepted(run, operation, await send(value), what)
  }
  const change = async (holder: string, value: string): Promise<void> => {
    if (!update) return
    const request = newRequest(run, update, holder, { body: { [field]: value } })
    await assertAccepted(run, update, request, 'an update of the holder')
  }

  yield check('the value of another record', assertTaken)
  yield check('the value of another record in lower case', (value) =>
    ignore_case
      ? assertTaken(value.toLowerCase())
      : assertFree(value.toLowerCase(), 'another value'),
  )
  if (update)
    yield check('a value that the holder gave up', async (value, holder) => {
      await change(holder, newValue())
      await assertFree(value, 'a value that no record has')
    })
  if (remove)
    yield check('the value of a deleted record', async (value, holder) => {
      await assertAccepted(run, remove, newRequest(run, remove, holder), 'the deletion')
      await assertFree(value, 'a value that no record has')
    })
  if (operation === update)
    yield check("the record's own value", async (value, holder) => {
      for (const own of [value, value.toLowerCase()]) await change(holder, own)
    })
}

/** Valid text with an upper-case letter that no other record has, if the schema permits such text. */
function uniqueText({ format, maxLength }: Schema): string {
  const text = `A${randomUUID()}`
  return format === 'email' ? `${text}@example.com` : text.slice(0, maxLength)
}

/** Fields whose values together are unique. */
function togetherUnique(run: Run, create: Operation, { remove }: Kind, unique: string[]): Check {
  return {
    what: `${unique.join(' and ')}: the values of another record`,
    async perform() {
      const first = await requestWith(run, create, {})
      const { headers } = await assertAccepted(run, create, first, 'the first record')
      const why = `${unique.join(' and ')} must be unique`
      await assertRefused(run, create, first, { fields: unique, why })
      run.tested(create.id, 'x-record.unique')
      const taken = JSON.parse(first.body ?? '{}') as JsonObject
      for (const name of unique.length > 1 ? unique : []) {
        const request = await requestWith(run, create, { [name]: taken[name] })
        await assertAccepted(run, create, request, `a record with the same ${name} only`)
      }
      const path = headers.get('location')
      if (!remove || !path) return
      await assertAccepted(run, remove, newRequest(run, remove, path), 'the deletion')
      await assertAccepted(run, create, first, 'a record with the values of a deleted one')
    },
  }
}

/** The operation writes records of the largest size, and refuses larger ones. */
function* recordSizeChecks(run: Run, operation: Operation): Generator<Check> {
  const maxBytes = readMaxRecordBytes(run.contract)
  if (maxBytes === Number.POSITIVE_INFINITY) return
  const field = findLargeField(requestSchema(run.contract, operation), maxBytes)
  if (field === undefined) return
  yield {
    what: `a record of ${maxBytes} bytes, and larger ones`,
    async perform() {
      const path = await preparePath(run, operation)
      const fixed = await run.records.validBody(operation)
      const send = (bytes: number) =>
        newRequest(run, operation, path, { body: { ...fixed, [field]: textOf(bytes) } })
      const { json } = await assertAccepted(run, operation, send(1), 'a small record')
      const most = maxBytes - jsonBytes(json) + 1
      await assertAccepted(run, operation, send(most), `a record of ${maxBytes} bytes`)
      const why = `a record has at most ${maxBytes} bytes`
      const anyField = Object.keys({ ...fixed, [field]: '' })
      await assertRefused(run, operation, send(most + 1), { fields: anyField, why })
      await assertRefused(run, operation, send(most + LARGE_EXCESS), { fields: [field], why })
      run.tested('openapi.yaml', 'x-max-record-bytes')
    },
  }
}

/** The name of a field that can have text of any size up to `bytes` and a large excess. */
export function findLargeField({ properties = {} }: Schema, bytes: number): string | undefined {
  const canHave = ({ type, format, ...schema }: Schema): boolean =>
    type === 'string' &&
    format === undefined &&
    isValid({ type, ...schema }, textOf(bytes + LARGE_EXCESS))
  const found = Object.entries(properties).find(([, schema]) => canHave(schema))
  return found?.[0]
}

/** Text that has `bytes` bytes as JSON, without the quotation marks. */
function textOf(bytes: number): string {
  const wide = WIDE_CHARACTER.repeat(Math.min(MAX_WIDE, Math.floor(bytes / 2)))
  const rest = bytes - Buffer.byteLength(wide)
  const escaped = ESCAPED_CHARACTER.repeat(rest / ESCAPED_BYTES)
  return wide + escaped + 'x'.repeat(rest % ESCAPED_BYTES)
}
