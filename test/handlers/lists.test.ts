/** Pages, orders and filters of every list, over records with equal and with null fields. */
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { type OperationId, operations } from '../../generated/operations.ts'
import { openDatabase } from '../../records/database/open.ts'
import {
  type Answer,
  type Client,
  operationIds,
  operationOf,
  pathOf,
  sharedApp,
} from '../helpers.ts'
import {
  type FilterCase,
  filterCasesFor,
  fixtureFor,
  minuteToMs,
  type Seeded,
  seedAll,
} from '../resources.ts'
import { type Body, newJob, newParticipant } from './new-records.ts'

let clock = minuteToMs(0)
let client: Client
let seeded: Seeded
/** All records of the account, by the ID of the list operation. */
const allRecords: Record<string, Body[]> = {}

const listIds = operationIds.filter((id) => /^list(?!Exports|Imports|EventTypes|Webhooks)/.test(id))
const list = (id: OperationId, query: string): Promise<Answer> =>
  client.get(`${pathOf(id)}?${query}`)
const idsOf = (answer: Answer): string[] =>
  answer.body.data.map((record: { id: string }) => record.id)

const app = sharedApp({ now: () => new Date(clock) })
beforeAll(async () => {
  const setMinute = (minute: number): void => {
    clock = minuteToMs(minute)
  }
  // Another account with the same records, which no list may contain.
  await seedAll(await app.newClient(), setMinute)
  client = await app.newClient()
  seeded = await seedAll(client, setMinute)
  for (const id of listIds) allRecords[id] = (await list(id, 'page[size]=100')).body.data
})

/** Compares texts by code point. JavaScript itself would compare UTF-16 code units. */
const compare = (a: string | number, b: string | number): number =>
  typeof a === 'number' ? a - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(String(b)))

/** The IDs of the records in the order that a list must have with these sorts. */
function sortedIds(records: Body[], sorts: string[]): string[] {
  const order = (a: Body, b: Body): number => {
    for (const sort of sorts) {
      const field = sort.replace('-', '')
      const [left, right] = [a[field], b[field]]
      if (left === right) continue
      if (left === null || right === null) return left === null ? 1 : -1
      return compare(left, right) * (sort.startsWith('-') ? -1 : 1)
    }
    // Equal values: by ID, in the direction of the last sort.
    return compare(a.id, b.id) * (sorts.at(-1)?.startsWith('-') ? -1 : 1)
  }
  return records.toSorted(order).map(({ id }) => id)
}

