/** What every operation and every answer has in common, on the wire. */
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { type Answer, operationIds, startApp, type TestAccount, type TestApp } from '../helpers.ts'

let app: TestApp
let account: TestAccount

beforeAll(async () => {
  app = await startApp({ environment: { CORS_ORIGINS: 'https://app.example.com' } })
  account = await app.newAccount()
})
afterAll(() => app[Symbol.asyncDispose]())

const PARTICIPANTS = '/public/v1/participants'
const get = (path: string, headers?: Record<string, string>): Promise<Answer> =>
  app.call('GET', path, { key: account.key, headers })
const post = (body: unknown, headers?: Record<string, string>): Promise<Answer> =>
  app.call('POST', PARTICIPANTS, { key: account.key, body, headers })
const create = async (body: object = { full_name: 'Ada Lovelace' }): Promise<Answer['body']> =>
  (await post(body)).body

/** Sends bytes as they are, for what `fetch` would mend; answers with the raw response. */
function raw(text: string | Buffer): Promise<string> {
  const { hostname, port } = new URL(app.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
    socket.on('error', reject)
    socket.write(text)
  })
}

const line = (method: string, path: string, headers = '', body = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer ${account.key}\r\n${headers}\r\n${body}`

function expectError(answer: Answer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(typeof answer.body.message).toBe('string')
}

describe('the address', () => {
  test.each([
    '/public',
    '/public/v1',
    '/public/v1/nothing',
    '/public/v2/participants',
    `${PARTICIPANTS}/`,
    `/${PARTICIPANTS}`,
    '/public/v1/Participants',
  ])('%s is nothing → 404 in our shape, without a key', async (path) =>
    expectError(await app.call('GET', path, { headers: { Accept: 'text/html' } }), 404),
  )

  test('a known path and another method → 405 with Allow', async () => {
    const answer = await app.call('PUT', PARTICIPANTS, { key: account.key, body: {} })
    expectError(answer, 405)
    expect(answer.headers.get('allow')?.split(', ').sort()).toEqual([
      'GET',
      'HEAD',
      'OPTIONS',
      'POST',
    ])
  })

  test.each(operationIds)(
    'OPTIONS on the path of %s → 204 with Allow, without a key',
    async (id) => {
      const { path, method } = operations[id]
      const answer = await app.call(
        'OPTIONS',
        path.replace(/\{.*?\}/, '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81'),
      )
      expect(answer.status).toBe(204)
      expect(answer.headers.get('allow')?.split(', ')).toContain(method.toUpperCase())
    },
  )

  test('HEAD → as GET, without a body', async () => {
    const { id } = await create()
    for (const path of [PARTICIPANTS, `${PARTICIPANTS}/${id}`]) {
      const [head, full] = [await app.call('HEAD', path, account), await get(path)]
      expect(head.status).toBe(200)
      expect(head.text).toBe('')
      for (const name of ['content-type', 'content-length', 'etag'])
        expect(head.headers.get(name)).toBe(full.headers.get(name))
    }
  })

  test.each(['/%E0%A4%A', '?filter[email]=%E0%A4%A', '?%ZZ=1'])(
    'broken percent-encoding %s → 400',
    async (suffix) => expectError(await get(PARTICIPANTS + suffix), 400),
  )

  test.each(['%00', 'not-a-uuid', 'a%2Fb', '..%2F..%2Fetc'])(
    'an id of the wrong form (%s) → 404',
    async (id) => expectError(await get(`${PARTICIPANTS}/${id}`), 404),
  )

  test('longer than 8 KiB → 414', async () =>
    expectError(await get(`${PARTICIPANTS}?filter[search]=${'x'.repeat(9000)}`), 414))

  test('headers larger than 16 KiB → 431 in our shape', async () => {
    const answer = await raw(line('GET', PARTICIPANTS, `X-Big: ${'x'.repeat(20_000)}\r\n`))
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toMatch(/X-Request-Id: .*\{"message":/s)
  })

  test.each([
    ['no HTTP at all', 'GET nonsense\r\n\r\n', 400],
    ['a method that HTTP does not have', 'FOO / HTTP/1.1\r\nHost: test\r\n\r\n', 501],
  ])('%s → our shape', async (_, bytes, status) => {
    expect(await raw(bytes)).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} .*X-Request-Id: .*\\{"message":`, 's'),
    )
  })

  test('a method that /healthz does not have → 405 with Allow', async () => {
    const answer = await app.call('POST', '/healthz')
    expectError(answer, 405)
    expect(answer.headers.get('allow')).toContain('GET')
  })
})

