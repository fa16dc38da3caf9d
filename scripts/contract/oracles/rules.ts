/** Oracle: the service refuses what the rules of the contract refuse, and nothing else: `x-refusals`
 *  with a condition, `unique` of `x-record`, `x-refers-with` and `x-max-record-bytes`. */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../../model/json.ts'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { readRecordWords, requestSchema } from '../../words/records.ts'
import { type Rule, readRules } from '../../words/refusals.ts'
import { type Kind, listKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, preparePath, type Run, UNKNOWN_ID } from '../run.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { recordSizeChecks } from './record-size.ts'
import { assertAccepted, assertRefused, assertUpdateRefused } from './refused.ts'
import { listStates, newRecordIn } from './states.ts'

/** Shorter random text could be the value of another record. */
const MIN_UNIQUE_CHARACTERS = 10

/** A kind whose records the operation creates or updates. */
type WrittenKind = Kind & { create: Operation; get: Operation }

export function* ruleChecks(run: Run, operation: Operation): Generator<Check> {
  const { contract } = run
  const kind = listKinds(contract).find((one) => [one.create, one.update].includes(operation))
  for (const [field, rule] of Object.entries(readRules(operation))) {
    yield* bodyRuleChecks(run, operation, field, rule)
    if (rule.unique && field.includes('.*.')) yield* entryChecks(run, operation, field, rule)
    else if (rule.unique && kind?.create && kind.get)
      yield* uniqueChecks(run, operation, kind as WrittenKind, field, rule)
  }
  const { unique } = readRecordWords(contract, operation)
  if (unique && operation === kind?.create) yield togetherUnique(run, operation, kind, unique)
  yield* referenceChecks(run, operation)
  yield* recordSizeChecks(run, operation)
}

/** A request of the operation with these fields. An update is for a new record. */
async function requestWith(run: Run, operation: Operation, fields: JsonObject): Promise<Request> {
  const path = await preparePath(run, operation)
  const body = { ...(await run.records.validBody(operation)), ...fields }
  return newRequest(run, operation, path, { body })
}

function* bodyRuleChecks(
  run: Run,
  operation: Operation,
  field: string,
  { reason: why, accepts = [], refuses = [] }: Rule,
): Generator<Check> {
  for (const body of accepts)
    yield {
      what: `${field}: accepts ${JSON.stringify(body)}`,
      async perform() {
        const request = await requestWith(run, operation, body)
        await assertAccepted(run, operation, request, 'what the rule accepts')
      },
    }
  for (const body of refuses)
    yield {
      what: `${field}: refuses ${JSON.stringify(body)}`,
      async perform() {
        const request = await requestWith(run, operation, body)
        await assertRefused(run, operation, request, { fields: [field], why })
        run.tested(operation.id, 'x-refusals', field)
      },
    }
}

/** A field that is unique among the entries of a list. */
function* entryChecks(
  run: Run,
  operation: Operation,
  field: string,
  { reason: why }: Rule,
): Generator<Check> {
  const [list = ''] = field.split('.*.')
  const { items = {} } = requestSchema(run.contract, operation).properties?.[list] ?? {}
  const [first, second] = variants(items, 2)
  yield {
    what: `${field}: twice`,
    async perform() {
      const request = await requestWith(run, operation, { [list]: [first, second, second] })
      const fields = [1, 2].map((index) => field.replace('*', String(index)))
      await assertRefused(run, operation, request, { fields, why })
      run.tested(operation.id, 'x-refusals', field)
    },
  }
  yield {
    what: `${field}: two values`,
    async perform() {
      const request = await requestWith(run, operation, { [list]: [first, second] })
      await assertAccepted(run, operation, request, 'two values')
    },
  }
}

/** A field that is unique among the records. Each check begins with a new record that has the
 *  value: the holder. */
function* uniqueChecks(
  run: Run,
  operation: Operation,
  { create, get, update, remove }: WrittenKind,
  field: string,
  { reason: why, ignore_case = false }: Rule,
): Generator<Check> {
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
    const request = await send(value)
    const expected = { fields: [field], why }
    if (operation !== update) await assertRefused(run, operation, request, expected)
    else await assertUpdateRefused(run, { update, get }, request, expected)
    run.tested(operation.id, 'x-refusals', field)
  }
  const assertFree = async (value: string, what: string): Promise<void> => {
    await assertAccepted(run, operation, await send(value), what)
  }

  yield check('the value of another record', assertTaken)
  yield check('the value of another record in lower case', (value) =>
    ignore_case
      ? assertTaken(value.toLowerCase())
      : assertFree(value.toLowerCase(), 'another value'),
  )
  if (update)
    yield check('a value that the holder gave up', async (value, holder) => {
      const request = newRequest(run, update, holder, { body: { [field]: newValue() } })
      await assertAccepted(run, update, request, 'a new value of the holder')
      await assertFree(value, 'a value that no record has')
    })
  if (remove)
    yield check('the value of a deleted record', async (value, holder) => {
      await assertAccepted(run, remove, newRequest(run, remove, holder), 'the deletion')
      await assertFree(value, 'a value that no record has')
    })
  if (operation === update)
    yield check("the record's own value", async (value, holder) => {
      for (const own of [value, value.toLowerCase()]) {
        const request = newRequest(run, update, holder, { body: { [field]: own } })
        await assertAccepted(run, update, request, "the record's own value")
      }
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

/** References to records with other values than `x-refers-with` says, and IDs in upper case.
 *  references.ts tests references to records that do not exist. */
function* referenceChecks(run: Run, operation: Operation): Generator<Check> {
  const { properties = {} } = requestSchema(run.contract, operation)
  for (const [field, schema] of Object.entries(properties)) {
    const target = listKinds(run.contract).find(({ name }) => name === schema['x-refers-to'])
    if (target === undefined) continue
    for (const [name, value] of Object.entries(schema['x-refers-with'] ?? {}))
      for (const state of listStates(run, target, name))
        if (state !== value)
          yield {
            what: `${field}: a record with ${name} ${state}`,
            async perform() {
              const path = await newRecordIn(run, target, name, state)
              const id = path.split('/').at(-1)
              const request = await requestWith(run, operation, { [field]: id })
              const why = `it must refer to a record with ${name} ${value}`
              await assertRefused(run, operation, request, { fields: [field], why })
              run.tested(operation.id, 'x-refers-with', field)
            },
          }
    if (schema.format === 'uuid')
      yield {
        what: `${field}: in upper case`,
        async perform() {
          const body = await run.records.withReferences(operation, { [field]: UNKNOWN_ID })
          const id = String(body[field]).toUpperCase()
          const request = await requestWith(run, operation, { [field]: id })
          await assertAccepted(run, operation, request, `an ID in upper case in ${field}`)
        },
      }
  }
}
