/** `kill -9` before each statement that works on weekly partitions. The next call completes what the killed one has
 *  left, and clients see nothing of it. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, inject, test } from 'vitest'
import { findSchemaDifference } from '../../records/database/schema-difference.ts'
import { createWeeks, listWeeks, splitByWeek, weeklyTables } from '../../records/weeks.ts'
import { newDatabase, startApp, type TestApp, type TestDatabase } from '../helpers.ts'
import { insertEvent } from '../records/old-events.ts'
import { readBothCounts } from '../records/record-counts.ts'
import { newTenant, type Tenant } from '../webhooks/harness.ts'

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const SCRIPT = fileURLToPath(new URL('week-work.ts', import.meta.url))

/** Whether the work has ended before it was killed. */
function hasEnded(
  { environment }: TestDatabase,
  work: string,
  { killAt, now }: { killAt: number; now: number },
): Promise<boolean> {
  const env = { ...environment, KILL_AT: String(killAt), NOW: String(now) }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [SCRIPT, work], { env }, (error, _stdout, stderr) => {
      if (error === null) resolve(true)
      else if (error.signal === 'SIGKILL') resolve(false)
      else reject(new Error(stderr))
    })
  })
}

/** Kills the work before the first statement, then before the second one, until a call ends. Returns how often it was
 *  killed. */
async function killAtEach(
  database: TestDatabase,
  work: string,
  { now, check }: { now: number; check: () => Promise<void> },
): Promise<number> {
  for (let killAt = 1; ; killAt++) {
    const isComplete = await hasEnded(database, work, { killAt, now })
    await check()
    if (isComplete) return killAt - 1
  }
}

async function expectRightCounts({ db }: TestApp): Promise<void> {
  const { stored, counted } = await readBothCounts(db)
  expect(stored).toEqual(counted)
}

/** Clients would get these events again if they asked for missed events. */
const eventsThatLookMissed = ({ db }: TestApp): Promise<unknown[]> =>
  db
    .read('events')
    .whereNotExists(db.read('deliveries').where('event_id', db.read.ref('events.id')))
    .pluck('id')

const namesOf = async ({ db }: TestApp, table: (typeof weeklyTables)[number]): Promise<string[]> =>
  (await listWeeks(db.read, table)).map(({ name }) => name)

async function insertAndReadEvent(app: TestApp, tenant: Tenant): Promise<void> {
  const id = await insertEvent(tenant, Date.now())
  expect(await tenant.find(id)).toMatchObject({ state: 'delivered' })
  await expectRightCounts(app)
}

describe.runIf(inject('database') === 'postgres')('weeks', { timeout: 300_000 }, () => {
  test('killed while it drops weeks: events go together with their deliveries', async () => {
    await using database = await newDatabase()
    await using app = await startApp({ database, role: 'api' })
    const { db } = app
    const now = Date.now()
    await splitByWeek(db, now - 22 * WEEK_MS)
    for (let weeks = 20; weeks >= 0; weeks -= 5)
      for (const table of weeklyTables) await createWeeks(db, table, now - weeks * WEEK_MS)
    const tenant = await newTenant(app)
    for (const weeks of [17, 16, 15, 8, 1]) await insertEvent(tenant, now - weeks * WEEK_MS)
    const kills = await killAtEach(database, 'retain', {
      now,
      async check() {
        expect(await eventsThatLookMissed(app)).toEqual([])
        await expectRightCounts(app)
      },
    })
    expect(kills).toBeGreaterThan(8)
    expect(await tenant.scope.rows('events').pluck('id')).toHaveLength(2)
    expect(await tenant.scope.rows('deliveries').pluck('id')).toHaveLength(2)
    expect(await tenant.scope.rows('attempts').pluck('number')).toHaveLength(1)
    const names = await namesOf(app, 'events')
    expect(names).not.toContain('events_first')
    expect((await namesOf(app, 'deliveries')).map((name) => name.slice(-8))).toEqual(
      names.map((name) => name.slice(-8)),
    )
  })

  test('killed while it splits tables or creates weeks: rows can be written, and the next call completes it', async () => {
    await using database = await newDatabase()
    await using app = await startApp({ database, role: 'api' })
    const tenant = await newTenant(app)
    const check = () => insertAndReadEvent(app, tenant)
    const now = Date.now()
    expect(await killAtEach(database, 'split', { now, check })).toBeGreaterThan(10)
    const later = now + 4 * WEEK_MS
    expect(await killAtEach(database, 'create', { now: later, check })).toBeGreaterThan(5)
    for (const table of weeklyTables) expect(await namesOf(app, table)).toHaveLength(8)
    expect(await findSchemaDifference(app.db)).toMatchObject({ missing: [], different: [] })
  })
})