describe('the key', () => {
  const wrong = {
    none: undefined,
    empty: '',
    'of another scheme': 'Basic abc',
    malformed: 'Bearer mst_short',
    'with a wrong checksum': `Bearer mst_${'a'.repeat(43)}_000000`,
  }
  test.each(Object.entries(wrong))('%s → 401 with WWW-Authenticate', async (_, header) => {
    const answer = await app.call('GET', PARTICIPANTS, {
      headers: header === undefined ? {} : { Authorization: header },
    })
    expectError(answer, 401)
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })

  test.each(operationIds)(
    '%s without a key → 401, before anything else is looked at',
    async (id) => {
      const { path, method } = operations[id]
      const answer = await app.call(method.toUpperCase(), path, {
        body: method === 'get' ? undefined : '{broken',
        headers: { 'Content-Type': 'text/plain' },
      })
      expect(answer.status).toBe(401)
    },
  )

  test('revoked, or of a deactivated user → 401 from the next request on', async () => {
    const [first, second] = [await app.newAccount(), await app.newAccount()]
    expect((await app.as(first).get('/participants')).status).toBe(200)
    await app.db
      .write('api_keys')
      .where({ user_id: first.userId })
      .update({ revoked_at: Date.now() })
    expect((await app.as(first).get('/participants')).status).toBe(401)
    await app.db.write('users').where({ id: second.userId }).update({ status: 'deactivated' })
    expect((await app.as(second).get('/participants')).status).toBe(401)
  })

  test('well-formed and unknown keys are throttled by address → 429 in time', async () => {
    await using other = await startApp()
    const { newApiKey } = await import('../../auth/api-key.ts')
    const statuses = new Set<number>()
    for (let i = 0; i < 130; i++)
      statuses.add((await other.call('GET', PARTICIPANTS, { key: newApiKey().token })).status)
    expect([...statuses]).toEqual([401, 429])
    expect((await other.as(await other.newAccount()).get('/participants')).status).toBe(200)
  })

  test('Read Only → 403 for every operation that writes, before its body is looked at; 200 for reads', async () => {
    const key = await app.newKey(account, 'read_only')
    for (const id of operationIds) {
      const { path, method, access } = operations[id]
      if (access === 'write')
        expect(
          (
            await app.call(method.toUpperCase(), path, {
              key,
              body: method === 'delete' ? undefined : '{broken',
            })
          ).status,
        ).toBe(403)
    }
    expect((await app.call('GET', PARTICIPANTS, { key })).status).toBe(200)
  })

  test('Finance: 403 unless the permission of the key’s owner allows it, from the next request on', async () => {
    const user = await app.newUser(account.accountId)
    const key = await app.newKey({ ...account, ...user })
    const payments = '/public/v1/payments'
    const read = (): Promise<Answer> => app.call('GET', payments, { key })
    const write = (): Promise<Answer> => app.call('POST', payments, { key, body: {} })
    const grant = (finance_permission: string): Promise<unknown> =>
      app.db.write('users').where({ id: user.userId }).update({ finance_permission })
    expect([(await read()).status, (await write()).status]).toEqual([403, 403])
    await grant('read')
    expect([(await read()).status, (await write()).status]).toEqual([200, 403])
    await grant('write')
    expect([(await read()).status, (await write()).status]).toEqual([200, 422])
  })
})