describe.each(listIds)('%s', (id) => {
  const directions = operations[id].sorts.flatMap((sort) => [sort, `-${sort}`])

  test('no sort → ordered by creation', async () => {
    const answer = await list(id, 'page[size]=100')
    expect(idsOf(answer)).toEqual(sortedIds(allRecords[id] ?? [], []))
    expect(answer.body.meta.allowed_sorts).toEqual(operations[id].sorts)
  })

  test.each(directions)('sort=%s → by code point, null last, equal values by ID', async (sort) => {
    const answer = await list(id, `page[size]=100&sort=${sort}`)
    expect(idsOf(answer)).toEqual(sortedIds(allRecords[id] ?? [], [sort]))
  })

  const [firstSort, secondSort] = operationOf(id).sorts
  test.runIf(secondSort)('several sorts → the first decides, then the next', async () => {
    for (const sorts of [
      [`-${firstSort}`, `${secondSort}`],
      [`${firstSort}`, `-${secondSort}`],
    ])
      expect(idsOf(await list(id, `page[size]=100&sort=${sorts}`))).toEqual(
        sortedIds(allRecords[id] ?? [], sorts),
      )
  })

  test('a field in both directions → 422 on sort', async () => {
    const [sort] = operations[id].sorts
    const { status, body } = await list(id, `sort=${sort},-${sort}`)
    expect([status, Object.keys(body.errors)]).toEqual([422, ['sort']])
  })

  test.each(['', ...directions])(
    'pages of 2, sort=%s → every record once, in the same order',
    async (sort) => {
      const query = sort && `&sort=${sort}`
      const total = allRecords[id]?.length ?? 0
      const last_page = Math.ceil(total / 2)
      const readPage = async (page: number): Promise<string[]> => {
        const answer = await list(id, `page[size]=2&page[number]=${page}${query}`)
        const meta = { current_page: page, last_page, per_page: 2, total }
        expect(answer.body.meta).toMatchObject(meta)
        expect(answer.body.meta.next_cursor === null).toBe(page === last_page)
        return idsOf(answer)
      }
      const backwards: string[] = []
      for (let page = last_page; page >= 1; page--) backwards.unshift(...(await readPage(page)))
      const forwards: string[] = []
      for (let page = 1; page <= last_page; page++) forwards.push(...(await readPage(page)))
      const expected = sortedIds(allRecords[id] ?? [], sort ? [sort] : [])
      expect({ backwards, forwards }).toEqual({ backwards: expected, forwards: expected })
    },
  )

  test.each(['', ...directions])(
    'pages of 2 by cursor, sort=%s → the same order, each page read from an index',
    async (sort) => {
      const query = `page[size]=2${sort && `&sort=${sort}`}`
      const expected = sortedIds(allRecords[id] ?? [], sort ? [sort] : [])
      const walked: string[] = []
      const statements = new Map<string, Statement>()
      for (let after = '', page = 1; ; page++) {
        const collect = (statement: Statement): void =>
          void statements.set(statement.sql, statement)
        app.db.read.on('query', collect)
        const { body, headers } = await list(id, query + after)
        app.db.read.off('query', collect)
        walked.push(...body.data.map((record: Body) => record.id))
        expect(body.meta).toMatchObject({ current_page: page, total: expected.length })
        const { next_cursor } = body.meta
        after = `&page%5Bafter%5D=${next_cursor}`
        expect(headers.get('Link')).toBe(
          next_cursor && `<${operations[id].path}?${query}${after}>; rel="next"`,
        )
        if (next_cursor === null) break
      }
      expect(walked).toEqual(expected)
      for (const { sql, bindings } of statements.values())
        if (/order by/.test(sql)) assertOrderedByIndex(await planOf(sql, bindings))
    },
  )

  test('a page past the last → 200 without records', async () => {
    const { status, body } = await list(id, 'page[number]=10000000&page[size]=100')
    expect([status, body.data, body.meta.current_page, body.meta.last_page]).toEqual([
      200,
      [],
      10_000_000,
      1,
    ])
  })

  test('an account without records → last_page 1, although another account has records', async () => {
    const { body } = await (await app.newClient()).get(pathOf(id))
    const meta = {
      current_page: 1,
      last_page: 1,
      per_page: 25,
      total: 0,
      allowed_sorts: operations[id].sorts,
      next_cursor: null,
      complete_until: 'created_from' in operations[id].filters ? expect.any(String) : null,
    }
    expect(body).toEqual({ data: [], meta })
  })

  test.each(['', ...directions])('sort=%s → read in order from an index', async (sort) => {
    const [page] = (await statementsOf(id, sort && `sort=${sort}`)).filter(({ sql }) =>
      /order by/.test(sql),
    )
    assertOrderedByIndex(await planOf(page?.sql ?? '', page?.bindings ?? []))
  })
})

function assertOrderedByIndex(plan: string): void {
  expect(plan).toMatch(/index/i)
  expect(plan).not.toMatch(/temp b-tree|seq scan|\bsort\b/i)
}

interface Statement {
  sql: string
  bindings: unknown[]
}

