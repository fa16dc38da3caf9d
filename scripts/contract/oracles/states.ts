/** Oracle: a state changes only as `states` of `x-record` says, and fields in `fixed_when` keep
 *  their values. */
import type { Operation } from '../../model/operations.ts'
import { readDefault } from '../../model/schema.ts'
import {
  meetsCondition,
  readRecordWords,
  requestSchema,
  responseSchema,
} from '../../words/records.ts'
import { ContractBroken, show } from '../contract-broken.ts'
import { type Kind, listKinds } from '../record-kinds.ts'
import type { Request } from '../request.ts'
import { type Check, newRequest, type Run, readRecord } from '../run.ts'
import { variants } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'
import { assertAccepted, assertChangesNothing, assertRefused } from './refused.ts'
import { assertRules, assertSetNow } from './stored-values.ts'

export function* stateChecks(run: Run, operation: Operation): Generator<Check> {
  const kind = listKinds(run.contract).find(({ update }) => update === operation)
  if (!kind?.get) return
  const { get } = kind
  const { states = {}, fixed_when = {} } = readRecordWords(run.contract, operation)
  for (const [name, next] of Object.entries(states))
    for (const from of listStates(run, kind, name)) {
      const toPath = () => newRecordIn(run, kind, name, from)
      for (const to of Object.keys(next))
        yield {
          what: `${name}: from ${from} to ${to}`,
          async perform() {
            const request = newRequest(run, operation, await toPath(), { body: { [name]: to } })
            const isAllowed = next[from]?.includes(to) === true
            await assertChange(run, operation, request, { name, from, to, isAllowed })
          },
        }
      for (const [field, condition] of Object.entries(fixed_when))
        if (name in condition)
          yield {
            what: `${field}: while ${name} is ${from}`,
            async perform() {
              const isFixed = meetsCondition({ [name]: from }, condition)
              await assertFixed(run, { update: operation, get }, await toPath(), { field, isFixed })
            },
          }
    }
}

interface StateChange {
  name: string
  from: string
  to: string
  isAllowed: boolean
}

async function assertChange(
  run: Run,
  update: Operation,
  request: Request,
  { name, from, to, isAllowed }: StateChange,
): Promise<void> {
  const what = `${name} ${to} after ${from}`
  if (to === from) {
    const attempt = { operation: update, request, check: 'broken_rule', what } as const
    return await assertChangesNothing(run, attempt, () =>
      assertAccepted(run, update, request, what),
    )
  }
  if (!isAllowed) {
    const why = `${name} ${to} cannot follow ${from}`
    await assertRefused(run, update, request, { fields: [name], why })
    for (const word of ['x-record.states', 'x-refusals']) run.tested(update.id, word, name)
    return
  }
  const response = await assertAccepted(run, update, request, what)
  const record = response.json
  if (record[name] !== to)
    throw new ContractBroken('broken_rule', request, `${name} is ${show(record[name])}`)
  assertRules(run, update, request, record)
  const { set_when = {} } = readRecordWords(run.contract, update)
  const { properties = {} } = responseSchema(run.contract, update)
  for (const [field, condition] of Object.entries(set_when))
    if (properties[field]?.format === 'date-time' && meetsCondition(record, condition))
      assertSetNow(request, response, field)
}

/** Throws unless the field keeps its value if `isFixed`, and can change if not. */
async function assertFixed(
  run: Run,
  { update, get }: { update: Operation; get: Operation },
  path: string,
  { field, isFixed }: { field: string; isFixed: boolean },
): Promise<void> {
  const schema = requestSchema(run.contract, update).properties?.[field] ?? {}
  const { [field]: own } = await readRecord(run, get, path)
  const other = variants(schema, 3).find((value) => value !== own && isValid(schema, value))
  const send = (value: unknown) => newRequest(run, update, path, { body: { [field]: value } })
  await assertAccepted(run, update, send(own), `the present value of ${field}`)
  if (!isFixed) {
    await assertAccepted(run, update, send(other), `a new value of ${field}`)
    return
  }
  const why = `${field} cannot change in this state`
  await assertRefused(run, update, send(other), { fields: [field], why })
  run.tested(update.id, 'x-record.fixed_when', field)
}

/** The states of `name` that a record of the kind can reach. */
export function listStates(run: Run, kind: Kind, name: string): string[] {
  return [...findRoutes(run, kind, name).keys()]
}

/** The path of a new record of the kind in the state. */
export async function newRecordIn(
  run: Run,
  kind: Kind,
  name: string,
  state: string,
): Promise<string> {
  const { create, update } = kind
  const [first, ...steps] = findRoutes(run, kind, name).get(state) ?? []
  if (!create || !update || first === undefined) throw new Error(`no record can have ${state}`)
  const canSend = name in (requestSchema(run.contract, create).properties ?? {})
  const path = await run.records.newPath(update, canSend ? { [name]: first } : {})
  for (const step of steps) {
    const request = newRequest(run, update, path, { body: { [name]: step } })
    await assertAccepted(run, update, request, `${name} ${step}`)
  }
  return path
}

/** By state: the state at the creation, and those that lead to the state. */
function findRoutes({ contract }: Run, { create, get }: Kind, name: string): Map<string, string[]> {
  if (!create || !get) return new Map()
  const { states = {}, initial = {} } = readRecordWords(contract, get)
  const schema = requestSchema(contract, create).properties?.[name]
  const begin = schema ? (schema.enum ?? [readDefault(schema)]) : [initial[name]]
  const isText = (state: unknown): state is string => typeof state === 'string'
  const routes = new Map(begin.filter(isText).map((state) => [state, [state]]))
  // The loop also visits the entries that it adds.
  for (const [state, route] of routes)
    for (const next of (states[name]?.[state] ?? []).filter(isText))
      if (!routes.has(next)) routes.set(next, [...route, next])
  return routes
}
