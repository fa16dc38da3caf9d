/** Records for the test of a list: with equal values, without values, and with text of all
 *  kinds. */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operations.ts'
import type { Schema } from '../../model/schema.ts'
import { requestSchema } from '../../words/records.ts'
import { findItemOperation, findOperation } from '../record-kinds.ts'
import { prepareRequest, type Run } from '../run.ts'
import { minimalValue } from '../values/valid-values.ts'
import { isValid } from '../values/validity.ts'

const SEEDS = 6

/** Upper and lower case, letters with accents, a space and a plus sign, and two characters whose order
 *  by UTF-16 units is the reverse of their order by code points. */
const TEXTS = ['b', 'B', 'É + a', 'a', '\ufb01x', '😀']
const TIMES = [
  '2026-03-02T09:30:00.000Z',
  '2026-03-02T09:30:00.001Z',
  '2025-01-01T00:00:00+02:00',
  '2026-03-02T09:30:00.000Z',
]
const NUMBERS = [5, 3, 3_000_000_000, 40, 3]

/** Creates records in the list at `path` and returns their IDs. Returns none if the list has no
 *  operation that creates records. */
export async function createSeeds(
  run: Run,
  list: Operation,
  path: string,
  { texts = TEXTS, count = SEEDS }: { texts?: string[]; count?: number } = {},
): Promise<string[]> {
  const create = findOperation(run.contract, 'post', list.path)
  if (create === undefined) return []
  const update = findItemOperation(run.contract, 'patch', list.path)
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const id = await createSeed(run, { create, path, texts }, index)
    if (id === undefined) continue
    ids.push(id)
    if (update) await chooseOption(run, update, `${path}/${id}`, index)
  }
  return ids
}

async function createSeed(
  run: Run,
  { create, path, texts }: { create: Operation; path: string; texts: string[] },
  index: number,
): Promise<string | undefined> {
  const { properties = {}, required = [] } = requestSchema(run.contract, create)
  const body = Object.fromEntries(
    Object.entries(properties)
      // The first two records have the required fields only. So have records whose text repeats, which
      // may have to be unique.
      .filter(([name]) => (index > 1 && index < texts.length) || required.includes(name))
      .map(([name, schema]) => [name, seedValue(schema, index, texts)]),
  )
  const request = await prepareRequest(run, create, { body }, path)
  const { json } = await run.send(create, request)
  const { id } = (json ?? {}) as { id?: unknown }
  return typeof id === 'string' ? id : undefined
}

function seedValue(schema: Schema, index: number, texts: string[]): unknown {
  const candidates = candidatesOf(schema, index, texts)
  return candidates.find((value) => isValid(schema, value)) ?? minimalValue(schema)
}

function candidatesOf(
  { type, format, enum: options, items }: Schema,
  index: number,
  texts: string[],
): unknown[] {
  if (options) return [options[index % options.length]]
  if (format === 'email') return [`${'aAbB'[index % 4]}.${randomUUID()}@example.com`]
  if (format === 'date-time') return [TIMES[index % TIMES.length]]
  if (format !== undefined && type === 'string') return []
  const text = texts[index % texts.length]
  switch (type) {
    case 'string':
      return [text]
    case 'integer':
      return [NUMBERS[index % NUMBERS.length], index]
    case 'array':
      // 'all' is in each of these lists, so that a filter finds several records.
      return items?.type === 'string' ? [[text, 'all']] : []
    default:
      return []
  }
}

/** `chooseOption` skips an enumeration with this many options or more, such as currencies: so few
 *  records cannot have all options. */
const TOO_MANY_OPTIONS = 10

/** Sets the first field with a short enumeration to an option that depends on `index`. The service
 *  may refuse the update. */
async function chooseOption(
  run: Run,
  update: Operation,
  path: string,
  index: number,
): Promise<void> {
  const { properties = {} } = requestSchema(run.contract, update)
  const [name, schema] =
    Object.entries(properties).find(
      ([, { enum: values }]) => values !== undefined && values.length < TOO_MANY_OPTIONS,
    ) ?? []
  if (name === undefined || schema?.enum === undefined) return
  const body = { [name]: schema.enum[index % schema.enum.length] }
  const request = await prepareRequest(run, update, { body }, path)
  await run.send(update, request)
}
