/** When the clock is in doubt, and which rows are old enough to be deleted. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import type { Db } from '../../records/database/open.ts'
import {
  type ClockSpan,
  confirmClock,
  DeletionTime,
  doubtLeftMs,
  findDeletionTime,
  listClockSpans,
  markTime,
} from '../../records/deletion-time.ts'
import { type OpenDatabase, openNewDatabase } from '../helpers.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY
const MONDAY = Date.parse('2026-11-23T09:00:00Z')

let database: OpenDatabase
let db: Db

function useNewDatabase(): void {
  beforeEach(async () => {
    database = await openNewDatabase()
    db = database.db
    await migrate(db)
  })
  afterEach(() => database[Symbol.asyncDispose]())
}

// Each of these marks a time, as a node does when it starts, while it runs, and after a jump. Each
// returns the doubt that is left, in ms.
const start = async (at: number): Promise<number> =>
  doubtLeftMs(await markTime(db, { now: new Date(at), elapsedMs: 0, hasJumped: false }))

const run = async (at: number, elapsedMs: number): Promise<number> =>
  doubtLeftMs(await markTime(db, { now: new Date(at), elapsedMs, hasJumped: false }))

const jump = async (to: number): Promise<number> =>
  doubtLeftMs(await markTime(db, { now: new Date(to), elapsedMs: MINUTE, hasJumped: true }))

const confirm = async (at: number): Promise<number> =>
  doubtLeftMs(await confirmClock(db, new Date(at)))

describe('the clock is in doubt', () => {
  useNewDatabase()

  test('not at the first start, nor after a deploy or a night', async () => {
    expect(await start(MONDAY)).toBe(0)
    expect(await run(MONDAY + MINUTE, MINUTE)).toBe(0)
    expect(await start(MONDAY + 50 * MINUTE)).toBe(0)
    expect(await start(MONDAY + 49.5 * MINUTE)).toBe(0)
    expect(await start(MONDAY + 14 * HOUR)).toBe(0)
    expect(await start(MONDAY + 38 * HOUR)).toBe(0)
  })

  test.each([
    ['a weekend', 2 * DAY],
    ['25 hours ahead', 25 * HOUR],
    ['61 minutes behind', -61 * MINUTE],
    ['2 minutes behind', -2 * MINUTE],
    ['100 days behind', -100 * DAY],
  ])('after a start that finds the mark far away: %s', async (_, gap) => {
    await start(MONDAY)
    expect(await start(MONDAY + gap)).toBe(DAY)
  })

  test('after a jump, until 24 hours of running, summed over restarts', async () => {
    await start(MONDAY)
    const jumped = MONDAY + 3 * HOUR
    expect(await jump(jumped)).toBe(DAY)
    expect(await run(jumped + 10 * HOUR, 10 * HOUR)).toBe(14 * HOUR)
    // The pause between two processes does not count, but neither does it begin the 24 hours again.
    expect(await start(jumped + 10 * HOUR + 30 * MINUTE)).toBe(14 * HOUR)
    expect(await start(jumped + 4 * DAY)).toBe(14 * HOUR)
    expect(await run(jumped + 4 * DAY + 14 * HOUR, 14 * HOUR)).toBe(0)
    expect(await start(jumped + 4 * DAY + 15 * HOUR)).toBe(0)
  })

  test('for 24 hours of running when the machine is suspended every night', async () => {
    await start(MONDAY)
    const lefts: number[] = []
    for (let day = 1; day <= 3; day++) {
      await jump(MONDAY + day * DAY)
      lefts.push(await run(MONDAY + day * DAY + 8 * HOUR, 8 * HOUR))
    }
    expect(lefts).toEqual([16 * HOUR, 8 * HOUR - MINUTE, 0])
  })

  test('two nodes see one jump and add the same time once', async () => {
    await start(MONDAY)
    expect(await jump(MONDAY + HOUR)).toBe(DAY)
    expect(await jump(MONDAY + HOUR + 10_000)).toBe(DAY - 10_000)
    expect(await run(MONDAY + HOUR + MINUTE, MINUTE)).toBe(DAY - MINUTE)
    expect(await run(MONDAY + HOUR + MINUTE, MINUTE)).toBe(DAY - MINUTE)
  })

  test('after another jump for 24 hours again', async () => {
    await start(MONDAY)
    await jump(MONDAY + 100 * DAY)
    expect(await run(MONDAY + 100 * DAY + 20 * HOUR, 20 * HOUR)).toBe(4 * HOUR)
    expect(await jump(MONDAY + 20 * HOUR)).toBe(DAY)
  })

  test('no longer after the operator has confirmed the time', async () => {
    await start(MONDAY)
    await jump(MONDAY + 3 * HOUR)
    expect(await confirm(MONDAY + 3 * HOUR)).toBe(0)
    expect(await start(MONDAY + 3 * HOUR + MINUTE)).toBe(0)
    // The service was stopped when the time was confirmed.
    expect(await confirm(MONDAY + 5 * DAY)).toBe(0)
    expect(await start(MONDAY + 5 * DAY + MINUTE)).toBe(0)
  })
})

describe('with a retention of 90 days, the oldest row that stays', () => {
  const AGE = 90 * DAY
  const span = (number: number, starts_at: number, hours: number): ClockSpan => ({
    number,
    starts_at,
    marked_at: starts_at + hours * HOUR,
    steady_ms: hours * HOUR,
    seen_ms: hours * HOUR,
    stopped_ms: 0,
  })
  const wrong = MONDAY - 100 * DAY
  const before = span(1, MONDAY - YEAR, 365 * 24)
  const cases: { name: string; spans: ClockSpan[]; now: number; want: number }[] = [
    {
      name: 'without a jump: 90 days old',
      spans: [before],
      now: MONDAY,
      want: MONDAY - AGE,
    },
    {
      name: 'after a clock that was ahead: 90 days old',
      spans: [before, span(2, MONDAY + 100 * DAY, 3), span(3, MONDAY, 24)],
      now: MONDAY + DAY,
      want: MONDAY + DAY - AGE,
    },
    {
      name: 'under a clock that is ahead: 90 days old by seen time',
      spans: [before, span(2, MONDAY + 10 * YEAR, 48)],
      now: MONDAY + 10 * YEAR + 2 * DAY,
      want: MONDAY + 2 * DAY - AGE,
    },
    {
      name: 'after a clock that was behind: from the start of its wrong times',
      spans: [before, span(2, wrong, 3), span(3, MONDAY, 24)],
      now: MONDAY + DAY,
      want: wrong,
    },
    {
      name: 'after a clock that was behind for two weeks: from the start of its wrong times',
      spans: [before, span(2, wrong, 14 * 24), span(3, MONDAY, 24)],
      now: MONDAY + DAY,
      want: wrong,
    },
    {
      name: '90 days after a clock that was behind: 90 days old',
      spans: [before, span(2, wrong, 3), span(3, MONDAY, 90 * 24)],
      now: MONDAY + AGE,
      want: MONDAY,
    },
    {
      name: 'after two clocks that were behind: from the earlier start of their wrong times',
      spans: [before, span(2, wrong, 3), span(3, wrong - DAY, 1), span(4, MONDAY, 24)],
      now: MONDAY + DAY,
      want: wrong - DAY,
    },
    {
      name: 'in a young installation: 90 days old',
      spans: [span(1, MONDAY, 1)],
      now: MONDAY + HOUR,
      want: MONDAY + HOUR - AGE,
    },
  ]
  test.each(cases)('$name', ({ spans, now, want }) => {
    expect(new DeletionTime(new Date(now), spans).createdBefore(AGE)).toBe(want)
  })
})

/** Between two marks of an `Installation`. */
const STEP = 6 * HOUR

