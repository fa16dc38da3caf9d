/** API requests: figures, filters, one request, the file, and who sees what. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import type { Knex } from 'knex'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { openDatabase } from '../../records/database/open.ts'
import { deleteOldRequests } from '../../records/request-log.ts'
import { readConfig } from '../../server/config.ts'
import { assertReadable, openBrowser } from '../browser.ts'
import { newDatabase, startApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import {
  DAY,
  figuresOf,
  type GivenRequest,
  HOUR,
  listedIn,
  log,
  MINUTE,
  NOW,
  tableOf,
  textOf,
} from './logged-requests.ts'
import { newPerson, type Visitor, visit, visitor } from './visitors.ts'

const run = promisify(execFile)
const HALF_MINUTE = MINUTE / 2

describe('API requests', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ now: () => new Date(NOW) })
  })
  afterAll(() => app?.[Symbol.asyncDispose]())

  async function newOwner(): Promise<{ account: TestAccount; owner: Visitor }> {
    const account = await app.newAccount()
    return { account, owner: await visitor(app, account) }
  }

  describe('figures', () => {
    it('are of the requests of the time, each in the bucket in which it came in', async () => {
      const { account, owner } = await newOwner()
      const minute = NOW - (NOW % MINUTE)
      await log(app, account, [
        { at: minute, status: 200, durationMs: 10 },
        { at: NOW, status: 304, durationMs: 20 },
        { at: minute - 1, status: 404, durationMs: 30 },
        { at: minute - MINUTE, status: 500, durationMs: 40 },
        { at: minute - 59 * MINUTE, status: 201, durationMs: 50 },
        // One millisecond before the first minute of the hour.
        { at: minute - 59 * MINUTE - 1, status: 503, durationMs: 60 },
      ])
      const { text } = await owner.get('/requests?range=1h')
      expect(figuresOf(text)).toEqual({
        Requests: '5',
        Errors: '40.00 %',
        'Median duration': '30 ms',
        'p95 duration': '50 ms',
      })
      const time = (at: number): string => new Date(at).toISOString().slice(11, 16)
      expect(
        tableOf(text, 'Requests per minute').map(([at = '', ...counts]) => [
          at.slice(-5),
          ...counts,
        ]),
      ).toEqual([
        [time(minute - 59 * MINUTE), '1', '0', '0'],
        [time(minute - MINUTE), '0', '1', '1'],
        [time(minute), '2', '0', '0'],
      ])
    })

    it.each([
      ['1h', 'minute', MINUTE, 60],
      ['6h', '5 minutes', 5 * MINUTE, 72],
      ['24h', '15 minutes', 15 * MINUTE, 96],
      ['7d', '2 hours', 2 * HOUR, 84],
      ['30d', '6 hours', 6 * HOUR, 120],
    ])('of %s are per %s', async (range, name, width, buckets) => {
      const { account, owner } = await newOwner()
      const last = NOW - (NOW % width)
      const first = last - (buckets - 1) * width
      await log(app, account, [
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
      expect(figuresOf(text)).toMatchObject({ Requests: '4', Errors: '75.00 %' })
    })

    it('of a time that is given begin and end where it says', async () => {
      const { account, owner } = await newOwner()
      const from = NOW - (NOW % MINUTE) - 3 * HOUR
      const until = from + 10 * MINUTE
      const inside = await log(app, account, [{ at: from }, { at: until - 1 }])
      await log(app, account, [{ at: from - 1 }, { at: until }])
      const local = (at: number): string => new Date(at).toISOString().slice(0, 16)
      const { text } = await owner.get(`/requests?from=${local(from)}&until=${local(until)}`)
      expect(figuresOf(text)).toMatchObject({ Requests: '2' })
      expect(listedIn(text).toSorted()).toEqual(inside.toSorted())
      expect(tableOf(text, 'Requests per minute')).toHaveLength(2)
    })

    it('of a single request are its own', async () => {
      const { account, owner } = await newOwner()
      await log(app, account, [{ status: 500, durationMs: 1234.5 }])
      const { text } = await owner.get('/requests')
      expect(figuresOf(text)).toEqual({
        Requests: '1',
        Errors: '100 %',
        'Median duration': '1.23 s',
        'p95 duration': '1.23 s',
      })
      expect(tableOf(text, 'Top operations')).toEqual([['GET /public/v1/tasks', '1', '100 %']])
      expect(tableOf(text, 'Top errors')).toEqual([['500GET /public/v1/tasks', '1']])
    })

    it('of no request are none, and the page says how to make one', async () => {
      const { owner } = await newOwner()
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

    it('name what is asked and what fails most', async () => {
      const { account, owner } = await newOwner()
      const task: GivenRequest = {
        operationId: 'getTask',
        path: `/public/v1/tasks/${randomUUID()}`,
      }
      await log(app, account, [
        ...Array.from({ length: 6 }, () => ({ ...task, status: 200 })),
        ...Array.from({ length: 2 }, () => ({ ...task, status: 404 })),
        ...Array.from({ length: 3 }, () => ({
          operationId: 'createTask',
          method: 'POST',
          status: 422,
        })),
      ])
      const { text } = await owner.get('/requests')
      expect(tableOf(text, 'Top operations')).toEqual([
        ['GET /public/v1/tasks/{task}', '8', '25.00 %'],
        ['POST /public/v1/tasks', '3', '100 %'],
      ])
      expect(tableOf(text, 'Top errors')).toEqual([
        ['422POST /public/v1/tasks', '3'],
        ['404GET /public/v1/tasks/{task}', '2'],
      ])
      // Each leads to its requests.
      expect(text).toContain('/console/requests?operation=createTask&#38;status=422')
    })

    it('of durations are right to within five per cent', async () => {
      const { account, owner } = await newOwner()
      const durations = Array.from(
        { length: 2_000 },
        (_, index) => Math.round(1_000 * Math.exp(1 + ((index * 7919) % 2_000) / 400)) / 1_000,
      )
      await log(
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
  })

  it('figures of more requests than are read: those that were counted as they were logged say the same', async () => {
    const { account, owner } = await newOwner()
    const operations = ['listTasks', 'getTask', 'createTask', 'listJobs']
    const given = Array.from({ length: 52_000 }, (_, index) => ({
      at: NOW - ((index * 7_919) % (4 * HOUR)),
      status: index % 97 === 0 ? 500 : index % 31 === 0 ? 404 : 200,
      operationId: operations[index % 4] ?? null,
      durationMs: Math.round(1_000 * Math.exp(1 + ((index * 104_729) % 1_000) / 200)) / 1_000,
    }))
    await log(app, account, given)
    // Neither end is at an hour.
    const [from, until] = [
      NOW - (NOW % MINUTE) - 4 * HOUR + 5 * MINUTE,
      NOW - (NOW % MINUTE) - MINUTE,
    ]
    const local = (at: number): string => new Date(at).toISOString().slice(0, 16)
    for (const address of [
      '/requests?range=6h',
      `/requests?from=${local(from)}&until=${local(until)}`,
    ]) {
      const inside = address.includes('from')
        ? given.filter(({ at }) => at >= from && at < until)
        : given
      expect(inside.length).toBeGreaterThan(50_000)
      const errors = inside.filter(({ status }) => status >= 400)
      const sorted = inside
        .map(({ durationMs }) => durationMs)
        .toSorted((one, other) => one - other)
      const { text } = await owner.get(address)
      const figures = figuresOf(text)
      expect(figures).toMatchObject({
        Requests: inside.length.toLocaleString('en'),
        Errors: `${((errors.length / inside.length) * 100).toFixed(2)} %`,
      })
      expectNear(figures['Median duration'], sorted[Math.ceil(sorted.length * 0.5) - 1])
      expectNear(figures['p95 duration'], sorted[Math.ceil(sorted.length * 0.95) - 1])
      const bars = tableOf(
        text,
        address.includes('from') ? 'Requests per 2 minutes' : 'Requests per 5 minutes',
      )
      const sum = (column: number): number =>
        bars.reduce((total, row) => total + Number(row[column]?.replace(',', '')), 0)
      expect([sum(1), sum(2), sum(3)]).toEqual([
        inside.length - errors.length,
        errors.filter(({ status }) => status < 500).length,
        errors.filter(({ status }) => status >= 500).length,
      ])
      const top = new Map(
        tableOf(text, 'Top operations').map(([name = '', requests = '']) => [name, requests]),
      )
      expect(top.get('POST /public/v1/tasks')).toBe(
        inside
          .filter(({ operationId }) => operationId === 'createTask')
          .length.toLocaleString('en'),
      )
    }
  })

  describe('filters', () => {
    let account: TestAccount
    let owner: Visitor
    let other: { accountId: string; userId: string }
    let otherKey: string
    let ids: string[]
    let given: GivenRequest[]
    beforeAll(async () => {
      ;({ account, owner } = await newOwner())
      other = await newPerson(app, account.accountId, { fullName: 'Jonas Weber' })
      await app.newKey(other)
      otherKey = (await app.db.read('api_keys').where({ user_id: other.userId }).first('id')).id
      given = [
        { status: 200, durationMs: 5 },
        { status: 201, method: 'POST', operationId: 'createTask', requestBody: '{}' },
        {
          status: 204,
          method: 'DELETE',
          operationId: 'deleteTask',
          path: '/public/v1/tasks/ABCDEF',
        },
        {
          status: 404,
          path: '/public/v1/tasks/abcdef?x=%5B1%5D',
          operationId: 'getTask',
          ip: '2001:db8::1',
        },
        { status: 422, method: 'POST', operationId: 'createTask', userId: other.userId },
        { status: 429, userId: other.userId, apiKeyId: otherKey },
        { status: 500, durationMs: 900, requestId: 'my-own-request.1' },
        { status: 503, durationMs: 1_500, ip: '2001:db8::1', apiKeyId: otherKey },
        { status: 304, at: NOW - 2 * DAY },
        { status: 200, path: '/public/v1/tasks?filter[search]=100%_sure', at: NOW - 20 * DAY },
      ]
      ids = await log(app, account, given)
    })

    const cases: [name: string, query: () => string, wanted: number[]][] = [
      ['nothing', () => '', [0, 1, 2, 3, 4, 5, 6, 7]],
      ['a class of status', () => 'status=4xx', [3, 4, 5]],
      ['5xx', () => 'status=5xx', [6, 7]],
      ['3xx', () => 'status=3xx&range=7d', [8]],
      ['one status', () => 'status=404', [3]],
      ['a method', () => 'method=POST', [1, 4]],
      ['an operation', () => 'operation=createTask', [1, 4]],
      ['a part of the path, whatever its case', () => 'path=TASKS%2FabcDEF', [2, 3]],
      ['a part of the path with signs', () => 'range=30d&path=100%25_s', [9]],
      ['a path with what would be a pattern', () => 'path=%25', [3]],
      ['a user', () => `user=${other.userId}`, [4, 5]],
      ['a user in upper case', () => `user=${other.userId.toUpperCase()}`, [4, 5]],
      ['a key', () => `key=${otherKey}`, [5, 7]],
      ['an address', () => 'ip=2001:db8::1', [3, 7]],
      ['a request id', () => 'request=my-own-request.1', [6]],
      ['at least a duration', () => 'duration=900', [6, 7]],
      ['at least a fraction', () => 'duration=900.5', [7]],
      ['7 days', () => 'range=7d', [0, 1, 2, 3, 4, 5, 6, 7, 8]],
      ['30 days', () => 'range=30d', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
      ['an unknown range, which is a day', () => 'range=toString', [0, 1, 2, 3, 4, 5, 6, 7]],
      [
        'several at once',
        () => `status=4xx&method=POST&user=${other.userId}&operation=createTask`,
        [4],
      ],
      ['several that nothing is', () => `status=5xx&user=${other.userId}`, []],
      ['an address and a key', () => `ip=2001:db8::1&key=${otherKey}&duration=1000`, [7]],
    ]
    it.each(cases)('%s: list, figures and file are of what it is', async (_, query, wanted) => {
      const { text, status } = await owner.get(`/requests?${query()}`)
      expect(status).toBe(200)
      expect(listedIn(text).toSorted()).toEqual(wanted.map((index) => ids[index]).toSorted())
      expect(figuresOf(text).Requests).toBe(String(wanted.length))
      const file = await owner.get(`/requests.csv?${query()}`)
      expect(file.text.trimEnd().split('\r\n')).toHaveLength(wanted.length + 1)
    })

    it.each([
      ['status=9xx', '9xx', 'Enter a status, for example 404'],
      ['method=BREW', 'BREW', 'Choose a method'],
      ['operation=toString', 'toString', 'Choose an operation'],
      ['user=me', 'me', 'Choose a user'],
      ['key=%3Cscript%3E', '&#60;script&#62;', 'Choose a key'],
      ['duration=fast', 'fast', 'Enter a number of milliseconds'],
      ['duration=-1', '-1', 'Enter a number of milliseconds'],
      ['from=yesterday', 'yesterday', 'Enter a time in UTC'],
      ['until=2026-13-40T00:00', '2026-13-40T00:00', 'Enter a time in UTC'],
      ['from=2026-03-02T10:00&until=2026-03-02T10:00', '2026-03-02T10:00', 'Choose a time after'],
    ])('%s is refused, and stays in the form', async (query, typed, problem) => {
      const { text, status } = await owner.get(`/requests?${query}`)
      expect(status).toBe(422)
      expect(text).toContain(`"${typed}"`)
      expect(text).toContain(problem)
      expect(listedIn(text)).toEqual([])
      // No file is made of something else than was asked for.
      expect(await owner.get(`/requests.csv?${query}`)).toMatchObject({ status: 303 })
    })

    it.each([
      'path=%00',
      'request=%00x',
      'before=x',
      'before=99999999999999999999_x',
      'after=1_2',
      'ip=%F0%9F%92%A9',
      `path=${'a'.repeat(5_000)}`,
    ])('%s does no harm', async (query) => {
      expect((await owner.get(`/requests?${query}`)).status).toBeLessThan(500)
    })

    it('that are empty, as a form sends them, are taken out of the address', async () => {
      expect(
        await owner.get('/requests?range=6h&path=&status=4xx&method=&from=&until='),
      ).toMatchObject({
        status: 303,
        to: '/requests?status=4xx&range=6h',
      })
    })

    it('stay with the other pages and the other times', async () => {
      const { text } = await owner.get('/requests?status=4xx&path=tasks')
      expect(text).toContain('href="/console/requests?status=4xx&#38;path=tasks&#38;range=7d"')
      expect(text).toContain('href="/console/requests.csv?status=4xx&#38;path=tasks"')
    })

    it('of another account find nothing', async () => {
      const { owner: stranger } = await newOwner()
      for (const query of [
        `user=${other.userId}`,
        `key=${otherKey}`,
        'request=my-own-request.1',
        'range=30d',
      ]) {
        const { text } = await stranger.get(`/requests?${query}`)
        expect(listedIn(text)).toEqual([])
        expect(figuresOf(text).Requests).toBe('0')
        expect(text).not.toContain('Jonas Weber')
      }
      for (const id of ids) expect((await stranger.get(`/requests/${id}`)).status).toBe(404)
      expect(
        (await stranger.get('/requests.csv?range=30d')).text.trimEnd().split('\r\n'),
      ).toHaveLength(1)
    })
  })

  it('pages: none is shown twice, none is left out, also of one millisecond', async () => {
    const { account, owner } = await newOwner()
    const ids = await log(
      app,
      account,
      Array.from({ length: 120 }, (_, index) => ({ at: NOW - MINUTE - Math.floor(index / 40) })),
    )
    const follow = async (text: string, label: string): Promise<string> => {
      const to = text
        .match(new RegExp(`href="/console(/requests[^"]*)">${label}</a>`))?.[1]
        ?.replaceAll('&#38;', '&')
      return to === undefined ? '' : (await owner.get(to)).text
    }
    const first = (await owner.get('/requests')).text
    const second = await follow(first, 'Next')
    const third = await follow(second, 'Next')
    expect([first, second, third].map((page) => listedIn(page).length)).toEqual([50, 50, 20])
    expect([first, second, third].flatMap(listedIn).toSorted()).toEqual(ids.toSorted())
    expect(await follow(third, 'Next')).toBe('')
    const back = await follow(third, 'Previous')
    expect(listedIn(back)).toEqual(listedIn(second))
    expect(listedIn(await follow(back, 'Previous'))).toEqual(listedIn(first))
    expect(await follow(first, 'Previous')).toBe('')
    // The figures are of all of them, whatever the page.
    expect(figuresOf(third).Requests).toBe('120')
  })

  it('a time with more requests than can be searched: a filter looks through the newest, says so, and leads further back', async () => {
    const { account, owner } = await newOwner()
    const minute = NOW - (NOW % MINUTE)
    const [recent = '', older = ''] = await log(app, account, [
      { at: minute - 10 * MINUTE, status: 404 },
      { at: minute - 5 * HOUR, status: 404 },
    ])
    // As if as many had been logged in between.
    await app.db
      .write('request_minutes')
      .where({ account_id: account.accountId, minute: minute - 5 * HOUR })
      .update({ ok: 300_000 })
    const { text } = await owner.get('/requests?status=404')
    expect(listedIn(text)).toEqual([recent])
    expect(text).toContain('the newest 200,000')
    const earlier =
      text
        .match(/href="\/console([^"]*)">Search earlier requests</)?.[1]
        ?.replaceAll('&#38;', '&') ?? ''
    expect(listedIn((await owner.get(earlier)).text)).toEqual([older])
    // The file is of all, a part at a time.
    expect((await owner.get('/requests.csv?status=404')).text.trimEnd().split('\r\n')).toHaveLength(
      3,
    )
    // Without a filter nothing is searched.
    expect(listedIn((await owner.get('/requests')).text)).toHaveLength(2)
  })

  describe('one request', () => {
    it('has all that is known of it, and a page of its own that needs no JavaScript', async () => {
      const { account, owner } = await newOwner()
      const requestId = randomUUID()
      const [id] = await log(app, account, [
        {
          requestId,
          method: 'POST',
          operationId: 'createTask',
          path: '/public/v1/tasks',
          status: 201,
          requestBody: '{"title":"Call","due_at":null}',
          responseBody: '{"id":1}',
        },
      ])
      const { text } = await owner.get(`/requests/${id}`)
      expect(text).toContain(requestId)
      expect(text).toContain('href="/docs/operations/createTask"')
      const read = textOf(text)
      // Over several lines.
      expect(read).toContain('{\n  "title": "Call",\n  "due_at": null\n}')
      expect(read).toContain('Test Owner')
      expect(read).toContain('Test key')
      expect(read).toContain('203.0.113.7')
      expect((await owner.get('/requests')).text).toContain(`href="/console/requests/${id}"`)
      expect((await fetch(`${app.url}/docs/operations/createTask`)).status).toBe(200)
    })

    it.each([randomUUID(), 'nothing', '%00'])('%s: there is none', async (id) => {
      const { owner } = await newOwner()
      expect((await owner.get(`/requests/${id}`)).status).toBe(404)
    })

    it('shows what hostile clients send as text', async () => {
      const { account, owner } = await newOwner()
      const attack = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`
      await app.db
        .write('users')
        .where({ id: account.userId })
        .update({ full_name: `Ada ${attack}` })
      await app.db
        .write('api_keys')
        .where({ account_id: account.accountId })
        .update({ name: `Key ${attack}` })
      const [id] = await log(app, account, [
        {
          path: `/public/v1/tasks?x=${attack}`,
          method: 'POST',
          ip: attack,
          requestId: attack,
          requestBody: JSON.stringify({ [attack]: attack }),
          responseBody: `</code></pre>${attack}`,
        },
      ])
      for (const path of [
        '/requests',
        `/requests/${id}`,
        `/requests?path=${encodeURIComponent(attack)}`,
        '',
      ]) {
        const { text, status } = await owner.get(path)
        expect(status).toBe(200)
        expect(text).not.toContain('<script>')
        expect(text).not.toContain('<img src=x')
        expect(textOf(text)).toContain('<script>alert(1)</script>')
      }
    })

    it('a body that was cut says so, and no command is made of it', async () => {
      const { account, owner } = await newOwner()
      const body = JSON.stringify({ title: 'x'.repeat(70_000) })
      expect((await app.as(account).post('/tasks', body)).status).toBe(422)
      // The log has real time, and the page that of the test.
      const id = await until('the request is logged', async () => {
        const rows = await app.db
          .read('request_log')
          .where({ account_id: account.accountId })
          .select('id')
        return rows[0]?.id as string | undefined
      })
      const { text } = await owner.get(`/requests/${id}`)
      expect(textOf(text)).toContain('Truncated after 64 KiB.')
      expect(text).not.toContain('--data-raw')
      expect(text).toContain('cannot be repeated from here')
    })

    it('what is long and whole is not called cut', async () => {
      const { account, owner } = await newOwner()
      const [id] = await log(app, account, [
        { responseBody: JSON.stringify({ text: 'x'.repeat(65_536 - 11) }) },
      ])
      const { text } = await owner.get(`/requests/${id}`)
      expect(text).not.toContain('Truncated')
    })

    it('as curl, in a shell: the same request, whatever is in it', async () => {
      const { account, owner } = await newOwner()
      const name = `O'Brien "$(echo owned)" \`id\` \\ $HOME ! %s\n@x`
      const created = await app
        .as(account)
        .post('/participants', { full_name: name, tags: ["a'b"] })
      expect(created.status).toBe(201)
      await app.as(account).get(`/participants?page[size]=1&filter[search]=O'Brien`)
      const commands = await until('both are logged', async () => {
        const rows: { id: string; method: string }[] = await app.db
          .read('request_log')
          .where({ account_id: account.accountId })
        return rows.length === 2 && rows
      })
      for (const { id, method } of commands) {
        const { text } = await owner.get(`/requests/${id}`)
        const command = commandIn(text)
        expect(command).not.toContain(account.key)
        const answer = JSON.parse(await shell(command, account.key))
        if (method === 'POST')
          expect(answer).toMatchObject({ full_name: name, tags: ["a'b"], status: 'active' })
        // The list has the one of the API, and perhaps the one of the command.
        else expect(answer).toMatchObject({ meta: { per_page: 1 }, data: [{ full_name: name }] })
      }
    })

    async function shell(command: string, key: string): Promise<string> {
      const { stdout } = await run('sh', ['-c', command.replaceAll(app.config.baseUrl, app.url)], {
        env: { PATH: process.env.PATH, MUSTER_API_KEY: key },
      })
      return stdout
    }

    describe('bodies, which hold records', () => {
      const operations = {
        createParticipant: 'participants',
        createTask: 'tasks',
        updateJob: 'jobs',
        createJobApplication: 'jobs',
        createExport: 'exports',
        createPayment: 'finance',
      } as const

      it.each(Object.entries(operations))(
        'of %s are for those who may read %s',
        async (operationId, module) => {
          const { account, owner } = await newOwner()
          const [id] = await log(app, account, [
            {
              operationId,
              method: 'POST',
              requestBody: '{"secret":"asked"}',
              responseBody: '{"secret":"answered"}',
              status: 201,
            },
          ])
          const all = {
            participants: 'read',
            tasks: 'read',
            jobs: 'read',
            exports: 'read',
            finance: 'read',
          } as const
          const blind = await visitor(
            app,
            await newPerson(app, account.accountId, { permissions: { ...all, [module]: 'none' } }),
          )
          const seeing = await visitor(
            app,
            await newPerson(app, account.accountId, { permissions: all }),
          )
          for (const path of [`/requests/${id}`, `/requests/${id}?row=open`]) {
            const { text, status } = await blind.get(path)
            expect(status).toBe(200)
            expect(text).not.toContain('asked')
            expect(text).not.toContain('answered')
            expect(textOf(text)).toContain('The bodies of this request are hidden')
            for (const one of [seeing, owner]) {
              const read = textOf((await one.get(path)).text)
              expect(read).toContain('asked')
              expect(read).toContain('answered')
            }
          }
        },
      )

      it('of the catalogue and of events are for all who see requests', async () => {
        const { account } = await newOwner()
        const [id] = await log(app, account, [
          { operationId: 'listEventTypes', responseBody: '{"data":["answered"]}' },
        ])
        const none = {
          participants: 'none',
          tasks: 'none',
          jobs: 'none',
          exports: 'none',
          finance: 'none',
        } as const
        const admin = await visitor(
          app,
          await newPerson(app, account.accountId, { permissions: none }),
        )
        expect(textOf((await admin.get(`/requests/${id}`)).text)).toContain('answered')
      })
    })

    it('a Member sees none of it', async () => {
      const { account } = await newOwner()
      const [id] = await log(app, account, [{}])
      const member = await visitor(app, await newPerson(app, account.accountId, { role: 'member' }))
      for (const path of ['/requests', `/requests/${id}`, '/requests.csv'])
        expect((await member.get(path)).status).toBe(404)
      expect((await member.get('')).text).not.toContain('/console/requests')
    })
  })

  describe('the file', () => {
    it('has a line of each request, the newest first', async () => {
      const { account, owner } = await newOwner()
      const requestId = randomUUID()
      await log(app, account, [
        {
          at: NOW - 2 * HALF_MINUTE,
          requestId,
          path: '/public/v1/tasks?a=1,2',
          durationMs: 12.345,
        },
        { at: NOW - HALF_MINUTE, status: 404, method: 'GET', requestId: 'b' },
      ])
      const { text, headers } = await owner.get('/requests.csv')
      expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
      expect(headers.get('content-disposition')).toMatch(
        /^attachment; filename="requests-\d{4}-\d\d-\d\d\.csv"$/,
      )
      const line = (at: number): string => new Date(at).toISOString()
      expect(text.split('\r\n')).toEqual([
        'time,status,method,path,operation,duration_ms,user,api_key,ip,request_id',
        `${line(NOW - HALF_MINUTE)},404,GET,/public/v1/tasks,listTasks,12.5,Test Owner,Test key,203.0.113.7,b`,
        `${line(NOW - 2 * HALF_MINUTE)},200,GET,"/public/v1/tasks?a=1,2",listTasks,12.345,Test Owner,Test key,203.0.113.7,${requestId}`,
        '',
      ])
    })

    it('holds no formula', async () => {
      const { account, owner } = await newOwner()
      const formulas = ['=1+1', '+1', '-1', '@sum(a)', '\t=1', '\r=1', '="a"&"b"']
      await log(
        app,
        account,
        formulas.map((path, index) => ({ path, requestId: path, at: NOW - HALF_MINUTE - index })),
      )
      await app.db.write('users').where({ id: account.userId }).update({ full_name: '=cmd()' })
      const { text } = await owner.get('/requests.csv')
      const cells = text.split('\r\n').slice(1)
      expect(cells.join('\n')).toContain(`,'=1+1,`)
      expect(cells.join('\n')).toContain(`"'=""a""&""b"""`)
      expect(cells.join('\n')).toContain(`'=cmd()`)
      expect(cells.join('\n')).toContain(`,"'\r=1",`)
      expect(text).not.toMatch(/(^|,|\n)"?[=+@\t\r-]/)
    })

    it('is as long as what it is of', async () => {
      const { account, owner } = await newOwner()
      await log(
        app,
        account,
        Array.from({ length: 2_345 }, (_, index) => ({
          at: NOW - HALF_MINUTE - index,
          requestId: `n${index}`,
        })),
      )
      const lines = (await owner.get('/requests.csv')).text.trimEnd().split('\r\n').slice(1)
      expect(lines.map((line) => line.split(',').at(-1))).toEqual(
        Array.from({ length: 2_345 }, (_, index) => `n${index}`),
      )
    })
  })
})

describe('what is counted of requests', () => {
  it('is what is logged of them, and goes when they go', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        app.as(account).get(index % 4 === 0 ? '/tasks/nothing' : '/tasks'),
      ),
    )
    await until('all are logged', async () => (await counted(app, account)).requests === 20)
    expect(await counted(app, account)).toEqual({
      requests: 20,
      ok: 15,
      client_errors: 5,
      minutes: 20,
      hours: 20,
    })

    const old = Date.now() - 31 * DAY
    await log(app, account, [{ at: old }, { at: old - HOUR }])
    expect(await counted(app, account)).toMatchObject({
      requests: 22,
      ok: 17,
      minutes: 22,
      hours: 22,
    })
    await deleteOldRequests(app.db, Date.now())
    expect(await counted(app, account)).toEqual({
      requests: 20,
      ok: 15,
      client_errors: 5,
      minutes: 20,
      hours: 20,
    })
  })

  it('by several at once is the sum', async () => {
    await using app = await startApp()
    const account = await app.newAccount()
    await Promise.all(
      Array.from({ length: 8 }, () =>
        log(
          app,
          account,
          Array.from({ length: 25 }, (_, index) => ({ status: index % 2 === 0 ? 200 : 500 })),
        ),
      ),
    )
    expect(await counted(app, account)).toEqual({
      requests: 200,
      ok: 104,
      client_errors: 0,
      minutes: 200,
      hours: 200,
    })
  })

  it('before there were counts is counted when they come', async () => {
    await using database = await newDatabase()
    await using app = await startApp({ database })
    const account = await app.newAccount()
    await log(
      app,
      account,
      Array.from({ length: 300 }, (_, index) => ({
        at: NOW - index * 20_000,
        status: [200, 404, 500][index % 3] ?? 200,
        durationMs: 0.3 * 1.05 ** index,
        operationId: index % 2 === 0 ? 'listTasks' : 'getTask',
      })),
    )
    const tables = async (): Promise<unknown> => ({
      minutes: (await app.db.read('request_minutes').orderBy('minute')).map((row) => ({ ...row })),
      counts: (
        await app.db
          .read('request_counts')
          .orderBy(['span_ms', 'starts_at', 'operation_id', 'status'])
      ).map((row) => ({ ...row })),
    })
    const before = await tables()
    const directory = new URL('../../records/migrations', import.meta.url).pathname
    const name = '202611211700_console.ts'
    await app.db.write.migrate.down({
      name,
      directory,
      loadExtensions: ['.ts'],
    } as Knex.MigratorConfig)
    expect(await app.db.read.schema.hasTable('request_counts')).toBe(false)
    const db = openDatabase(readConfig({ ...database.environment }).database)
    await migrate(db).finally(() => db.close())
    expect(await tables()).toEqual(before)
  })

  async function counted(app: TestApp, { accountId }: TestAccount) {
    const [minutes] = await app.db
      .read('request_minutes')
      .where({ account_id: accountId })
      .sum({ ok: 'ok', client_errors: 'client_errors', server_errors: 'server_errors' })
    const [requests] = await app.db
      .read('request_log')
      .where({ account_id: accountId })
      .count({ count: '*' })
    const spans = async (span: number): Promise<number> => {
      const [row] = await app.db
        .read('request_counts')
        .where({ account_id: accountId, span_ms: span })
        .sum({ requests: 'requests' })
      return Number(row?.requests)
    }
    return {
      requests: Number(requests?.count),
      ok: Number(minutes?.ok),
      client_errors: Number(minutes?.client_errors),
      minutes: await spans(MINUTE),
      hours: await spans(HOUR),
    }
  }
})

function expectNear(text: string | undefined, wanted: number | undefined): void {
  const [, value, unit] = /^([\d.]+) (ms|s)$/.exec(text ?? '') ?? []
  const milliseconds = Number(value) * (unit === 's' ? 1_000 : 1)
  expect(Math.abs(milliseconds / (wanted ?? 0) - 1), `${text} beside ${wanted} ms`).toBeLessThan(
    0.05,
  )
}

/** What the button beside the command copies. */
function commandIn(html: string): string {
  const copied = html.match(/data-copy="([^"]*)" aria-label="Copy the curl command"/)?.[1] ?? ''
  return textOf(`<i>${copied}</i>`)
}

