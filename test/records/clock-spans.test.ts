/** When the clock is in doubt, and what may be deleted. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type ClockSpan,
  confirmClock,
  DeletionTime,
  doubtLeftMs,
  IS_CLOCK_IN_DOUBT,
  markTime,
} from '../../records/clock-spans.ts'
import { migrate } from '../../records/database/migrate.ts'
import type { Db } from '../../records/database/open.ts'
import { select } from '../../records/database/statements.ts'
import { type OpenDatabase, openNewDatabase } from '../helpers.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const MONDAY = Date.parse('2026-11-23T09:00:00Z')

let database: OpenDatabase
let db: Db

beforeEach(async () => {
  database = await openNewDatabase()
  db = database.db
  await migrate(db)
})
afterEach(() => database[Symbol.asyncDispose]())

/** Returns the doubt that is left in ms, and expects that IS_CLOCK_IN_DOUBT agrees. */
async function check(spans: ClockSpan[]): Promise<number> {
  const leftMs = doubtLeftMs(spans)
  const [row] = await select<{ doubt: boolean | number }>(
    db.read,
    `select ${IS_CLOCK_IN_DOUBT} as doubt`,
    [],
  )
  expect(Boolean(row?.doubt)).toBe(leftMs > 0)
  return leftMs
}

// Each of these marks a time, as a node does when it starts, while it runs, and after a jump. Each
// returns the doubt that is left, in ms.
const start = async (at: number): Promise<number> =>
  check(await markTime(db, { now: new Date(at), elapsedMs: undefined, hasJumped: false }))

const run = async (at: number, elapsedMs: number): Promise<number> =>
  check(await markTime(db, { now: new Date(at), elapsedMs, hasJumped: false }))

const jump = async (to: number): Promise<number> =>
  check(await markTime(db, { now: new Date(to), elapsedMs: MINUTE, hasJumped: true }))

describe('the clock is in doubt', () => {
  test('not at the first start, nor after a deploy', async () => {
    expect(await start(MONDAY)).toBe(0)
    expect(await run(MONDAY + MINUTE, MINUTE)).toBe(0)
    expect(await start(MONDAY + 50 * MINUTE)).toBe(0)
    expect(await start(MONDAY + 10 * MINUTE)).toBe(0)
  })

  test.each([
    ['a weekend', 2 * DAY],
    ['61 minutes ahead', 61 * MINUTE],
    ['61 minutes behind', -61 * MINUTE],
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
    // The pause between two processes does not count.
    expect(await start(jumped + 10 * HOUR + 30 * MINUTE)).toBe(14 * HOUR)
    expect(await run(jumped + 24 * HOUR + 30 * MINUTE, 14 * HOUR)).toBe(0)
    expect(await start(jumped + 24 * HOUR + 31 * MINUTE)).toBe(0)
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
    expect(await check(await confirmClock(db, new Date(MONDAY + 3 * HOUR)))).toBe(0)
    expect(await start(MONDAY + 3 * HOUR + MINUTE)).toBe(0)
    // The service was stopped when the time was confirmed.
    expect(await check(await confirmClock(db, new Date(MONDAY + 5 * DAY)))).toBe(0)
    expect(await start(MONDAY + 5 * DAY + MINUTE)).toBe(0)
  })
})

describe('with a retention of 90 days, the oldest row that stays', () => {
  const AGE = 90 * DAY
  const span = (number: number, startsAt: number, hours: number): ClockSpan => ({
    number,
    startsAt,
    markedAt: startsAt + hours * HOUR,
    steadyMs: hours * HOUR,
  })
  const wrong = MONDAY - 100 * DAY
  const cases: { name: string; spans: ClockSpan[]; now: number; want: number }[] = [
    {
      name: 'without a jump: 90 days old',
      spans: [span(1, 0, 24)],
      now: MONDAY,
      want: MONDAY - AGE,
    },
    {
      name: 'after a clock that was ahead: 90 days old',
      spans: [span(1, 0, 24), span(2, MONDAY + 100 * DAY, 3), span(3, MONDAY, 24)],
      now: MONDAY + DAY,
      want: MONDAY + DAY - AGE,
    },
    {
      name: 'after a clock that was behind: from the start of its wrong times',
      spans: [span(1, 0, 24), span(2, wrong, 3), span(3, MONDAY, 24)],
      now: MONDAY + DAY,
      want: wrong,
    },
    {
      name: '90 days after a clock that was behind: 90 days old',
      spans: [span(1, 0, 24), span(2, wrong, 3), span(3, MONDAY, 24)],
      now: MONDAY + AGE,
      want: MONDAY,
    },
    {
      name: 'after two clocks that were behind: from the earlier start of their wrong times',
      spans: [span(1, 0, 24), span(2, wrong, 3), span(3, wrong - DAY, 1), span(4, MONDAY, 24)],
      now: MONDAY + DAY,
      want: wrong - DAY,
    },
  ]
  test.each(cases)('$name', ({ spans, now, want }) => {
    expect(new DeletionTime(new Date(now), spans).createdBefore(AGE)).toBe(want)
  })
})
