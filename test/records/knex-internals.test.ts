/** The private parts of knex and sqlite3 that records/database/knex-internals.ts relies on. */
import { createRequire } from 'node:module'
import type pg from 'pg'
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest'
import {
  acquireConnection,
  discardConnection,
  releaseConnection,
  UNPREPARED,
} from '../../records/database/knex-internals.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type OpenDatabase, openNewDatabase } from '../helpers.ts'

const onPostgres = inject('database') === 'postgres'

let database: OpenDatabase
let db: Db

beforeAll(async () => {
  database = await openNewDatabase()
  db = database.db
  await db.write.raw('create table notes (text varchar(10))')
})
afterAll(() => database[Symbol.asyncDispose]())

/** How many statements the only writing connection prepares during `use`. */
async function countPrepared(use: () => Promise<unknown>): Promise<number> {
  const connection = (await acquireConnection(db.write)) as unknown as { prepare(): unknown }
  const prepare = vi.spyOn(connection, 'prepare')
  releaseConnection(db.write, connection as object)
  await use()
  const calls = prepare.mock.calls.length
  prepare.mockRestore()
  return calls
}

test('a released connection is used again, and a discarded one is replaced', async () => {
  const first = await acquireConnection(db.write)
  releaseConnection(db.write, first)
  const second = await acquireConnection(db.write)
  discardConnection(second, 'broken')
  releaseConnection(db.write, second)
  const third = await acquireConnection(db.write)
  releaseConnection(db.write, third)
  expect(second).toBe(first)
  expect(third).not.toBe(first)
})

test.runIf(onPostgres)('knex calls `query` of the connection that a query names', async () => {
  const queries: unknown[] = []
  const connection = await acquireConnection(db.write)
  const recording = {
    query(...args: unknown[]) {
      queries.push(args[0])
      return connection.query?.(...args)
    },
  }
  await db.write.raw('select 1').connection(recording)
  releaseConnection(db.write, connection)
  expect(queries).toMatchObject([{ text: 'select 1' }])
})

test.runIf(onPostgres)('statements that are sent in a row share one write', async () => {
  const connection = await acquireConnection(db.write)
  const client = connection as unknown as pg.Client
  const { stream } = client.connection
  const writes = [vi.spyOn(stream, '_write'), vi.spyOn(stream, '_writev' as '_write')]
  await Promise.all([client.query('select 1'), client.query('select $1::int', [2])])
  expect(writes.map(({ mock }) => mock.calls.length)).toEqual([0, 1])
  vi.restoreAllMocks()
  releaseConnection(db.write, connection)
})

test.skipIf(onPostgres).each(['_query', 'destroyRawConnection', 'acquireRawConnection'])(
  "knex's SQLite client has %s",
  (method) => {
    const client = createRequire(import.meta.url)('knex/lib/dialects/sqlite3/index.js')
    expect(client.prototype[method]).toBeTypeOf('function')
  },
)

test.skipIf(onPostgres)('a statement is prepared once, also in transactions', async () => {
  const calls = await countPrepared(async () => {
    for (const text of ['one', 'two', 'three']) {
      await db.write('notes').insert({ text })
      await transaction(db, ({ sql }) => sql('notes').insert({ text }))
    }
  })
  const controlStatements = ['BEGIN IMMEDIATE', 'COMMIT'].length
  expect(calls).toBe(1 + controlStatements)
  expect(await db.read('notes').count({ count: '*' })).toEqual([{ count: 6 }])
})

test.skipIf(onPostgres)('UNPREPARED and long statements are not prepared', async () => {
  const values = new Array(1_000).fill(1)
  const placeholders = values.map(() => '?').join(', ')
  const calls = await countPrepared(async () => {
    await db.write.raw('select ?', [1]).options(UNPREPARED)
    await db.write.raw(`select ${placeholders}${' '.repeat(4_000)}`, values)
  })
  expect(calls).toBe(0)
})

test.skipIf(onPostgres)('a statement that fails to prepare fails each time', async () => {
  for (let run = 0; run < 2; run++)
    await expect(db.write.raw('select missing from notes')).rejects.toThrow('no such column')
})

test.skipIf(onPostgres)('a transaction locks the database before its first statement', async () => {
  const other = database.reopen()
  await other.write.raw('pragma busy_timeout = 0')
  await transaction(db, async () => {
    await expect(other.write('notes').insert({ text: 'other' })).rejects.toThrow('SQLITE_BUSY')
  })
  await other.close()
})

test.skipIf(onPostgres)('a database with prepared statements closes', async () => {
  const other = database.reopen()
  await other.write('notes').insert({ text: 'last' })
  await expect(other.close()).resolves.toBeUndefined()
})