/** An installation over months: its true time, its clock, and the rows that it stores while it runs.
 *  After each mark, no row may be old that is younger by the true time. */
class Installation {
  readonly ages = [DAY, 30 * DAY, 90 * DAY]
  trueMs = MONDAY
  clockMs = 0
  hasJumped = false
  isRunning = false
  rows: { storedAt: number; time: number }[] = []

  get now(): Date {
    return new Date(this.trueMs + this.clockMs)
  }

  /** Sets how far the clock is ahead. */
  set(clockMs: number): void {
    this.hasJumped = this.isRunning && this.clockMs !== clockMs
    this.clockMs = clockMs
  }

  async run(hours: number): Promise<void> {
    if (!this.isRunning) await this.#mark(0)
    this.isRunning = true
    for (let leftMs = hours * HOUR; leftMs > 0; leftMs -= STEP) {
      if (this.hasJumped) await this.#mark(1)
      this.rows.push({ storedAt: this.trueMs, time: this.now.getTime() })
      const elapsedMs = Math.min(leftMs, STEP)
      this.trueMs += elapsedMs
      await this.#mark(elapsedMs)
    }
  }

  stop(ms: number): void {
    this.isRunning = false
    this.trueMs += ms
  }

  async days(count: number, hours: number): Promise<void> {
    for (let day = 0; day < count; day++) {
      await this.run(hours)
      if (hours < 24) this.stop(DAY - hours * HOUR)
    }
  }