describe('the rate limit', () => {
  test('is shared by the keys of a user, told in headers, and answered with 429 and Retry-After', async () => {
    await using limited = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '3' } })
    const owner = await limited.newAccount()
    const second = await limited.newKey(owner)
    const answers: Answer[] = []
    for (const key of [owner.key, second, owner.key, second])
      answers.push(await limited.call('GET', PARTICIPANTS, { key }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual([
      '2',
      '1',
      '0',
      '0',
    ])
    const last = answers[3]?.headers
    expect(last?.get('x-ratelimit-limit')).toBe('3')
    expect(Number(last?.get('x-ratelimit-reset')) * 1000).toBeGreaterThan(Date.now())
    expect(Number(last?.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(last?.get('ratelimit-policy')).toBe('"default";q=3;w=60')
    const other = await limited.newAccount()
    expect((await limited.as(other).get('/participants')).status).toBe(200)
    expect((await limited.call('OPTIONS', PARTICIPANTS)).status).toBe(204)
  })

  test('counts what is refused too', async () => {
    await using limited = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '2' } })
    const owner = await limited.newAccount()
    const statuses: number[] = []
    for (let i = 0; i < 3; i++)
      statuses.push((await limited.as(owner).post('/participants', '{broken')).status)
    expect(statuses).toEqual([400, 400, 429])
  })
})

describe('the body', () => {
  const cases: [string, string | Buffer, Record<string, string>, number][] = [
    ['malformed JSON', '{"full_name": ', {}, 400],
    ['nothing', '', {}, 400],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), {}, 400],
    ['JSON nested too deep', '['.repeat(10_000) + ']'.repeat(10_000), {}, 400],
    ['text/plain', '{"full_name": "A"}', { 'Content-Type': 'text/plain' }, 415],
    ['a form', 'full_name=A', { 'Content-Type': 'application/x-www-form-urlencoded' }, 415],
    [
      'another charset',
      '{"full_name": "A"}',
      { 'Content-Type': 'application/json; charset=utf-16' },
      415,
    ],
    ['a compressed body', '{"full_name": "A"}', { 'Content-Encoding': 'gzip' }, 415],
    [
      'UTF-8 said in the type',
      '{"full_name": "A"}',
      { 'Content-Type': 'application/json; charset=utf-8' },
      201,
    ],
    [
      'more than 10,000 entries',
      JSON.stringify({ full_name: 'A', tags: Array(10_001).fill({}) }),
      {},
      400,
    ],
    ['more than 1 MiB', JSON.stringify({ full_name: 'x'.repeat(1024 * 1024) }), {}, 413],
  ]
  test.each(cases)('%s', async (_, body, headers, status) => {
    const response = await fetch(app.url + PARTICIPANTS, {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers: {
        Authorization: `Bearer ${account.key}`,
        'Content-Type': 'application/json',
        ...headers,
      },
    })
    const text = await response.text()
    expect({ status: response.status, text }).toMatchObject({ status })
    if (status === 415) expect(response.headers.get('accept')).toBe('application/json')
    if (status >= 400) expect(JSON.parse(text).message).toBeTypeOf('string')
  })

  test('no Content-Type → 415', async () => {
    const answer = await raw(line('POST', PARTICIPANTS, 'Content-Length: 2\r\n', '{}'))
    expect(answer).toMatch(/^HTTP\/1\.1 415 /)
  })

  test('more than 1 MiB in chunks of no declared length → 413, and the connection ends', async () => {
    const { hostname, port } = new URL(app.url)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(
        {
          hostname,
          port,
          path: PARTICIPANTS,
          method: 'POST',
          headers: { Authorization: `Bearer ${account.key}`, 'Content-Type': 'application/json' },
        },
        (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        },
      )
      sent.on('error', reject)
      for (let i = 0; i < 20; i++) sent.write('x'.repeat(64 * 1024))
      sent.end()
    })
    expect(status).toBe(413)
  })

  test('every fault is named by its field', async () => {
    const { status, body } = await post({
      full_name: '',
      email: 'nobody',
      phone: 5,
      tags: ['a', 'a'],
      status: 'gone',
      extra: 1,
      external_id: 'x'.repeat(201),
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual([
      'email',
      'external_id',
      'extra',
      'full_name',
      'phone',
      'status',
      'tags',
    ])
    expect(body.errors.status).toEqual(['must be one of active, inactive, archived.'])
  })

  test('so many faults that an answer cannot name them all → 100 of them', async () => {
    const { status, body } = await post(
      Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, 1])),
    )
    expect([status, Object.keys(body.errors).length]).toEqual([422, 100])
  })

  test('is looked at before the record is looked for', async () => {
    for (const id of ['abc', '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81']) {
      expect(
        (await app.call('PATCH', `${PARTICIPANTS}/${id}`, { key: account.key, body: { bad: 1 } }))
          .status,
      ).toBe(422)
      expect(
        (await app.call('PATCH', `${PARTICIPANTS}/${id}`, { key: account.key, body: {} })).status,
      ).toBe(404)
    }
  })

  test('names that JavaScript treats apart are names like any other', async () => {
    const { status, body } = await post(
      '{"full_name": "A", "__proto__": {"admin": true}, "constructor": 1}',
    )
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['__proto__', 'constructor'])
  })

  test('NUL and halves of surrogate pairs → 422 on the field; other Unicode comes back as it was sent', async () => {
    expect((await post('{"full_name": "a\\u0000b"}')).body.errors).toHaveProperty('full_name')
    expect(
      (await post('{"full_name": "A", "tags": ["ok", "\\ud800"]}')).body.errors,
    ).toHaveProperty(['tags.1'])
    const full_name = '𝔄da 👩‍🚀 עברית \u2028 "\\'
    const { id } = await create({ full_name })
    expect((await get(`${PARTICIPANTS}/${id}`)).body.full_name).toBe(full_name)
  })

  test('id and times are not the client’s to set', async () => {
    const { status, body } = await post({
      full_name: 'A',
      id: '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81',
      created_at: '2026-03-02T09:30:00.000Z',
    })
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['created_at', 'id']])
  })
})

