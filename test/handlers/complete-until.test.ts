/** `meta.complete_until`: a synchronisation that continues from it misses no change. */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { expect, inject, test, vi } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { accountTransaction } from '../../records/database/scope.ts'
import { insertTask } from '../../records/tasks.ts'
import { emit } from '../../webhooks/emit.ts'
import { type Answer, type Client, databaseUrlOf, sharedApp, until } from '../helpers.ts'
import { newTask } from './new-records.ts'

/** Longer than the margin of `findCompleteUntil`. `HELD_OPEN_MS=60000` for a thorough run. */
const HELD_OPEN_MS = Number(process.env.HELD_OPEN_MS ?? 9_000)
/** PostgreSQL ends transactions that are idle for 8 s. */
const STATEMENT_EVERY_MS = 1_000
vi.setConfig({ testTimeout: HELD_OPEN_MS + 60_000 })

const isPostgres = inject('database') === 'postgres'
const app = sharedApp()

const untilOf = ({ body }: Answer): string => body.meta.complete_until
const tasksOf = ({ body }: Answer): string[] => body.data.map(({ id }: { id: string }) => id)

/** A transaction of another node. On SQLite, there is one node. */
async function holdOpen(accountId: string) {
  const { db } = isPostgres ? { db: openDatabase(app.config.database) } : app
  const { promise: begun, resolve: begin } = Promise.withResolvers<string>()
  const committed = accountTransaction(db, accountId, async (scope) => {
    const now = new Date()
    const { id } = await insertTask(scope, { title: 'Late', description: '', status: 'open' }, now)
    await emit(scope, { eventType: 'task.created', resourceId: id, data: [] }, now)
    begin(now.toISOString())
    for (const until = Date.now() + HELD_OPEN_MS; Date.now() < until; ) {
      await scope.sql.raw('select 1')
      await delay(STATEMENT_EVERY_MS)
    }
    return id
  })
  const result = committed.finally(() => isPostgres && db.close())
  return { changedAt: await begun, committed: result }
}

/** A backup, or a report: it reads for a long time. */
async function openReader(): Promise<{ close(): Promise<void> }> {
  if (!isPostgres) return { close: async () => undefined }
  const connectionString = databaseUrlOf(app.database)
  const client = new pg.Client({ connectionString, application_name: 'pg_dump' })
  await client.connect()
  await client.query('begin; select count(*) from tasks')
  return { close: () => client.end() }
}

test('a change that commits late → complete_until waits for it, so that no synchronisation misses it', async () => {
  const account = await app.newAccount()
  const client: Client = app.as(account)
  const reader = await openReader()
  const { changedAt, committed } = await holdOpen(account.accountId)
  await delay(HELD_OPEN_MS - STATEMENT_EVERY_MS / 2)
  const [tasks, events] = [await client.get('/tasks'), await client.get('/events')]
  expect(tasksOf(tasks)).toEqual([])
  const id = await committed
  const continued = await client.get(`/tasks?filter[updated_from]=${untilOf(tasks)}`)
  expect(tasksOf(continued)).toEqual([id])
  const { body } = await client.get(`/events?filter[created_from]=${untilOf(events)}`)
  expect(body.data).toMatchObject([{ resource: { id } }])
  expect(untilOf(tasks) <= changedAt).toBe(true)
  await until('complete_until is after the change, although the reader is still open', async () => {
    return untilOf(await client.get('/tasks')) > changedAt
  })
  await reader.close()
})

test('lists → complete_until is a few seconds ago, and costs at most one statement a second', async () => {
  const client = await app.newClient()
  await newTask(client)
  let statements = 0
  const count = ({ sql }: { sql: string }): void =>
    void (/pg_stat_activity/.test(sql) && statements++)
  app.db.read.on('query', count)
  const startedAt = Date.now()
  for (let i = 0; i < 20; i++) await client.get('/tasks')
  app.db.read.off('query', count)
  expect(statements).toBeLessThanOrEqual(isPostgres ? 1 + (Date.now() - startedAt) / 1_000 : 0)
  const behindMs = Date.now() - Date.parse(untilOf(await client.get('/tasks')))
  expect(behindMs).toBeGreaterThan(4_500)
  expect(behindMs).toBeLessThan(8_000)
})

test('a list of event types → null, because they do not change', async () =>
  expect(untilOf(await (await app.newClient()).get('/event-types'))).toBe(null))