  /** The true age of the youngest row that is older than `ageMs`. Infinity: there is none. */
  async youngestOld(ageMs: number): Promise<number> {
    return this.#youngestOld(ageMs, await findDeletionTime(db.read, this.now))
  }

  #youngestOld(ageMs: number, time: DeletionTime | undefined): number {
    const limit = time?.createdBefore(ageMs) ?? Number.NEGATIVE_INFINITY
    const old = this.rows.filter((row) => row.time < limit)
    return Math.min(...old.map(({ storedAt }) => this.trueMs - storedAt))
  }

  async isInDoubt(): Promise<boolean> {
    return doubtLeftMs(await listClockSpans(db.read)) > 0
  }

  async #mark(elapsedMs: number): Promise<void> {
    await markTime(db, { now: this.now, elapsedMs, hasJumped: this.hasJumped })
    this.hasJumped = false
    const time = await findDeletionTime(db.read, this.now)
    for (const age of this.ages)
      expect(this.#youngestOld(age, time), `age ${age / DAY} days`).toBeGreaterThanOrEqual(age)
  }
}

describe('no row is deleted too early', () => {
  useNewDatabase()
  let life: Installation
  beforeEach(() => {
    life = new Installation()
  })

  test('60 days with 10 hours of running each: rows are deleted within 4 more days', async () => {
    await life.days(60, 10)
    expect(await life.youngestOld(DAY)).toBeLessThan(5 * DAY)
    expect(await life.youngestOld(30 * DAY)).toBeLessThan(34 * DAY)
  })

  test('60 days with 10 hours of running each, but none at weekends', async () => {
    for (let week = 0; week < 9; week++) {
      await life.days(5, 10)
      life.stop(2 * DAY)
    }
    await life.days(4, 10)
    expect(await life.youngestOld(30 * DAY)).toBeLessThan(60 * DAY)
  })

  test('90 days with 8 hours each between which the machine is suspended', async () => {
    for (let day = 0; day < 90; day++) {
      await life.run(8)
      // The monotonic clock stands still meanwhile.
      life.trueMs += 16 * HOUR
      life.hasJumped = true
    }
    await life.run(8)
    expect(await life.youngestOld(30 * DAY)).toBeLessThan(80 * DAY)
  })

  test('after a rest of three months, which makes no row old, also when the operator confirms the time', async () => {
    await life.days(40, 24)
    life.stop(90 * DAY)
    await life.run(8)
    expect(await life.youngestOld(DAY)).toBe(Number.POSITIVE_INFINITY)
    life.stop(16 * HOUR)
    await life.run(16)
    expect(await life.isInDoubt()).toBe(false)
    // Before the rest, rows were 40 days old. The rest does not count.
    expect(await life.youngestOld(90 * DAY)).toBe(Number.POSITIVE_INFINITY)
    await confirmClock(db, life.now)
    expect(await life.youngestOld(90 * DAY)).toBe(Number.POSITIVE_INFINITY)
    await life.days(51, 24)
    expect(await life.youngestOld(90 * DAY)).toBeLessThan(184 * DAY)
  })

  test.each([
    ['a jump', 0],
    ['a stop', MINUTE],
  ])('behind by 100 days at the first start, and right after %s: confirmed', async (_, stopMs) => {
    life.set(-100 * DAY)
    await life.run(1)
    if (stopMs > 0) life.stop(stopMs)
    life.set(0)
    await life.run(1)
    await confirmClock(db, life.now)
    await life.days(3, 24)
    expect(await life.youngestOld(DAY)).toBeLessThan(1.3 * DAY)
  })

  test('10 years ahead from a start, for 3 hours with a restart', async () => {
    await life.days(3, 24)
    life.stop(MINUTE)
    life.set(10 * YEAR)
    await life.run(2)
    life.stop(MINUTE)
    await life.run(1)
    expect(await life.youngestOld(DAY)).toBe(Number.POSITIVE_INFINITY)
    life.stop(MINUTE)
    life.set(0)
    await life.days(3, 24)
    expect(await life.youngestOld(DAY)).toBeLessThan(1.3 * DAY)
  })

  test.each([
    ['ahead by 10 years', 10 * YEAR],
    ['ahead by 100 days', 100 * DAY],
    ['behind by 100 days', -100 * DAY],
    ['behind by 20 years', -20 * YEAR],
  ])('%s for two weeks, from a jump and from a start', async (_, clockMs) => {
    await life.days(3, 24)
    life.set(clockMs)
    await life.days(14, 24)
    life.set(0)
    await life.days(3, 24)
    life.stop(MINUTE)
    life.set(clockMs)
    await life.days(14, 24)
    life.stop(MINUTE)
    life.set(0)
    await life.days(2, 24)
    await confirmClock(db, life.now)
    await life.days(3, 24)
    expect(await life.youngestOld(DAY)).toBeLessThan(1.3 * DAY)
  })

  test.each([
    ['ahead', 10 * YEAR],
    ['behind', -100 * DAY],
  ])('%s since the first start, until it is set at a start', async (_, clockMs) => {
    life.set(clockMs)
    await life.days(14, 24)
    life.stop(MINUTE)
    life.set(0)
    await life.days(100, 24)
    expect(await life.youngestOld(90 * DAY)).toBeLessThan(clockMs < 0 ? 91 * DAY : 101 * DAY)
  })

  test('ahead by 20 hours from a start: it makes no row of the day before old', async () => {
    await life.days(3, 24)
    life.stop(MINUTE)
    life.set(20 * HOUR)
    life.ages.splice(1)
    await life.days(3, 24)
    life.set(0)
    await life.days(2, 24)
  })

  test('ahead by 20 hours at every second start, and then by 10 years', async () => {
    await life.days(2, 24)
    for (let hour = 0; hour < 80; hour++) {
      life.stop(MINUTE)
      life.set(life.clockMs === 0 ? 20 * HOUR : 0)
      await life.run(1)
    }
    life.set(10 * YEAR)
    await life.days(2, 24)
  })

  test('a backup of the day before is restored', async () => {
    await life.days(3, 24)
    const rows = await db.read('clock_spans')
    await life.days(5, 24)
    await db.write('clock_spans').delete()
    await db.write('clock_spans').insert(rows)
    life.isRunning = false
    life.rows = life.rows.filter(({ storedAt }) => storedAt < MONDAY + 3 * DAY)
    await life.days(3, 24)
    expect(await life.youngestOld(DAY)).toBeLessThan(8 * DAY)
  })
})