describe('the query', () => {
  const faults: [string, string][] = [
    ['page[number]=0', 'page[number]'],
    ['page[number]=-1', 'page[number]'],
    ['page[number]=99999999999999999999', 'page[number]'],
    ['page[size]=101', 'page[size]'],
    ['page[size]=0', 'page[size]'],
    ['page[size]=abc', 'page[size]'],
    ['page[size]=', 'page[size]'],
    ['page[size]=1.5', 'page[size]'],
    ['page[size]=0x1', 'page[size]'],
    ['page[size]=1e0', 'page[size]'],
    ['page[size]=%202', 'page[size]'],
    ['page[size]=5&page[size]=5', 'page[size]'],
    ['page[foo]=1', 'page[foo]'],
    ['limit=5', 'limit'],
    ['__proto__=5', '__proto__'],
    ['__proto__=%00', '__proto__'],
    ['filter[nothing]=1', 'filter[nothing]'],
    ['filter[status]=gone', 'filter[status]'],
    ['filter[status]=active,', 'filter[status]'],
    ['filter[status]=', 'filter[status]'],
    ['filter[created_after]=yesterday', 'filter[created_after]'],
    ['filter[created_after]=2026-02-30T00:00:00Z', 'filter[created_after]'],
    ['filter[search]=a%00b', 'filter[search]'],
    ['sort=nothing', 'sort'],
    ['sort=--created_at', 'sort'],
    ['sort=', 'sort'],
  ]
  test.each(faults)('%s → 422 on %s', async (query, field) => {
    const { status, body } = await get(`${PARTICIPANTS}?${query}`)
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, [field]])
  })

  test('an unknown sort is told what is possible', async () =>
    expect((await get(`${PARTICIPANTS}?sort=age`)).body.errors.sort[0]).toMatch(
      /full_name, -full_name, email/,
    ))

  test.each(operationIds)('%s refuses an unknown parameter', async (id) => {
    const { path, method } = operations[id]
    if (method !== 'get') return
    const { status, body } = await get(
      `${path.replace(/\{.*?\}/, '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81')}?unknown=1`,
    )
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, ['unknown']])
  })
})

