/** `filter[search]` by the index of trigrams: the same records as a comparison of every text. */
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { foldText } from '../../records/search.ts'
import { type Client, newDatabase, startApp, type TestApp, until } from '../helpers.ts'
import { newJob, newParticipant } from './new-records.ts'

const dialect = inject('database')

/** Parts of texts that are special to an index, a pattern or a language. */
const PARTS = [
  ...['a', 'b', 'ab', 'A', ' ', '  ', '%', '_', '\\', '"', "'", '*', '-', '.', '@', '0'],
  ...[
    'ß',
    'SS',
    'ς',
    'Σ',
    'é',
    'e\u0301',
    'İ',
    'ı',
    'Ж',
    'ж',
    '日',
    '本',
    '語',
    '𝔄',
    'ﬁ',
    'AND',
    'or',
  ],
]

/** A generator of numbers below `limit`, the same in each run. */
function newRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * limit)
  }
}

const random = newRandom(20)
const randomText = (parts: number): string =>
  Array.from({ length: parts }, () => PARTS[random(PARTS.length)]).join('')

async function search(client: Client, path: string, text: string): Promise<string[]> {
  const query = `filter[search]=${encodeURIComponent(text)}&page[size]=100&sort=created_at`
  const { status, body } = await client.get(`${path}?${query}`)
  expect({ text, status }).toEqual({ text, status: 200 })
  expect(body.meta.total).toBe(body.data.length)
  return body.data.map(({ id }: { id: string }) => id)
}

/** Leaves PostgreSQL no other plan than one by the index of searches. SQLite has no other one. */
async function startWithForcedIndex(): Promise<TestApp> {
  const database = await newDatabase()
  if ('DATA_DIR' in database.environment) return startApp({})
  const databaseUrl = database.environment.DATABASE_URL
  const settings = ['enable_seqscan', 'enable_indexscan', 'enable_indexonlyscan']
  const db = openDatabase({ databaseUrl })
  for (const setting of settings)
    await db.write.raw(
      `alter database ${new URL(databaseUrl).pathname.slice(1)} set ${setting} = off`,
    )
  await db.close()
  const app = await startApp({ database })
  for (const table of ['participants', 'jobs'])
    await app.db.write.raw(`alter table ${table} drop constraint ${table}_pkey cascade`)
  const indexes = await app.db.write.raw(
    `select indexname as name from pg_indexes
     where tablename in ('participants', 'jobs') and indexdef like '%(account_id, %'`,
  )
  for (const { name } of indexes.rows) await app.db.write.raw(`drop index ${name}`)
  return app
}

test('random texts → the records that contain them, after creates, updates and deletes', async () => {
  await using app = await startWithForcedIndex()
  const client = await app.newClient()
  const otherClient = await app.newClient()
  const texts = new Map<string, string>()
  const newText = (): string => `x${randomText(1 + random(8))}`
  for (let count = 0; count < 40; count++) {
    const full_name = newText()
    const { id } = await newParticipant(client, { full_name, email: null })
    await newParticipant(otherClient, { full_name, email: null })
    texts.set(id, full_name)
  }
  for (const id of [...texts.keys()].filter((_, index) => index % 3 === 0)) {
    const full_name = newText()
    await client.patch(`/participants/${id}`, { full_name })
    texts.set(id, full_name)
  }
  for (const id of [...texts.keys()].filter((_, index) => index % 5 === 0)) {
    await client.delete(`/participants/${id}`)
    texts.delete(id)
  }

  let found = 0
  for (let count = 0; count < 150; count++) {
    const [text = ''] = [...texts.values()].slice(random(texts.size))
    const start = random(text.length)
    const part = text.slice(start, start + 1 + random(8)).toWellFormed()
    const searched = [part, part.toUpperCase(), randomText(1 + random(4))][random(3)] ?? ''
    const expected = [...texts].filter(([, name]) => foldText(name).includes(foldText(searched)))
    const ids = await search(client, '/participants', searched)
    expect({ searched, ids: ids.sort() }).toEqual({
      searched,
      ids: expected.map(([id]) => id).sort(),
    })
    found += expected.length
  }
  expect(found).toBeGreaterThan(200)
})

