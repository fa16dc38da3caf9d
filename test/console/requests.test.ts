import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { MAX_SEARCHED_BODY_BYTES } from '../../records/request-log.ts'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { figuresOf, pathOfLink, requestIdsIn } from './forms.ts'
import { DAY, HOUR, logRequests, MINUTE, NOW, type RequestInput } from './logged-requests.ts'
import { newAccountOwner, newConsoleUser, type Visitor } from './visitors.ts'

const SECOND = 1_000

describe('the list of API requests', () => {
  const app = sharedApp({ now: () => new Date(NOW) })

  describe('filters', () => {
    let account: TestAccount
    let owner: Visitor
    let other: { accountId: string; userId: string }
    let otherKey: string
    let ids: string[]
    beforeAll(async () => {
      ;({ account, owner } = await newAccountOwner(app))
      other = await newConsoleUser(app, account.accountId, { fullName: 'Jonas Weber' })
      await app.newKey(other)
      otherKey = (await app.db.read('api_keys').where({ user_id: other.userId }).first('id')).id
      const inputs: RequestInput[] = [
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
        {
          ...{ status: 422, method: 'POST', operationId: 'createTask', userId: other.userId },
          requestBody: '{"title":"Grand Piano"}',
        },
        { status: 429, userId: other.userId, apiKeyId: otherKey },
        {
          ...{ status: 500, durationMs: 900, requestId: 'my-own-request.1' },
          responseBody: '{"message":"No reason."}',
        },
        {
          ...{ status: 503, durationMs: 1_500, ip: '2001:db8::1', apiKeyId: otherKey },
          responseBody: `{"message":"piano${'.'.repeat(MAX_SEARCHED_BODY_BYTES)}"}`,
        },
        { status: 304, at: NOW - 2 * DAY },
        { status: 200, path: '/public/v1/tasks?filter[search]=100%_sure', at: NOW - 20 * DAY },
      ]
      ids = await logRequests(app, account, inputs)
    })

    /** `indexes` are those of the matches in `inputs`. */
    const cases: [name: string, query: () => string, indexes: number[]][] = [
      ['no filter: the last 24 hours', () => '', [0, 1, 2, 3, 4, 5, 6, 7]],
      ['a class of status', () => 'status=4xx', [3, 4, 5]],
      ['5xx', () => 'status=5xx', [6, 7]],
      ['3xx', () => 'status=3xx&range=7d', [8]],
      ['one status', () => 'status=404', [3]],
      ['a method', () => 'method=POST', [1, 4]],
      ['an operation', () => 'operation=createTask', [1, 4]],
      ['part of the path, ignoring case', () => 'path=TASKS%2FabcDEF', [2, 3]],
      ['part of the path with special characters', () => 'range=30d&path=100%25_s', [9]],
      ['a path with a wildcard of LIKE', () => 'path=%25', [3]],
      ['a text in a request body, unless the body is long', () => 'text=grand+PIANO', [4]],
      ['a text in a response body', () => 'text=no+reason', [6]],
      ['a record ID in a path', () => 'text=ABCDEF', [2, 3]],
      ['a long body', () => 'text=piano', [4]],
      ['a user', () => `user=${other.userId}`, [4, 5]],
      ['a user in upper case', () => `user=${other.userId.toUpperCase()}`, [4, 5]],
      ['a key', () => `key=${otherKey}`, [5, 7]],
      ['an IP address', () => 'ip=2001:db8::1', [3, 7]],
      ['a request ID', () => 'request=my-own-request.1', [6]],
      ['at least a duration', () => 'duration=900', [6, 7]],
      ['at least a fraction', () => 'duration=900.5', [7]],
      ['7 days', () => 'range=7d', [0, 1, 2, 3, 4, 5, 6, 7, 8]],
      ['30 days', () => 'range=30d', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
      ['an unknown range: a day', () => 'range=toString', [0, 1, 2, 3, 4, 5, 6, 7]],
      [
        'several at once',
        () => `status=4xx&method=POST&user=${other.userId}&operation=createTask`,
        [4],
      ],
      ['several without a match', () => `status=5xx&user=${other.userId}`, []],
      ['an IP address and a key', () => `ip=2001:db8::1&key=${otherKey}&duration=1000`, [7]],
    ]
    it.each(cases)(
      '%s: the list, the figures and the CSV file have the matches',
      async (_, query, indexes) => {
        const { text, status } = await owner.get(`/requests?${query()}`)
        expect(status).toBe(200)
        expect(requestIdsIn(text).toSorted()).toEqual(indexes.map((index) => ids[index]).toSorted())
        expect(figuresOf(text).Requests).toBe(String(indexes.length))
        const file = await owner.get(`/requests.csv?${query()}`)
        expect(file.text.trimEnd().split('\r\n')).toHaveLength(indexes.length + 1)
      },
    )

    it.each([
      ['status=9xx', '9xx', 'Enter a status, for example 404'],
      ['method=BREW', 'BREW', 'Choose a method'],
      ['operation=toString', 'toString', 'Choose an operation'],
      ['user=me', 'me', 'Choose a user'],
      ['key=%3Cscript%3E', '&#60;script&#62;', 'Choose a key'],
      ['duration=fast', 'fast', 'Enter a number of milliseconds'],
      ['duration=-1', '-1', 'Enter a number of milliseconds'],
      ['from=yesterday', 'yesterday', 'Enter a date and time'],
      ['until=2026-13-40T00:00', '2026-13-40T00:00', 'Enter a date and time'],
      ['from=2026-02-31T10:00', '2026-02-31T10:00', 'Enter a date and time'],
      ['from=2026-03-02T10:00&until=2026-03-02T10:00', '2026-03-02T10:00', 'Choose a time after'],
    ])('%s: 422, and the value stays in the form', async (query, value, problem) => {
      const { text, status } = await owner.get(`/requests?${query}`)
      expect(status).toBe(422)
      expect(text).toContain(`"${value}"`)
      expect(text).toContain(problem)
      expect(requestIdsIn(text)).toEqual([])
      // The download does not ignore the invalid filter: it redirects to the list.
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
    ])('%s: no server error', async (query) => {
      expect((await owner.get(`/requests?${query}`)).status).toBeLessThan(500)
    })

    it('empty fields of the form are removed from the URL', async () => {
      expect(
        await owner.get('/requests?range=6h&path=&status=4xx&method=&from=&until='),
      ).toMatchObject({
        status: 303,
        to: '/requests?status=4xx&range=6h',
      })
    })

    it('are kept in the links to other pages and periods', async () => {
      expect(
        await owner.get(
          '/requests?range=6h&status=4xx&path=tasks&until=2026-11-21T09:30&period=7d',
        ),
      ).toMatchObject({ status: 303, to: '/requests?status=4xx&path=tasks&range=7d' })
      const { text } = await owner.get('/requests?status=4xx&path=tasks')
      expect(text).toContain('href="/console/requests.csv?status=4xx&#38;path=tasks"')
    })

    it('with IDs of another account find nothing', async () => {
      const { owner: stranger } = await newAccountOwner(app)
      for (const query of [
        `user=${other.userId}`,
        `key=${otherKey}`,
        'request=my-own-request.1',
        'range=30d',
      ]) {
        const { text } = await stranger.get(`/requests?${query}`)
        expect(requestIdsIn(text)).toEqual([])
        expect(figuresOf(text).Requests).toBe('0')
        expect(text).not.toContain('Jonas Weber')
      }
      for (const id of ids) expect((await stranger.get(`/requests/${id}`)).status).toBe(404)
      expect(
        (await stranger.get('/requests.csv?range=30d')).text.trimEnd().split('\r\n'),
      ).toHaveLength(1)
    })
  })

  it('pages have no gaps or duplicates, even within one millisecond', async () => {
    const { account, owner } = await newAccountOwner(app)
    const ids = await logRequests(
      app,
      account,
      Array.from({ length: 120 }, (_, index) => ({ at: NOW - MINUTE - Math.floor(index / 40) })),
    )
    const follow = async (text: string, label: string): Promise<string> => {
      const to = pathOfLink(text, label)
      return to === undefined ? '' : (await owner.get(to)).text
    }
    const first = (await owner.get('/requests')).text
    const second = await follow(first, 'Next')
    const third = await follow(second, 'Next')
    expect([first, second, third].map((page) => requestIdsIn(page).length)).toEqual([50, 50, 20])
    expect([first, second, third].flatMap(requestIdsIn).toSorted()).toEqual(ids.toSorted())
    expect(await follow(third, 'Next')).toBe('')
    const back = await follow(third, 'Previous')
    expect(requestIdsIn(back)).toEqual(requestIdsIn(second))
    expect(requestIdsIn(await follow(back, 'Previous'))).toEqual(requestIdsIn(first))
    expect(await follow(first, 'Previous')).toBe('')
    // The figures cover all pages.
    expect(figuresOf(third).Requests).toBe('120')
  })

  it('more requests than one search covers: finds matches among the newest, and links to a search of earlier ones', async () => {
    const { account, owner } = await newAccountOwner(app)
    const minute = NOW - (NOW % MINUTE)
    const [recent = '', older = ''] = await logRequests(app, account, [
      { at: minute - 10 * MINUTE, status: 404 },
      { at: minute - 5 * HOUR, status: 404 },
    ])
    // Pretend that many requests succeeded between these two.
    const pretend = (ok: number): Promise<unknown> =>
      app.db
        .write('request_minutes')
        .where({ account_id: account.accountId, minute: minute - 5 * HOUR })
        .update({ ok })
    const search = async (query: string): Promise<string[]> =>
      requestIdsIn((await owner.get(`/requests?${query}`)).text)
    await pretend(10_000)
    expect(await search('text=tasks')).toEqual([recent])
    // Only the bodies of errors are searched.
    expect(await search('status=404&text=tasks')).toEqual([recent, older])
    await pretend(100_000)
    expect(await search('status=404&text=tasks')).toEqual([recent])
    expect(await search('path=tasks')).toEqual([recent])
    expect(await search('status=404')).toEqual([recent, older])
    await pretend(300_000)
    const { text } = await owner.get('/requests?status=404')
    expect(requestIdsIn(text)).toEqual([recent])
    expect(text).toContain('Showing those since')
    const earlier = pathOfLink(text, 'Search earlier requests') ?? ''
    expect(requestIdsIn((await owner.get(earlier)).text)).toEqual([older])
    // The file searches all requests, in batches.
    expect((await owner.get('/requests.csv?status=404')).text.trimEnd().split('\r\n')).toHaveLength(
      3,
    )
    // Without a filter no search is needed.
    expect(requestIdsIn((await owner.get('/requests')).text)).toHaveLength(2)
  })

  describe('the CSV file', () => {
    it('has one line per request, newest first', async () => {
      const { account, owner } = await newAccountOwner(app)
      const requestId = randomUUID()
      await logRequests(app, account, [
        {
          at: NOW - MINUTE,
          requestId,
          path: '/public/v1/tasks?a=1,2',
          durationMs: 12.345,
        },
        { at: NOW - 30 * SECOND, status: 404, method: 'GET', requestId: 'b' },
      ])
      const { text, headers } = await owner.get('/requests.csv')
      expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
      expect(headers.get('content-disposition')).toMatch(
        /^attachment; filename="requests-\d{4}-\d\d-\d\d\.csv"$/,
      )
      const time = (at: number): string => new Date(at).toISOString()
      expect(text.split('\r\n')).toEqual([
        'time,status,method,path,operation,duration_ms,user,api_key,ip,request_id,repeats',
        `${time(NOW - 30 * SECOND)},404,GET,/public/v1/tasks,listTasks,12.5,Test Owner,Test key,203.0.113.7,b,0`,
        `${time(NOW - MINUTE)},200,GET,"/public/v1/tasks?a=1,2",listTasks,12.345,Test Owner,Test key,203.0.113.7,${requestId},0`,
        '',
      ])
    })

    it('escapes formulas', async () => {
      const { account, owner } = await newAccountOwner(app)
      const formulas = ['=1+1', '+1', '-1', '@sum(a)', '\t=1', '\r=1', '="a"&"b"']
      await logRequests(
        app,
        account,
        formulas.map((path, index) => ({ path, requestId: path, at: NOW - 30 * SECOND - index })),
      )
      await app.db.write('users').where({ id: account.userId }).update({ full_name: '=cmd()' })
      const { text } = await owner.get('/requests.csv')
      const rows = text.split('\r\n').slice(1).join('\n')
      expect(rows).toContain(`,'=1+1,`)
      expect(rows).toContain(`"'=""a""&""b"""`)
      expect(rows).toContain(`'=cmd()`)
      expect(rows).toContain(`,"'\r=1",`)
      // No cell begins with a character that starts a formula.
      expect(text).not.toMatch(/(^|,|\n)"?[=+@\t\r-]/)
    })

    it('contains all matches', async () => {
      const { account, owner } = await newAccountOwner(app)
      await logRequests(
        app,
        account,
        Array.from({ length: 2_345 }, (_, index) => ({
          at: NOW - 30 * SECOND - index,
          requestId: `n${index}`,
        })),
      )
      const lines = (await owner.get('/requests.csv')).text.trimEnd().split('\r\n').slice(1)
      expect(lines.map((line) => line.split(',').at(-2))).toEqual(
        Array.from({ length: 2_345 }, (_, index) => `n${index}`),
      )
    })
  })
})