describe('every answer', () => {
  test('carries the request’s own id if it may be one, and never a line break', async () => {
    expect(
      (await get(PARTICIPANTS, { 'X-Request-Id': 'my-id.1' })).headers.get('x-request-id'),
    ).toBe('my-id.1')
    expect(
      (await get(PARTICIPANTS, { 'X-Request-Id': 'a b' })).headers.get('x-request-id'),
    ).not.toBe('a b')
    expect(
      (await get(PARTICIPANTS, { 'X-Request-Id': 'x'.repeat(129) })).headers.get('x-request-id'),
    ).toHaveLength(36)
  })

  test('is JSON whatever Accept says, must not be sniffed or kept by others', async () => {
    const { status, headers } = await get(PARTICIPANTS, { Accept: 'application/xml' })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('private, no-cache')
    expect(headers.get('vary')).toContain('Authorization')
    expect(headers.get('x-powered-by')).toBeNull()
  })

  test('to an allowed origin says so, to another nothing; a preflight needs no key', async () => {
    const origin = 'https://app.example.com'
    expect(
      (await get(PARTICIPANTS, { Origin: origin })).headers.get('access-control-allow-origin'),
    ).toBe(origin)
    expect(
      (await app.call('GET', PARTICIPANTS, { headers: { Origin: origin } })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBe(origin)
    expect(
      (await get(PARTICIPANTS, { Origin: 'https://evil.example.com' })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBeNull()
    const preflight = await app.call('OPTIONS', PARTICIPANTS, {
      headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
  })
})

describe('a record', () => {
  test('If-None-Match with its version → 304 without a body, weak, in a list or *', async () => {
    const { id } = await create()
    const path = `${PARTICIPANTS}/${id}`
    const etag = (await get(path)).headers.get('etag') ?? ''
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await get(path, { 'If-None-Match': header })
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([304, '', etag])
    }
    expect((await get(path, { 'If-None-Match': '"other"' })).status).toBe(200)
  })

  test('If-Match with another version → 412 and nothing is changed; with this one → 200 and a new version', async () => {
    const { id } = await create()
    const path = `${PARTICIPANTS}/${id}`
    const etag = (await get(path)).headers.get('etag') ?? ''
    const patch = (header: string): Promise<Answer> =>
      app.call('PATCH', path, {
        key: account.key,
        body: { full_name: 'New' },
        headers: { 'If-Match': header },
      })
    expect((await patch('"other"')).status).toBe(412)
    expect((await patch(`W/${etag}`)).status).toBe(412)
    const changed = await patch(etag)
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
    expect(
      (await app.call('DELETE', path, { key: account.key, headers: { 'If-Match': etag } })).status,
    ).toBe(412)
    expect(
      (await app.call('DELETE', path, { key: account.key, headers: { 'If-Match': '*' } })).status,
    ).toBe(204)
  })

  test('its life: 201 with a Location that resolves to the same, 204 without a body, then 404 and 404', async () => {
    const created = await post({ full_name: 'Ada' })
    const path = created.headers.get('location') ?? ''
    expect([created.status, path]).toEqual([201, `${PARTICIPANTS}/${created.body.id}`])
    const read = await get(path)
    expect([read.text, read.headers.get('etag')]).toEqual([
      created.text,
      created.headers.get('etag'),
    ])
    const gone = await app.call('DELETE', path, account)
    expect([
      gone.status,
      gone.text,
      gone.headers.get('content-type'),
      gone.headers.get('content-length'),
    ]).toEqual([204, '', null, null])
    expect([(await get(path)).status, (await app.call('DELETE', path, account)).status]).toEqual([
      404, 404,
    ])
  })
})

describe('Idempotency-Key', () => {
  const events = async (): Promise<number> =>
    (await get('/public/v1/events?page[size]=1')).body.meta.total

  test('same key, same request → the first answer, once done', async () => {
    const before = await events()
    const headers = { 'Idempotency-Key': 'key-1' }
    const first = await post({ full_name: 'Once' }, headers)
    const second = await post({ full_name: 'Once' }, headers)
    expect([second.status, second.text]).toEqual([201, first.text])
    expect([
      first.headers.get('idempotent-replayed'),
      second.headers.get('idempotent-replayed'),
    ]).toEqual([null, 'true'])
    expect(second.headers.get('location')).toBe(first.headers.get('location'))
    for (const name of ['etag', 'cache-control', 'content-type'])
      expect(second.headers.get(name)).toBe(first.headers.get(name))
    expect(await events()).toBe(before + 1)
  })

  test('same key, other body → 422 on Idempotency-Key; another user’s key is another', async () => {
    const headers = { 'Idempotency-Key': 'key-2' }
    await post({ full_name: 'One' }, headers)
    const other = await post({ full_name: 'Two' }, headers)
    expect([other.status, Object.keys(other.body.errors)]).toEqual([422, ['Idempotency-Key']])
    const stranger = await app.newAccount()
    expect(
      (await app.as(stranger).post('/participants', { full_name: 'Two' }, headers)).status,
    ).toBe(201)
  })

  test('what was refused leaves the key free', async () => {
    const headers = { 'Idempotency-Key': 'key-3' }
    await create({ full_name: 'Taken', external_id: 'taken' })
    expect((await post({ full_name: 'A', external_id: 'taken' }, headers)).status).toBe(422)
    expect((await post({ full_name: 'A', external_id: 'free' }, headers)).status).toBe(201)
  })

  test('many at once → one is done, the others get 409 or its answer', async () => {
    const before = await events()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post({ full_name: 'Many' }, { 'Idempotency-Key': 'key-4' })),
    )
    const statuses = new Set(answers.map(({ status }) => status))
    expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true)
    expect(
      new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id)).size,
    ).toBe(1)
    expect(await events()).toBe(before + 1)
  })

  test.each(['', 'ü', 'x'.repeat(256)])('a key that cannot be one (%j) → 422', async (key) => {
    const answer = await raw(
      line(
        'POST',
        PARTICIPANTS,
        `Idempotency-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 17\r\n`,
        '{"full_name":"A"}',
      ),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 422 /)
  })

  test('after 24 hours the key is free', async () => {
    const headers = { 'Idempotency-Key': 'key-5' }
    const first = await post({ full_name: 'Old' }, headers)
    await app.db
      .write('idempotency_keys')
      .where({ user_id: account.userId, key: 'key-5' })
      .update({ expires_at: Date.now() - 1 })
    expect((await post({ full_name: 'Old' }, headers)).body.id).not.toBe(first.body.id)
  })
})