describe('API requests in a browser', () => {
  let app: TestApp
  let browser: Browser
  let account: TestAccount
  beforeAll(async () => {
    app = await startApp()
    browser = await openBrowser()
    account = await app.newAccount()
    await app.as(account).post('/tasks', { title: 'Call the library' })
    await app.as(account).post('/tasks', { title: '' })
    await app.as(account).get('/participants?page[size]=2')
    await until(
      'all are logged',
      async () =>
        (await app.db.read('request_log').where({ account_id: account.accountId })).length === 3,
    )
  })
  afterAll(async () => {
    await browser?.close()
    await app?.[Symbol.asyncDispose]()
  })

  it('filter, open a row, copy it as curl: the command does what the request did', async () => {
    await using visited = await visit(app, browser, '/requests', {
      person: account,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page, troubles } = visited
    await page.getByLabel('Path contains').fill('PARTICIPANTS')
    await page.getByLabel('Method').selectOption('GET')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/requests\?method=GET&path=PARTICIPANTS$/)
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    await page.getByRole('button', { name: 'Copy the curl command' }).click()
    const command = await page.evaluate('navigator.clipboard.readText()')
    const { stdout } = await run(
      'sh',
      ['-c', String(command).replaceAll(app.config.baseUrl, app.url)],
      {
        env: { PATH: process.env.PATH, MUSTER_API_KEY: account.key },
      },
    )
    expect(JSON.parse(stdout)).toEqual(
      (await app.as(account).get('/participants?page[size]=2')).body,
    )
    // It closes again.
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor({ state: 'detached' })
    expect(troubles).toEqual([])
  })

  it('what comes in is shown by itself, but not while somebody reads', async () => {
    await using visited = await visit(app, browser, '/requests?method=DELETE', { person: account })
    const { page, troubles } = visited
    await page.getByText('No requests match').waitFor()
    const { body } = await app.as(account).post('/tasks', { title: 'Gone soon' })
    await app.as(account).delete(`/tasks/${body.id}`)
    await page.locator('.requests .toggle').waitFor()
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.waitForTimeout(6_000)
    expect(asked).toEqual([])
    expect(await page.getByRole('heading', { name: 'Response body' }).count()).toBe(1)
    await page.locator('.requests .toggle').click()
    await until(
      'it asks again',
      () => asked.filter((url) => url.endsWith('/requests?method=DELETE')).length >= 1,
    )
    expect(troubles).toEqual([])
  })

  it.each([
    '/requests?until=2030-01-01T00:00',
    '/requests?before=9999999999999_01934567-89ab-7def-8123-456789abcdef',
  ])('%s does not change by itself', async (path) => {
    expect((await (await visitor(app, account)).get(path)).text).not.toContain('hx-trigger="every')
  })

  it('a bar of the chart says what it stands for', async () => {
    await using visited = await visit(app, browser, '/requests?range=1h', { person: account })
    const { page } = visited
    await page.locator('.hit').last().hover()
    expect(await page.locator('.tip').textContent()).toMatch(
      /^\d+ \w+ \d\d:\d\d\nSuccess \d+\nClient error \d+\nServer error 0$/,
    )
    await page.locator('h1').hover()
    await page.locator('.tip').waitFor({ state: 'hidden' })
  })

  it('works without JavaScript', async () => {
    await using visited = await visit(app, browser, '/requests', {
      person: account,
      javaScriptEnabled: false,
    })
    const { page } = visited
    await page.getByLabel('Status').selectOption('4xx')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/requests\?status=4xx$/)
    await page.getByText('Show as table').click()
    await page
      .getByRole('cell', { name: 'UTC' })
      .or(page.getByRole('region', { name: 'Requests per 15 minutes' }))
      .first()
      .waitFor()
    await page.locator('.requests .toggle').click()
    await page.getByRole('heading', { level: 1, name: 'POST /public/v1/tasks' }).waitFor()
    await page.getByText('"title"').first().waitFor()
    await page.getByRole('link', { name: 'API requests' }).last().click()
    await page.getByRole('heading', { level: 1, name: 'API requests' }).waitFor()
  })

  it.each([
    [1280, 'light'],
    [390, 'dark'],
  ] as const)('is readable at %i pixels, %s', async (width, colorScheme) => {
    const { id } = await app.db
      .read('request_log')
      .where({ account_id: account.accountId, method: 'POST' })
      .first('id')
    await using visited = await visit(app, browser, '/requests', {
      person: account,
      viewport: { width, height: 860 },
      colorScheme,
    })
    const { page, troubles } = visited
    await page.locator('.requests .toggle').first().click()
    await page.getByRole('heading', { name: 'Response body' }).waitFor()
    await page.getByText('Show as table').click()
    await assertReadable(page, 'the dashboard with an open row and the table of its chart')
    for (const path of [`/requests/${id}`, '/requests?path=nothing', '/requests?duration=x']) {
      await page.goto(`${app.url}/console${path}`)
      await assertReadable(page, path)
    }
    expect(troubles.filter((trouble) => !trouble.includes('422'))).toEqual([])
  })
})