test('the search reads the index of its table', async () => {
  await using app = await startWithForcedIndex()
  const client = await app.newClient()
  const participant = await newParticipant(client, { full_name: 'Ada Lovelace' })
  const job = await newJob(client, { title: 'Interpreter', description: 'For LOVELACE.' })
  const searchBoth = async () => [
    await search(client, '/participants', 'lovelace'),
    await search(client, '/jobs', 'lovelace'),
  ]
  expect(await searchBoth()).toEqual([[participant.id], [job.id]])
  if (dialect === 'sqlite') {
    for (const table of ['participants', 'jobs'])
      await app.db.write.raw(`insert into ${table}_search (${table}_search) values ('delete-all')`)
    expect(await searchBoth()).toEqual([[], []])
    return
  }
  const isRead = async (): Promise<boolean> => {
    const { rows } = await app.db.read.raw(
      `select from pg_stat_all_indexes
       where indexrelname in ('participants_search', 'jobs_search') and idx_scan >= 2`,
    )
    return rows.length === 2
  }
  // The statistics of a connection arrive later.
  await until('each index was read twice', isRead)
})

test.runIf(dialect === 'postgres')('without the extension pg_trgm: the same records', async () => {
  await using app = await startApp()
  await app.db.write.raw('drop extension pg_trgm cascade')
  const client = await app.newClient()
  const { id } = await newParticipant(client, { full_name: 'Ada Lovelace' })
  expect(await search(client, '/participants', 'LOVE')).toEqual([id])
  expect((await app.call('GET', '/readyz')).status).toBe(200)
})

describe.runIf(dialect === 'sqlite')('SQLite', () => {
  test('more texts contain all trigrams than the index may look up → all records', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    const client = app.as(account)
    const { id } = await newParticipant(client, { full_name: 'The first of many' })
    await app.db.write.raw(
      `with recursive numbers (number) as (
         select 1 union all select number + 1 from numbers where number < 10000)
       insert into participants (id, account_id, full_name, status, tags, search_text, created_at, updated_at)
       select printf('00000000-0000-7000-8000-%012d', number), ?, 'Many', 'active', '[]', 'one of many', 1, 1
       from numbers`,
      [account.accountId],
    )
    const total = async (text: string) =>
      (await client.get(`/participants?filter[search]=${text}`)).body.meta.total
    expect([await total('MANY'), await total('one of')]).toEqual([10_001, 10_000])
    expect(await search(client, '/participants', 'first')).toEqual([id])
  })

  test('after VACUUM, and in a copy of the file: the same records', async () => {
    await using database = await newDatabase()
    await using copy = await newDatabase()
    const environment = { SECRET_KEY: 'a secret key that only tests would ever use' }
    let key: string
    let ids: string[]
    {
      await using app = await startApp({ database, environment })
      const account = await app.newAccount()
      key = account.key
      const client = app.as(account)
      const created = []
      for (const full_name of ['Ada Lovelace', 'Grace Hopper', 'Ada Yonath'])
        created.push(await newParticipant(client, { full_name }))
      // From here on, the rows have other positions than their rowids.
      await client.delete(`/participants/${created[1].id}`)
      ids = [created[0].id, created[2].id]
      await app.db.write.raw('vacuum')
      expect(await search(client, '/participants', 'ada')).toEqual(ids)
      if ('DATA_DIR' in copy.environment)
        await app.db.write.raw('vacuum into ?', [join(copy.environment.DATA_DIR, 'muster.sqlite')])
    }
    await using app = await startApp({ database: copy, environment })
    const client = app.as({ key })
    expect(await search(client, '/participants', 'ada')).toEqual(ids)
    await client.patch(`/participants/${ids[0]}`, { full_name: 'Augusta King' })
    expect(await search(client, '/participants', 'ada')).toEqual(ids.slice(1))
    expect(await search(client, '/participants', 'king')).toEqual(ids.slice(0, 1))
  })
})
