import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { formatPercent } from '../../web/console/requests/request-figures.ts'
import { sharedApp } from '../helpers.ts'
import { figuresOf, requestIdsIn, tableOf } from './forms.ts'
import { HOUR, logRequests, MINUTE, NOW, type RequestInput } from './logged-requests.ts'
import { newAccountOwner, newConsoleUser, type Visitor, visitor } from './visitors.ts'

it.each([
  { part: 0, all: 0, shown: '–' },
  { part: 0, all: 9, shown: '0 %' },
  { part: 1, all: 1_001, shown: '< 0.1 %' },
  { part: 1, all: 1_000, shown: '0.1 %' },
  { part: 55, all: 1_000, shown: '5.5 %' },
  { part: 2, all: 3, shown: '66.7 %' },
  { part: 1, all: 4, shown: '25 %' },
  { part: 999, all: 1_000, shown: '99.9 %' },
  { part: 1_000, all: 1_001, shown: '> 99.9 %' },
  { part: 9, all: 9, shown: '100 %' },
])('shows $part of $all as $shown', ({ part, all, shown }) => {
  expect(formatPercent(part, all).replaceAll('\u00a0', ' ')).toBe(shown)
})

describe('the figures of API requests', () => {
  const app = sharedApp({ now: () => new Date(NOW) })

  it('count the requests of each minute, without those before the period', async () => {
    const { account, owner } = await newAccountOwner(app)
    const minute = NOW - (NOW % MINUTE)
    await logRequests(app, account, [
      { at: minute, status: 200, durationMs: 10 },
      { at: NOW, status: 304, durationMs: 20 },
      { at: minute - 1, status: 404, durationMs: 30 },
      { at: minute - MINUTE, status: 500, durationMs: 40 },
      { at: minute - 59 * MINUTE, status: 201, durationMs: 50 },
      // One millisecond before the period.
      { at: minute - 59 * MINUTE - 1, status: 503, durationMs: 60 },
    ])
    const { text } = await owner.get('/requests?range=1h')
    expect(figuresOf(text)).toEqual({
      Requests: '5',
      Errors: '40 %',
      'Median duration': '30 ms',
      'p95 duration': '50 ms',
    })
    const time = (at: number): string => new Date(at).toISOString().slice(11, 16)
    expect(
      tableOf(text, 'Requests per minute').map(([at = '', ...counts]) => [at.slice(-5), ...counts]),
    ).toEqual([
      [time(minute - 59 * MINUTE), '1', '0', '0'],
      [time(minute - MINUTE), '0', '1', '1'],
      [time(minute), '2', '0', '0'],
    ])
  })

  it('open pages that reload: read the figures once; users who open the page read anew', async () => {
    const { account, owner } = await newAccountOwner(app)
    const admin = await visitor(app, await newConsoleUser(app, account.accountId))
    const viewers = [owner, admin, owner, admin, owner, admin, owner, admin]
    const countReads = async (path: string, headers?: Record<string, string>): Promise<number> => {
      let reads = 0
      const count = ({ sql }: { sql: string }): void => {
        if (/as bucket.* from request_minutes/s.test(sql)) reads++
      }
      app.db.read.on('query', count)
      const pages = await Promise.all(viewers.map((viewer) => viewer.get(path, headers)))
      app.db.read.off('query', count)
      expect(pages.map(({ status }) => status)).toEqual(viewers.map(() => 200))
      return reads
    }
    for (const path of ['', '/requests']) {
      const opened = await countReads(path)
      expect(opened).toBe(viewers.length)
      const reloaded = await countReads(path, { 'Muster-Poll': '1' })
      expect(reloaded).toBeLessThanOrEqual(2)
    }
    await logRequests(app, account, [{ at: NOW }])
    expect(figuresOf((await admin.get('/requests')).text)).toMatchObject({ Requests: '1' })
  })

  it.each([
    ['1h', 'minute', MINUTE, 60],
    ['6h', '5 minutes', 5 * MINUTE, 72],
    ['24h', '15 minutes', 15 * MINUTE, 96],
    ['7d', '2 hours', 2 * HOUR, 84],
    ['30d', '6 hours', 6 * HOUR, 120],
  ])('%s: count the requests of each %s', async (range, name, width, buckets) => {
    const { account, owner } = await newAccountOwner(app)
    const last = NOW - (NOW % width)
    const first = last - (buckets - 1) * width
    await logRequests(app, account, [
      { at: first },
      { at: first - 1, status: 500 },
      { at: last - 1, status: 404 },
      { at: last, status: 422 },
      { at: last, status: 422 },
    ])
    const { text } = await owner.get(`/requests?range=${range}`)
    expect(tableOf(text, `Requests per ${name}`).map(([, ...counts]) => counts)).toEqual([
      ['1', '0', '0'],
      ['0', '1', '0'],
      ['0', '2', '0'],
    ])
    expect(figuresOf(text)).toMatchObject({ Requests: '4', Errors: '75 %' })
  })

  it('of a chosen period: count only its requests', async () => {
    const { account, owner } = await newAccountOwner(app)
    const from = NOW - (NOW % MINUTE) - 3 * HOUR
    const until = from + 10 * MINUTE
    const inside = await logRequests(app, account, [{ at: from }, { at: until - 1 }])
    await logRequests(app, account, [{ at: from - 1 }, { at: until }])
    const { text } = await owner.get(`/requests?from=${inputTime(from)}&until=${inputTime(until)}`)
    expect(figuresOf(text)).toMatchObject({ Requests: '2' })
    expect(requestIdsIn(text).toSorted()).toEqual(inside.toSorted())
    expect(tableOf(text, 'Requests per minute')).toHaveLength(2)
    // Each bar leads to its requests, and so does its row in the table.
    const bars = [...text.matchAll(/href="\/console(\/requests\?from=[^"&]+Z&[^"]+)"/g)]
    const last = bars.at(-1)?.[1]?.replaceAll('&amp;', '&').replaceAll('&#38;', '&') ?? ''
    expect(requestIdsIn((await owner.get(last)).text)).toEqual([inside[1]])
  })

  it('of months: a bar of 24 hours names the days on which it begins and ends', async () => {
    const { account, owner } = await newAccountOwner(app)
    await logRequests(app, account, [{ at: Date.parse('2026-03-02T10:00Z') }])
    const { text } = await owner.get('/requests?from=2026-03-01T09:00&until=2026-06-01T09:00')
    expect(tableOf(text, 'Requests per 24 hours')).toEqual([
      ['2 Mar 09:00–3 Mar 09:00', '1', '0', '0'],
    ])
  })

  it('of one request: its operation, status and duration', async () => {
    const { account, owner } = await newAccountOwner(app)
    await logRequests(app, account, [{ status: 500, durationMs: 1234.5 }])
    const { text } = await owner.get('/requests')
    expect(figuresOf(text)).toEqual({
      Requests: '1',
      Errors: '100 %',
      'Median duration': '1.23 s',
      'p95 duration': '1.23 s',
    })
    expect(tableOf(text, 'Top operations')).toEqual([['GET /public/v1/tasks', '1', '100 %']])
    expect(tableOf(text, 'Errors by cause')).toEqual([
      ['500 No reason is stored', 'GET /public/v1/tasks', '1', '1 min ago'],
    ])
  })

  it('of no requests: dashes, and a hint for the first request', async () => {
    const { owner } = await newAccountOwner(app)
    const { text, status } = await owner.get('/requests')
    expect(status).toBe(200)
    expect(figuresOf(text)).toEqual({
      Requests: '0',
      Errors: '–',
      'Median duration': '–',
      'p95 duration': '–',
    })
    expect(text).toContain('Make your first request')
    expect(text).not.toContain('NaN')
  })

  it('list the most frequent operations and errors first', async () => {
    const { account, owner } = await newAccountOwner(app)
    const task: RequestInput = {
      operationId: 'getTask',
      path: `/public/v1/tasks/${randomUUID()}`,
    }
    await logRequests(app, account, [
      ...Array.from({ length: 6 }, () => ({ ...task, status: 200 })),
      ...Array.from({ length: 2 }, () => ({ ...task, status: 404 })),
      ...Array.from({ length: 3 }, () => ({
        operationId: 'createTask',
        method: 'POST',
        status: 422,
        responseBody:
          '{"message":"The input is invalid.","errors":{"email":["must be an email address."]}}',
      })),
    ])
    const { text } = await owner.get('/requests')
    expect(tableOf(text, 'Top operations')).toEqual([
      ['GET /public/v1/tasks/{task}', '8', '25 %'],
      ['POST /public/v1/tasks', '3', '100 %'],
    ])
    expect(
      tableOf(text, 'Errors by cause').map(([cause, , requests]) => [cause, requests]),
    ).toEqual([
      ['422 email: must be an email address.', '3'],
      ['404 No reason is stored', '2'],
    ])
    // Each error links to its requests.
    expect(text).toContain(
      '/console/requests?status=422&#38;operation=createTask&#38;text=must+be+an+email+address.',
    )
  })

  it('group errors by cause: each invalid field, without IDs and positions, with repeats', async () => {
    const { account, owner } = await newAccountOwner(app)
    const invalid = (field: string) =>
      JSON.stringify({ message: 'The input is invalid.', errors: { [field]: ['is "required".'] } })
    const gone = (): string => JSON.stringify({ message: `There is no task ${randomUUID()} here.` })
    const status = 422
    const [first] = await logRequests(app, account, [
      { status, responseBody: invalid('items.0.title'), at: NOW - 3 },
      { status, responseBody: invalid('items.17.title'), at: NOW - 2 },
      { status: 404, responseBody: gone() },
      { status: 404, responseBody: gone() },
      { status: 404, responseBody: gone() },
      { status: 502, responseBody: '<html>' },
      { status: 429, responseBody: '{"message":"Try again in 7 seconds."}' },
      { status: 200, responseBody: '{"message":"fine"}' },
    ])
    const { text } = await owner.get('/requests')
    const rows = [...tableOf(text, 'Errors by cause'), ...tableOf(text, 'More causes')]
    expect(rows.map(([cause, , requests]) => [cause, requests])).toEqual([
      ['404 There is no task … here.', '3'],
      ['422 items.*.title: is "required".', '2'],
      ['429 Try again in ….', '1'],
      ['502 No reason is stored', '1'],
    ])
    // The periodic reload does not read the causes again.
    const reloaded = await owner.get('/requests', { 'Muster-Poll': '1' })
    expect(reloaded.text).not.toContain('Errors by cause')
    // Each cause links to its requests.
    const link = /href="\/console(\/requests\?[^"]*text=is[^"]*)"/.exec(text)?.[1] ?? ''
    const found = await owner.get(link.replaceAll('&#38;', '&'))
    expect(requestIdsIn(found.text)).toHaveLength(2)
    expect(requestIdsIn(found.text)).toContain(first)
  })

  it('have a median and a p95 that are accurate to 5 %', async () => {
    const { account, owner } = await newAccountOwner(app)
    // From 2.7 to 403 ms in logarithmic steps, in mixed order.
    const durations = Array.from(
      { length: 2_000 },
      (_, index) => Math.round(1_000 * Math.exp(1 + ((index * 7919) % 2_000) / 400)) / 1_000,
    )
    await logRequests(
      app,
      account,
      durations.map((durationMs) => ({ durationMs })),
    )
    const sorted = durations.toSorted((one, other) => one - other)
    const { text } = await owner.get('/requests')
    const figures = figuresOf(text)
    expectNear(figures['Median duration'], sorted[999])
    expectNear(figures['p95 duration'], sorted[1_899])
  })

  describe('of more than 50,000 requests, which come from stored counts', () => {
    const OPERATIONS = ['listTasks', 'getTask', 'createTask', 'listJobs']
    const statusAt = (index: number): number => {
      if (index % 97 === 0) return 500
      return index % 31 === 0 ? 404 : 200
    }
    const inputs = Array.from({ length: 52_000 }, (_, index) => ({
      at: NOW - ((index * 7_919) % (4 * HOUR)),
      status: statusAt(index),
      operationId: OPERATIONS[index % 4] ?? null,
      durationMs: Math.round(1_000 * Math.exp(1 + ((index * 104_729) % 1_000) / 200)) / 1_000,
    }))
    let owner: Visitor
    beforeAll(async () => {
      const created = await newAccountOwner(app)
      owner = created.owner
      await logRequests(app, created.account, inputs)
    })

    // Neither the start nor the end is a full hour.
    const minute = NOW - (NOW % MINUTE)
    const from = minute - 4 * HOUR + 5 * MINUTE
    const until = minute - MINUTE
    it.each([
      { query: 'range=6h', from: 0, until: Number.POSITIVE_INFINITY, bars: '5 minutes' },
      {
        query: `from=${inputTime(from)}&until=${inputTime(until)}`,
        from,
        until,
        bars: '2 minutes',
      },
    ])('$query: equal the figures of the requests themselves', async (period) => {
      const inside = inputs.filter(({ at }) => at >= period.from && at < period.until)
      expect(inside.length).toBeGreaterThan(50_000)
      const errors = inside.filter(({ status }) => status >= 400)
      const { text } = await owner.get(`/requests?${period.query}`)
      const figures = figuresOf(text)
      expect(figures).toMatchObject({
        Requests: inside.length.toLocaleString('en'),
        Errors: `${((errors.length / inside.length) * 100).toFixed(1)} %`,
      })
      const durations = inside.map(({ durationMs }) => durationMs).toSorted((a, b) => a - b)
      expectNear(figures['Median duration'], durations[Math.ceil(durations.length * 0.5) - 1])
      expectNear(figures['p95 duration'], durations[Math.ceil(durations.length * 0.95) - 1])

      const sums = [0, 0, 0]
      for (const [, ...counts] of tableOf(text, `Requests per ${period.bars}`))
        for (const [column, count] of counts.entries())
          sums[column] = (sums[column] ?? 0) + Number(count.replace(',', ''))
      expect(sums).toEqual([
        inside.length - errors.length,
        errors.filter(({ status }) => status < 500).length,
        errors.filter(({ status }) => status >= 500).length,
      ])
      const creations = inside.filter(({ operationId }) => operationId === 'createTask')
      expect(tableOf(text, 'Top operations').map(([name, count]) => [name, count])).toContainEqual([
        'POST /public/v1/tasks',
        creations.length.toLocaleString('en'),
      ])
    })
  })
})

/** The value of an input for a date and time in UTC. */
function inputTime(at: number): string {
  return new Date(at).toISOString().slice(0, 16)
}

/** Expects a duration on a page, such as `1.23 s`, within 5 % of the exact one. */
function expectNear(text: string | undefined, exactMs = Number.NaN): void {
  const [, value, unit] = /^([\d.]+) (ms|s)$/.exec(text ?? '') ?? []
  const milliseconds = Number(value) * (unit === 's' ? 1_000 : 1)
  expect(
    Math.abs(milliseconds / exactMs - 1),
    `${text}, not within 5 % of ${exactMs} ms`,
  ).toBeLessThan(0.05)
}
