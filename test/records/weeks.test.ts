/** Tables of PostgreSQL in partitions of a week: "muster migrate --weekly", and what retention drops. */
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, inject, test } from 'vitest'
import { findSchemaDifference } from '../../records/database/schema-difference.ts'
import {
  createWeeks,
  listWeeks,
  splitByWeek,
  type WeeklyTable,
  weeklyTables,
} from '../../records/weeks.ts'
import { startApp, type TestApp, until } from '../helpers.ts'
import { runHousekeeping } from '../housekeeping.ts'
import { startReceiver } from '../receiver.ts'
import { newTenant } from '../webhooks/harness.ts'
import { insertEvent } from './old-events.ts'
import { readBothCounts } from './record-counts.ts'

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS

const inWeeks = (db: TestApp['db'], table: WeeklyTable): Promise<{ week: string }[]> =>
  db.read(table).select(db.read.raw('tableoid::regclass::text as week'))

async function createAll(db: TestApp['db'], now: number): Promise<void> {
  for (const table of weeklyTables) await createWeeks(db, table, now)
}

const weekNames = async ({ db }: TestApp, table: WeeklyTable): Promise<string[]> =>
  (await listWeeks(db.read, table)).map(({ name }) => name)

describe.runIf(inject('database') === 'postgres')('weeks', () => {
  test('splitting tables while a service runs: its schema fits, nothing is lost, and the counts are right', async () => {
    await using app = await startApp({ role: 'all' })
    await using receiver = await startReceiver()
    const tenant = await newTenant(app)
    await tenant.subscribe(receiver.url)
    const client = app.as(await app.newAccount())
    let isSplit = false
    const created = (async () => {
      const ids: string[] = []
      for (let number = 0; !isSplit || number < 30; number++) {
        await tenant.emitOne()
        const { status, body } = await client.post('/tasks', { title: `Task ${number}` })
        expect(status).toBe(201)
        ids.push(body.id)
      }
      return ids
    })()
    expect(await splitByWeek(app.db, Date.now())).toEqual(weeklyTables)
    isSplit = true
    const ids = await created
    expect(await splitByWeek(app.db, Date.now())).toEqual([])
    expect(await findSchemaDifference(app.db)).toMatchObject({
      missing: [],
      different: [],
      additional: [],
    })
    expect((await client.get('/tasks')).body.meta.total).toBe(ids.length)
    expect((await client.get('/events')).body.meta.total).toBe(ids.length)
    await until('all delivered', async () => {
      const rows = await tenant.scope.rows('deliveries').pluck('state')
      return rows.length >= 30 && rows.every((state) => state === 'delivered')
    })
    const counts = await readBothCounts(app.db)
    expect(counts.stored).toEqual(counts.counted)
    for (const table of weeklyTables)
      expect(new Set((await inWeeks(app.db, table)).map(({ week }) => week))).toEqual(
        new Set([`${table}_first`]),
      )
  })

  test('rows of a week are in its partition; others are counted, and their week gets no partition', async () => {
    await using app = await startApp({ role: 'api' })
    const { db } = app
    const start = Date.now()
    await splitByWeek(db, start)
    const tenant = await newTenant(app)
    await insertEvent(tenant, start + 3 * WEEK_MS)
    const [row] = await inWeeks(db, 'events')
    expect((await weekNames(app, 'events')).at(-2)).toBe(row?.week)
    const ahead = start + 10 * WEEK_MS
    await insertEvent(tenant, ahead)
    expect((await inWeeks(db, 'events')).map(({ week }) => week)).toContain('events_other')
    for (const table of weeklyTables)
      expect(await createWeeks(db, table, start)).toBe(table !== 'request_log')
    await createAll(db, ahead)
    const indexes = await db.read('pg_indexes').where('indexdef', 'like', '% brin (started_at)%')
    expect(indexes).toHaveLength((await weekNames(app, 'attempts')).length - 1)
    // A week without the one of the row.
    expect(await weekNames(app, 'events')).toHaveLength(4 + 4)
    expect(await weekNames(app, 'request_log')).toHaveLength(4 + 5)
    // What a wrong clock has created does not keep later weeks from being created.
    await createAll(db, start + 5 * WEEK_MS)
    expect(await weekNames(app, 'request_log')).toHaveLength(4 + 5 + 5)
  })

  test('an earlier call was killed: its constraint goes before rows would be refused', async () => {
    await using app = await startApp({ role: 'api' })
    const { db } = app
    const now = Date.now()
    const end = uuidv7({ msecs: now + 4 * DAY_MS })
    await db.write.raw(
      `alter table events add constraint events_split check (id < '${end}') not valid`,
    )
    const constraints = () =>
      db.read('pg_constraint').where({ conname: 'events_split' }).pluck('conname')
    await createWeeks(db, 'events', now)
    expect(await constraints()).toEqual(['events_split'])
    await createWeeks(db, 'events', now + 2 * DAY_MS)
    expect(await constraints()).toEqual([])
  })

  test('a row of a time after the first week: refused with the command that removes it, and nothing has changed', async () => {
    await using app = await startApp({ role: 'api' })
    const { db } = app
    const tenant = await newTenant(app)
    await insertEvent(tenant, Date.now() + 5 * WEEK_MS)
    for (const table of ['attempts', 'deliveries', 'events']) {
      const refusal = await splitByWeek(db, Date.now()).catch((error: Error) => error.message)
      expect(refusal).toMatch(
        new RegExp(`^The table ${table} has rows of the future, for example .*: a clock was wrong`),
      )
      expect(await weekNames(app, 'deliveries')).toEqual([])
      await db.write.raw(/psql: (delete .*)$/.exec(String(refusal))?.[1] ?? '')
    }
    expect(await splitByWeek(db, Date.now())).toEqual(weeklyTables)
  })

  test('retention drops a week that is outdated as a whole, with nothing unfinished in it', async () => {
    await using app = await startApp({ role: 'api' })
    const { db } = app
    const now = Date.now()
    // Weeks begin on Mondays. The first partition ends before the others begin.
    const monday = now - ((now - 4 * DAY_MS) % WEEK_MS)
    const weeksAgo = (weeks: number): number => monday - weeks * WEEK_MS + DAY_MS
    await splitByWeek(db, weeksAgo(22))
    for (let weeks = 20; weeks >= 0; weeks -= 5) await createAll(db, weeksAgo(weeks))
    const tenant = await newTenant(app)
    const resent = await insertEvent(tenant, weeksAgo(19), { deliveredAt: weeksAgo(1) })
    await insertEvent(tenant, weeksAgo(21))
    await insertEvent(tenant, weeksAgo(19))
    const retrying = { state: 'retrying', nextAttemptAt: now + DAY_MS }
    const blocking = await insertEvent(tenant, weeksAgo(17), retrying)
    await insertEvent(tenant, weeksAgo(17))
    const blockedByLater = await insertEvent(tenant, weeksAgo(14), {
      ...retrying,
      deliveredAt: weeksAgo(2),
    })
    const ofBlocked = await insertEvent(tenant, weeksAgo(14))
    const retried = await insertEvent(tenant, weeksAgo(8), { attemptedAt: now - DAY_MS })
    const withoutAttempt = await insertEvent(tenant, weeksAgo(7))
    const young = await insertEvent(tenant, weeksAgo(2))

    expect(
      await runHousekeeping(app, 'hour', { now: () => new Date(now), isInDoubt: true }),
    ).toEqual({})
    expect(await weekNames(app, 'events')).toContain('events_first')
    const removed = await runHousekeeping(app, 'hour', { now: () => new Date(now) })

    const stored = async (table: string, column: string) =>
      (await tenant.scope.rows(table).pluck(column)).sort()
    const kept = [resent, blocking, blockedByLater, ofBlocked, retried, withoutAttempt, young]
    expect(await stored('deliveries', 'id')).toEqual(kept.toSorted())
    expect(await stored('events', 'id')).toHaveLength(kept.length - 1)
    expect(await tenant.find(resent)).toMatchObject({ eventId: null })
    const withAttempt = kept.filter((id) => ![ofBlocked, withoutAttempt].includes(id))
    expect(await stored('attempts', 'delivery_id')).toEqual(withAttempt.toSorted())
    // The week with an unfinished delivery is removed row by row once it is a week too old.
    expect(removed).toMatchObject({ events: 1, deliveries: 1 })
    const names = await weekNames(app, 'deliveries')
    expect(names).not.toContain('deliveries_first')
    const dayOf = (weeks: number): string =>
      new Date(weeksAgo(weeks) - DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')
    for (const weeks of [19, 16, 15]) expect(names).not.toContain(`deliveries_${dayOf(weeks)}`)
    for (const weeks of [17, 14, 12, 1]) expect(names).toContain(`deliveries_${dayOf(weeks)}`)
    const counts = await readBothCounts(db)
    expect(counts.stored).toEqual(counts.counted)

    await db
      .write('deliveries')
      .whereNotNull('next_attempt_at')
      .update({ state: 'failed', next_attempt_at: null })
    await runHousekeeping(app, 'hour', { now: () => new Date(now + DAY_MS) })
    expect(await stored('deliveries', 'id')).toEqual(
      [blockedByLater, resent, retried, withoutAttempt, young].toSorted(),
    )
    expect(await stored('events', 'id')).toHaveLength(3)
  })

  test('outdated rows from before the split are removed at once, though their partition is young', async () => {
    await using app = await startApp({ role: 'api' })
    const tenant = await newTenant(app)
    const now = Date.now()
    await insertEvent(tenant, now - 91 * DAY_MS)
    const young = await insertEvent(tenant, now - 89 * DAY_MS, { attemptedAt: now - DAY_MS })
    await splitByWeek(app.db, now)
    const removed = await runHousekeeping(app, 'hour', { now: () => new Date(now) })
    expect(removed).toEqual({ events: 1, deliveries: 1, attempts: 1 })
    expect(await tenant.scope.rows('deliveries').pluck('id')).toEqual([young])
    expect(await weekNames(app, 'events')).toContain('events_first')
  })

  test('a week that only the attempts have as a partition goes as well', async () => {
    await using app = await startApp({
      role: 'api',
      environment: { ATTEMPT_RETENTION_DAYS: '400' },
    })
    const { db } = app
    const tenant = await newTenant(app)
    const now = Date.now()
    await insertEvent(tenant, now - 118 * DAY_MS)
    await splitByWeek(db, now - 120 * DAY_MS)
    // As if an earlier call had split only the attempts.
    for (const table of ['deliveries', 'events'])
      await db.write.raw(`alter table ${table}_first rename to ${table}_old;
        alter table ${table} detach partition ${table}_old;
        drop table ${table}; alter table ${table}_old rename to ${table}`)
    await runHousekeeping(app, 'hour', { now: () => new Date(now) })
    expect(await tenant.scope.rows('deliveries').pluck('id')).toEqual([])
    await runHousekeeping(app, 'hour', { now: () => new Date(now) })
    expect(await weekNames(app, 'attempts')).not.toContain('attempts_first')
  })

  test('events with many later deliveries, which lose their event, are removed in batches', async () => {
    await using app = await startApp({ role: 'api' })
    const { db } = app
    const tenant = await newTenant(app)
    const now = Date.now()
    await insertEvent(tenant, now - 118 * DAY_MS)
    await splitByWeek(db, now - 120 * DAY_MS)
    for (const time of [now - WEEK_MS, now]) await createAll(db, time)
    const [webhook_id] = await tenant.scope.rows('webhooks').pluck('id')
    const created_at = now - 118 * DAY_MS
    const events = Array.from({ length: 2_001 }, () => ({
      id: uuidv7({ msecs: created_at }),
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: uuidv7(),
      data: '[]',
      created_at,
    }))
    await tenant.write((scope) => scope.insert('events', events))
    const later = events.map(({ id }) => ({
      id: uuidv7({ msecs: now - DAY_MS }),
      webhook_id,
      event_id: id,
      event_type: 'task.created',
      body: Buffer.from(''),
      state: 'delivered',
      created_at: now - DAY_MS,
      updated_at: now - DAY_MS,
    }))
    await tenant.write((scope) => scope.insert('deliveries', later))
    await runHousekeeping(app, 'hour', { now: () => new Date(now) })
    expect(await weekNames(app, 'events')).toContain('events_first')
    expect(await tenant.scope.rows('events').pluck('id')).toEqual([])
    const eventIds = await tenant.scope.rows('deliveries').pluck('event_id')
    expect([eventIds.length, new Set(eventIds)]).toEqual([later.length, new Set([null])])
    await runHousekeeping(app, 'hour', { now: () => new Date(now) })
    expect(await weekNames(app, 'events')).not.toContain('events_first')
  })
})