describe('the request log', () => {
  test('keeps each request of a key with both bodies, and no secret', async () => {
    const own = await app.newAccount()
    await app
      .as(own)
      .post(
        '/participants',
        { full_name: `Ada ${own.key} whsec_abcdefgh` },
        { 'X-Request-Id': 'logged-1' },
      )
    await app.as(own).get('/participants?filter[search]=ada')
    await app.as(own).post('/participants', '{broken')
    const rows = await until3(own.accountId)
    expect(rows.map(({ method, status }) => [method, status])).toEqual([
      ['POST', 201],
      ['GET', 200],
      ['POST', 400],
    ])
    expect(rows[0]).toMatchObject({
      request_id: 'logged-1',
      operation_id: 'createParticipant',
      user_id: own.userId,
      ip: expect.stringContaining('127.0.0.1'),
    })
    expect(JSON.parse(rows[0]?.request_body ?? '').full_name).toMatch(/^Ada mst_.{4}… whsec_…$/)
    expect(rows[0]?.response_body).not.toContain(own.key)
    expect(rows[1]?.path).toBe('/public/v1/participants?filter[search]=ada')
    const [key] = await app.db.read('api_keys').where({ user_id: own.userId })
    expect(key.last_used_at).toBeGreaterThan(0)
  })

  test('takes what PostgreSQL would not, and finds secrets in the ways that JSON and addresses write them', async () => {
    const own = await app.newAccount()
    const rest = own.key.slice('mst_'.length)
    const secret = 'whsec_ab+cd/TAIL='
    await app.as(own).post('/participants', '\0')
    await app
      .as(own)
      .post('/participants', `{"full_name": "mst\\u005f${rest} whsec_ab+cd\\/TAIL="}`)
    await app
      .as(own)
      .get(`/participants?filter[search]=mst%5F${rest}+${encodeURIComponent(secret)}`)
    const logged = JSON.stringify(await until3(own.accountId))
    expect(logged).not.toContain('TAIL')
    expect(logged).not.toContain(rest.slice(5))
  })

  interface Row {
    method: string
    status: number
    path: string
    request_body: string | null
    response_body: string | null
  }

  async function until3(accountId: string): Promise<Row[]> {
    const { until } = await import('../helpers.ts')
    return until('three requests in the log', async () => {
      const rows = (await app.db
        .read('request_log')
        .where({ account_id: accountId })
        .orderBy('id')) as Row[]
      return rows.length === 3 && rows
    })
  }
})
