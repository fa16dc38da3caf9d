/** Services that are stopped for long, or start with a wrong clock: old rows are deleted, and no
 *  others. The time passes quickly. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { confirmClock, doubtLeftMs, listClockSpans } from '../../records/deletion-time.ts'
import { newDatabase, startApp, type TestAccount, type TestApp, until } from '../helpers.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

/** How far the clock and the monotonic clock are ahead of those of the test. */
const ahead = { clockMs: 0, monotonicMs: 0 }
let intervals: (() => void)[] = []

beforeEach(() => {
  const monotonic = performance.now.bind(performance)
  const clock = Date.now.bind(Date)
  const { setInterval } = globalThis
  vi.spyOn(performance, 'now').mockImplementation(() => monotonic() + ahead.monotonicMs)
  vi.spyOn(Date, 'now').mockImplementation(() => clock() + ahead.clockMs)
  vi.spyOn(globalThis, 'setInterval').mockImplementation((callback, ms) => {
    intervals.push(callback)
    return setInterval(callback, ms)
  })
})
afterEach(() => {
  vi.restoreAllMocks()
})

/** A service that runs at times. At each start, it logs a request and stores an idempotency key. */
class Service implements AsyncDisposable {
  readonly #database = newDatabase()
  #app: TestApp | undefined
  #account: TestAccount | undefined
  #starts = 0
  readonly doubts: unknown[] = []

  get app(): TestApp {
    if (this.#app === undefined) throw new Error('The service is stopped')
    return this.#app
  }

  async start(): Promise<void> {
    intervals = []
    this.#app = await startApp({
      database: await this.#database,
      now: () => new Date(Date.now()),
      logLevel: 'warn',
      logTo: { write: (line) => line.includes('The clock is in doubt') && this.doubts.push(line) },
    })
    this.#account ??= await this.#app.newAccount()
    expect(await this.isReplayed(++this.#starts)).toBe(false)
  }

  async stop(ms: number): Promise<void> {
    await this.app.stop()
    this.#app = undefined
    ahead.clockMs += ms
  }

  /** Whether the request of the start with this number is known. Otherwise it is made. */
  async isReplayed(start: number): Promise<boolean> {
    if (this.#account === undefined) throw new Error('The service has never run')
    const headers = { 'Idempotency-Key': `start-${start}` }
    const body = { full_name: `Start ${start}` }
    const answer = await this.app.as(this.#account).post('/participants', body, headers)
    expect(answer.status).toBe(201)
    return answer.headers.get('idempotent-replayed') === 'true'
  }

  /** At the end, all timers of the service fire. Waits for the removal of rows that they begin. */
  async run(hours: number): Promise<void> {
    const startedAt = Date.now()
    pass(hours * HOUR_MS)
    for (const callback of intervals) callback()
    await until('the time is marked, and the removal has ended', async () => {
      const spans = await listClockSpans(this.app.db.read)
      if ((spans.at(-1)?.marked_at ?? 0) <= startedAt) return false
      const { text } = await this.app.call('GET', '/metrics')
      const removedAt = /last_run_timestamp_seconds\{kind="housekeeping"\} (.*)/.exec(text)?.[1]
      return doubtLeftMs(spans) > 0 || Number(removedAt) * 1000 > startedAt
    })
  }

  /** The age of the oldest row. */
  async oldest(table: 'requests' | 'keys'): Promise<number> {
    const { read } = this.app.db
    const row =
      table === 'requests'
        ? await read('request_log').min({ at: 'created_at' }).first()
        : await read('idempotency_keys').min({ at: 'expires_at' }).first()
    return Date.now() - Number(row?.at) + (table === 'requests' ? 0 : DAY_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#app?.stop()
    await (await this.#database)[Symbol.asyncDispose]()
  }
}

/** The machine runs for this long. */
function pass(ms: number): void {
  ahead.clockMs += ms
  ahead.monotonicMs += ms
}

test('60 days with 10 hours of running each: old rows are deleted, and no others', async () => {
  await using service = new Service()
  for (let day = 1; day <= 60; day++) {
    await service.start()
    await service.run(10)
    if (day > 1) expect(await service.isReplayed(day), `the key of day ${day}`).toBe(true)
    if (day < 60) await service.stop(14 * HOUR_MS)
  }
  expect(await service.oldest('requests')).toBeGreaterThan(30 * DAY_MS)
  expect(await service.oldest('requests')).toBeLessThan(34 * DAY_MS)
  expect(await service.oldest('keys')).toBeGreaterThan(DAY_MS)
  expect(await service.oldest('keys')).toBeLessThan(4 * DAY_MS)
  expect(service.doubts).toEqual([])
})

test('a rest of three months: nothing is deleted for 24 hours of running, and the rest makes no row old', async () => {
  await using service = new Service()
  await service.start()
  await service.run(20)
  await service.stop(91 * DAY_MS)
  await service.start()
  await service.run(20)
  expect(await service.isReplayed(1)).toBe(true)
  expect(service.doubts).toHaveLength(1)
  await service.stop(HOUR_MS)
  await service.start()
  await service.run(5)
  expect(await service.isReplayed(1)).toBe(false)
  expect(await service.oldest('requests')).toBeGreaterThan(91 * DAY_MS)
  await confirmClock(service.app.db, new Date(Date.now()))
  await service.run(1)
  expect(await service.oldest('requests')).toBeGreaterThan(91 * DAY_MS)
})

test.each([
  ['10 years ahead', 10 * YEAR_MS],
  ['100 days behind', -100 * DAY_MS],
])('%s for 3 hours with a restart, and back: nothing is deleted', async (_, ms) => {
  await using service = new Service()
  await service.start()
  await service.run(10)
  await service.stop(ms)
  await service.start()
  await service.run(2)
  await service.stop(0)
  await service.start()
  await service.run(1)
  await service.stop(-ms)
  await service.start()
  await service.run(1)
  for (const start of [1, 2, 3, 4]) expect(await service.isReplayed(start)).toBe(true)
  expect(service.doubts.length).toBeGreaterThan(1)
  await confirmClock(service.app.db, new Date(Date.now()))
  await service.run(1)
  for (const start of [1, 2, 3, 4]) expect(await service.isReplayed(start)).toBe(true)
})
