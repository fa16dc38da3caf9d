/** Records for the test of a list: with equal values, without values, with text of all kinds, and
 *  updated in different ways. */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../../../model/json.ts'
import type { Operation } from '../../../model/operations.ts'
import type { Schema } from '../../../model/schema.ts'
import { requestSchema } from '../../../words/records.ts'
import { findItemOperation, findOperation } from '../../record-kinds.ts'
import { newRequest, prepareRequest, type Run } from '../../run.ts'
import { minimalValue } from '../../values/valid-values.ts'
import { isValid } from '../../values/validity.ts'

/** The role of a seed, by its index. The others are created with all fields, and not changed. */
const FILLED = 0
const WITHOUT_OPTIONAL = 1
const CLEARED = 3
const DELETED = 4
/** Each field of an update is sent alone, to one of these. */
const UPDATED = [5, 6, 7]

const SEEDS = 10
const SEEDS_WITHOUT_UPDATE = 6

/** Upper and lower case, letters with accents, a space, a plus sign and a comma, two characters whose order
 *  by UTF-16 units is the reverse of their order by code points, and wildcards of SQL. */
const TEXTS = ['b', 'B', 'É + a, b', 'a', '\ufb01x', '😀', '5%_\\', 'ab']
const TIMES = [
  '2026-03-02T09:30:00.000Z',
  '2026-03-02T09:30:00.001Z',
  '2025-01-01T00:00:00+02:00',
  '2026-03-02T09:30:00.000Z',
]
const NUMBERS = [5, 3, 3_000_000_000, 40, 3]

interface Seeds {
  ids: string[]
  deletedIds: string[]
  /** The records when they were created, before their updates and deletions. */
  earlier: Seed[]
}

type Seed = JsonObject & { id: string }

/** Creates records in the list at `path`, updates most of them, and deletes one. Creates none if
 *  the list has no operation that creates records. */
export async function createSeeds(
  run: Run,
  list: Operation,
  path: string,
  { texts = TEXTS, count }: { texts?: string[]; count?: number } = {},
): Promise<Seeds> {
  const create = findOperation(run.contract, 'post', list.path)
  const update = findItemOperation(run.contract, 'patch', list.path)
  const remove = findItemOperation(run.contract, 'delete', list.path)
  const end = count ?? (update ? SEEDS : SEEDS_WITHOUT_UPDATE)
  const seeds: (Seed | undefined)[] = []
  for (let index = 0; create && index < end; index += 1)
    seeds.push(await createSeed(run, { create, path, texts }, index))
  const deleted = remove && seeds[DELETED]
  if (remove && deleted) await run.send(remove, newRequest(run, remove, `${path}/${deleted.id}`))
  for (const [index, seed] of seeds.entries())
    if (update && seed && seed !== deleted)
      await updateSeed(run, { update, path: `${path}/${seed.id}`, texts }, index)
  const earlier = seeds.filter((seed) => seed !== undefined)
  const ids = earlier.filter((seed) => seed !== deleted).map(({ id }) => id)
  return { ids, deletedIds: deleted ? [deleted.id] : [], earlier }
}

async function createSeed(
  run: Run,
  { create, path, texts }: { create: Operation; path: string; texts: string[] },
  index: number,
): Promise<Seed | undefined> {
  const { properties = {}, required = [] } = requestSchema(run.contract, create)
  const body = Object.fromEntries(
    Object.entries(properties)
      // Records whose text repeats have the required fields only: other text may have to be unique.
      .filter(
        ([name]) => (index > WITHOUT_OPTIONAL && index < texts.length) || required.includes(name),
      )
      .map(([name, schema]) => [name, seedValue(schema, index, texts)]),
  )
  const request = await prepareRequest(run, create, { body }, path)
  const { json } = await run.send(create, request)
  const seed = (json ?? {}) as JsonObject
  return typeof seed.id === 'string' ? (seed as Seed) : undefined
}

function seedValue(schema: Schema, index: number, texts: string[]): unknown {
  const { type, format = type, enum: options, items } = schema
  const kind = type === 'string' ? format : type
  if (options) return options[index % options.length]
  const text = texts[index % texts.length]
  const candidates: Partial<Record<string, unknown[]>> = {
    email: [`${'aAbB'[index % 4]}.${randomUUID()}@example.com`],
    'date-time': [TIMES[index % TIMES.length]],
    string: [text],
    integer: [NUMBERS[index % NUMBERS.length], index],
    // 'all' is in each of these lists, so that a filter finds several records.
    array: items?.type === 'string' ? [[text, 'all']] : [],
  }
  const found = candidates[kind ?? '']?.find((value) => isValid(schema, value))
  return found ?? minimalValue(schema)
}

/** Enumerations with this many options or more, such as currencies, stay as they are: so few records
 *  cannot have all options. */
const TOO_MANY_OPTIONS = 10

/** Sends the updates of the seed's role, then sets the first field with a short enumeration to an
 *  option that depends on `index`. The service may refuse each update. */
async function updateSeed(
  run: Run,
  { update, path, texts }: { update: Operation; path: string; texts: string[] },
  index: number,
): Promise<void> {
  const { properties = {} } = requestSchema(run.contract, update)
  const [chosen = '', { enum: options = [] } = {}] =
    Object.entries(properties).find(
      ([, { enum: values }]) => values !== undefined && values.length < TOO_MANY_OPTIONS,
    ) ?? []
  const fields = Object.entries(properties).filter(([name]) => name !== chosen)
  const choices = options.length > 0 ? [{ [chosen]: options[index % options.length] }] : []
  for (const body of [...listUpdates(fields, index, texts), ...choices])
    await run.send(update, await prepareRequest(run, update, { body }, path))
}

/** The bodies of the updates, each with one field. The texts of the filled seed are new, because text
 *  may have to be unique. Those of others are texts of other seeds, so that there are equal values
 *  to sort by. */
function listUpdates(fields: [string, Schema][], index: number, texts: string[]): JsonObject[] {
  const own = index === FILLED ? texts.map((text) => `${text}2`) : texts
  return fields.flatMap(([name, schema], position): JsonObject[] => {
    const { nullable, type, minItems } = schema
    if (index === CLEARED && nullable) return [{ [name]: null }]
    if (index === CLEARED && type === 'array' && !minItems) return [{ [name]: [] }]
    const isSent = index === FILLED || index === UPDATED[position % UPDATED.length]
    return isSent ? [{ [name]: seedValue(schema, index + 1 + position, own) }] : []
  })
}