/** The two statements of a list request: the count, and the page. */
async function statementsOf(id: OperationId, query: string): Promise<Statement[]> {
  const statements: Statement[] = []
  const collect = (statement: Statement): void => void statements.push(statement)
  app.db.read.on('query', collect)
  await list(id, query)
  app.db.read.off('query', collect)
  return statements.filter(({ sql }) => /count\(|sum\(records\)|order by/.test(sql))
}

/** The query plan. PostgreSQL must plan as for large tables: without scans and sorts if
 *  possible. */
async function planOf(sql: string, bindings: unknown[]): Promise<string> {
  const text = sql.replaceAll(/\$\d+/g, '?')
  // A connection of its own: on SQLite, EXPLAIN leaves its connection with a stale snapshot.
  const db = openDatabase(app.config.database)
  try {
    if (inject('database') === 'sqlite') {
      const steps = (await db.read.raw(`explain query plan ${text}`, bindings as string[])) as {
        detail: string
      }[]
      return steps.map(({ detail }) => detail).join('\n')
    }
    return await db.write.transaction(async (trx) => {
      for (const setting of [
        'enable_seqscan',
        'enable_sort',
        'enable_incremental_sort',
        'enable_bitmapscan',
      ])
        await trx.raw(`set local ${setting} = off`)
      const { rows } = await trx.raw(`explain ${text}`, bindings as string[])
      return rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n')
    })
  } finally {
    await db.close()
  }
}

const filterValue = ([value]: FilterCase): string =>
  typeof value === 'string' ? value : value(seeded)

describe.each(listIds)('%s: the filters', (id) => {
  const cases = Object.entries(filterCasesFor(id)).map(([name, [first, ...others]]) => ({
    name,
    first: first as FilterCase,
    others,
  }))
  const matchesOf = ([, matches]: FilterCase): Body[] =>
    (allRecords[id] ?? []).filter((record) => matches(record, seeded))

  test('each filter has test cases', () =>
    expect(cases.map(({ name }) => name).sort()).toEqual(
      Object.keys(operations[id].filters).sort(),
    ))

  test.each(cases)(
    'filter[$name] → the records that match, counted and in order',
    async ({ name, first, others }) => {
      for (const filterCase of [first, ...others]) {
        const value = filterValue(filterCase)
        const answer = await list(id, `page[size]=100&filter[${name}]=${value}`)
        const ids = matchesOf(filterCase).map((record) => record.id)
        expect({ value, ids: idsOf(answer), total: answer.body.meta.total }).toEqual({
          value,
          ids,
          total: ids.length,
        })
      }
      // A case that matches none or all of the records proves nothing: at least one matches some.
      const total = allRecords[id]?.length ?? 0
      const counts = [first, ...others].map((filterCase) => matchesOf(filterCase).length)
      expect(counts.some((count) => count > 0 && count < total)).toBe(true)
    },
  )

  test.each(cases)(
    'filter[$name] with each sort, in pages of 2 → every record once, in the same order',
    async ({ name, first }) => {
      const query = `filter[${name}]=${filterValue(first)}`
      const matching = matchesOf(first)
      for (const sort of operations[id].sorts.map((field, index) =>
        index % 2 ? field : `-${field}`,
      )) {
        const walked: string[] = []
        for (let page = 1, last = 1; page <= last; page++) {
          const answer = await list(id, `${query}&sort=${sort}&page[size]=2&page[number]=${page}`)
          last = answer.body.meta.last_page
          expect(answer.body.meta.total).toBe(matching.length)
          walked.push(...idsOf(answer))
        }
        expect({ sort, walked }).toEqual({ sort, walked: sortedIds(matching, [sort]) })
      }
    },
  )

  // Among several indexes, PostgreSQL chooses by the size of the tables, and these are nearly empty.
  const planIsFixed = inject('database') === 'sqlite'
  // The other filters of deliveries read the deliveries of the account in order.
  const indexed = id === 'listDeliveries' ? ['webhook_id'] : cases.map(({ name }) => name)
  test.runIf(planIsFixed).each(cases.filter(({ name }) => indexed.includes(name)))(
    'filter[$name] → found by an index',
    async ({ name, first }) => {
      const column =
        name === 'email' ? 'email_key' : name.replace(/_(after|before|from|until)$/, '_at')
      const all = await statementsOf(id, `filter[${name}]=${filterValue(first)}`)
      // A search first asks its index alone whether it finds few records.
      const statements = all.filter(({ sql }) => sql.includes('account_id'))
      expect(statements).toHaveLength(2)
      for (const { sql, bindings } of statements) {
        const compared = sql.includes('sum(records)') ? 'value' : column
        const expected =
          name === 'search'
            ? /INTEGER PRIMARY KEY \(rowid=/
            : new RegExp(`INDEX \\w+ \\((.* AND )?${compared}[=<>]`)
        expect(await planOf(sql, bindings)).toMatch(expected)
      }
    },
  )
})

describe('listParticipants, listJobs: search', () => {
  const searches: { search: string; text: string }[] = [
    { search: 'STRASSE', text: 'Große Straße' },
    { search: 'straße', text: 'GROSSE STRASSE' },
    { search: 'ΟΔΥΣ', text: 'Οδυσσεας' },
    { search: 'ΕΥΣ', text: 'οδυσσευς ο πολυτροπος' },
    { search: 'caf\u00e9', text: 'Cafe\u0301' },
    { search: 'CAFE\u0301', text: 'café' },
    { search: 'дом', text: 'ДОМ' },
    { search: '日本', text: '日本語' },
    { search: "o'br", text: "Flann O'Brien" },
    { search: '𝔄', text: '𝔄da' },
  ]
  test.each(searches)('$search → finds $text', async ({ search, text }) => {
    const otherClient = await app.newClient()
    await newParticipant(otherClient, { full_name: text })
    await newParticipant(otherClient, { full_name: 'Somebody else' })
    await newJob(otherClient, { title: text })
    await newJob(otherClient, { title: 'Something else', description: text })
    const total = async (path: string): Promise<number> =>
      (await otherClient.get(`${path}?filter[search]=${encodeURIComponent(search)}`)).body.meta
        .total
    expect([await total('/participants'), await total('/jobs')]).toEqual([1, 2])
  })
})

test('listParticipants: several filters and a sort → all must match', async () => {
  const answer = await list(
    'listParticipants',
    'filter[status]=active,archived&filter[tag]=vip&filter[search]=a&sort=-email',
  )
  const expected = (allRecords.listParticipants ?? []).filter(
    ({ status, tags, full_name, email }) =>
      status !== 'inactive' && tags.includes('vip') && /a/i.test(`${full_name}${email}`),
  )
  expect(idsOf(answer)).toEqual(sortedIds(expected, ['-email']))
  expect(answer.body.meta.total).toBe(expected.length)
})

test('a resource without test data → an error that names the file to edit', () =>
  expect(() => fixtureFor({ type: 'room', slug: 'rooms' })).toThrow(
    /^Add rooms to test\/resources.ts: /,
  ))
