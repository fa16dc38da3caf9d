/** The TypeScript client against the service itself. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { createMuster, type Muster, MusterError, type Participant } from '../../client/src/index.ts'
import { sharedApp, startApp, type TestAccount, until } from '../helpers.ts'

let account: TestAccount
let muster: Muster

const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
  muster = createMuster({ baseUrl: app.url, apiKey: account.key })
})

const catchError = async (call: Promise<unknown>): Promise<MusterError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(MusterError)
  return error as MusterError
}

describe('calls', () => {
  it('create, read, update and delete a record', async () => {
    const created = await muster.POST('/public/v1/participants', {
      body: { full_name: 'Ada Lovelace', tags: ['vip'] },
    })
    const participant: Participant = created.data
    expect(created.response.status).toBe(201)
    const params = { path: { participant: participant.id } }
    const read = await muster.GET('/public/v1/participants/{participant}', { params })
    expect(read.data).toEqual(participant)
    const etag = read.response.headers.get('ETag') ?? ''
    const unchanged = await muster.GET('/public/v1/participants/{participant}', {
      params: { ...params, header: { 'If-None-Match': etag } },
    })
    expect([unchanged.response.status, unchanged.data]).toEqual([304, undefined])
    const changed = await muster.PATCH('/public/v1/participants/{participant}', {
      params,
      body: { status: 'archived' },
    })
    expect(changed.data.status).toBe('archived')
    const stale = muster.PATCH('/public/v1/participants/{participant}', {
      params: { ...params, header: { 'If-Match': etag } },
      body: { tags: [] },
    })
    expect((await catchError(stale)).status).toBe(412)
    const deleted = await muster.DELETE('/public/v1/participants/{participant}', { params })
    expect([deleted.response.status, deleted.data]).toEqual([204, undefined])
    const missing = muster.GET('/public/v1/participants/{participant}', { params })
    expect((await catchError(missing)).status).toBe(404)
  })

  it('return a file as text', async () => {
    await using service = await startApp({ role: 'all' })
    const { key } = await service.newAccount()
    const client = createMuster({ baseUrl: service.url, apiKey: key })
    await client.POST('/public/v1/tasks', { body: { title: 'Call Ada' } })
    const { data } = await client.POST('/public/v1/exports', {
      body: { resource: 'tasks', format: 'csv' },
    })
    const params = { path: { export_id: data.id } }
    await until('the export is completed', async () => {
      const { data: current } = await client.GET('/public/v1/exports/{export_id}', { params })
      return current?.status === 'completed'
    })
    const file = await client.GET('/public/v1/exports/{export_id}/file', {
      params,
      parseAs: 'text',
    })
    expect(file.data).toMatch(/^id,.*\r?\n.*Call Ada/)
  })

  it('fail for a file that is not ready', async () => {
    const { data } = await muster.POST('/public/v1/exports', {
      body: { resource: 'tasks', format: 'csv' },
    })
    const file = muster.GET('/public/v1/exports/{export_id}/file', {
      params: { path: { export_id: data.id } },
      parseAs: 'text',
    })
    expect(await catchError(file)).toMatchObject({
      status: 409,
      message: 'The export is not ready yet.',
    })
  })
})

describe('errors', () => {
  it('list the invalid fields and the request', async () => {
    const body = { title: '', participant_id: 'nobody' }
    expect(await catchError(muster.POST('/public/v1/tasks', { body }))).toMatchObject({
      name: 'MusterError',
      status: 422,
      message: 'The input is invalid.',
      errors: { title: ['must not be empty.'], participant_id: ['must be a UUID.'] },
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      retryAfterSeconds: null,
      request: 'POST /public/v1/tasks',
    })
  })

  it('do not contain the API key', async () => {
    const stranger = createMuster({ baseUrl: `${app.url}/`, apiKey: 'mst_nobody' })
    const error = await catchError(stranger.GET('/public/v1/tasks'))
    expect(error.status).toBe(401)
    expect(JSON.stringify([error, error.stack, error.message])).not.toContain('mst_nobody')
  })

  it('without a body of the service name the request and the status', async () => {
    await using proxy = await startServer(() => ({
      status: 502,
      headers: { 'Content-Type': 'text/html' },
      body: '<h1>Bad gateway</h1>',
    }))
    const { status, message, errors, requestId } = await catchError(
      createMuster({ baseUrl: proxy.url, apiKey: 'any' }).GET('/public/v1/tasks'),
    )
    expect({ status, errors, requestId }).toEqual({ status: 502, errors: {}, requestId: null })
    expect(message).toBe('GET /public/v1/tasks returned 502 without a readable message.')
  })
})

describe('lists', () => {
  /** A client of a new account with seven participants, and the queries that it sends. */
  async function newListClient() {
    const owner = await app.newAccount()
    for (let number = 0; number < 7; number++)
      await app.as(owner).post('/participants', {
        full_name: `P${number}`,
        status: number === 3 ? 'archived' : 'active',
      })
    const queries: string[] = []
    const client = createMuster({
      baseUrl: app.url,
      apiKey: owner.key,
      fetch(request) {
        queries.push(decodeURIComponent(new URL(request.url).search))
        return fetch(request)
      },
    })
    return { client, queries }
  }

  it('yield the records of all pages, filtered and sorted, and fetch each page once', async () => {
    const { client, queries } = await newListClient()
    const names: string[] = []
    const query = {
      'filter[status]': ['active' as const, 'inactive' as const],
      sort: ['-full_name' as const],
      'page[size]': 2,
    }
    for await (const { full_name } of client.records('/public/v1/participants', query))
      names.push(full_name)
    expect(names).toEqual(['P6', 'P5', 'P4', 'P2', 'P1', 'P0'])
    const common = '?page[size]=2&filter[status]=active,inactive&sort=-full_name'
    expect(queries.map((one) => one.replace(/=[^=]*$/, '='))).toEqual([
      common.replace(/=[^=]*$/, '='),
      ...Array(2).fill(`${common}&page[after]=`),
    ])
  })

  it('yield each record once although the loop changes what they are filtered by', async () => {
    const { client } = await newListClient()
    const path = '/public/v1/participants'
    const query = { 'filter[status]': ['active' as const], 'page[size]': 2 }
    const names: string[] = []
    for await (const { id, full_name } of client.records(path, query)) {
      names.push(full_name)
      await client.PATCH('/public/v1/participants/{participant}', {
        params: { path: { participant: id } },
        body: { status: 'inactive' },
      })
    }
    expect(names).toEqual(['P0', 'P1', 'P2', 'P4', 'P5', 'P6'])
  })

  it('throw for a service without cursors', async () => {
    const old = { data: [], meta: { current_page: 1, last_page: 2 } }
    await using service = await startServer(() => ({ status: 200, body: JSON.stringify(old) }))
    const client = createMuster({ baseUrl: service.url, apiKey: 'any' })
    const pages = client.pages('/public/v1/tasks')
    await pages.next()
    await expect(pages.next()).rejects.toThrow('no next_cursor')
  })

  it('encode commas in values, and send null as a value', async () => {
    const { client } = await newListClient()
    const body = { full_name: 'Ada', external_id: 'a, b' }
    const { data: ada } = await client.POST('/public/v1/participants', { body })
    await client.POST('/public/v1/tasks', { body: { title: 'One', participant_id: ada.id } })
    const ids = { 'filter[external_id]': ['a, b', 'c'] }
    const found = await client.GET('/public/v1/participants', { params: { query: ids } })
    expect(found.data.data).toEqual([ada])
    const query = { 'filter[participant_id]': null }
    const tasks = await client.GET('/public/v1/tasks', { params: { query } })
    expect(tasks.data.meta.total).toBe(0)
  })

  it('begin at page[number], and fetch no page that the caller does not read', async () => {
    const { client, queries } = await newListClient()
    const query = { 'page[number]': 2, 'page[size]': 3 }
    for await (const { data, meta } of client.pages('/public/v1/participants', query)) {
      expect([data.length, meta.current_page, meta.total]).toEqual([3, 2, 7])
      break
    }
    expect(queries).toHaveLength(1)
  })

  it('have pages of 100 records by default', async () => {
    const { client } = await newListClient()
    const sizes: number[] = []
    for await (const { meta } of client.pages('/public/v1/participants')) sizes.push(meta.per_page)
    expect(sizes).toEqual([100])
  })

  it('yield nothing if they are empty', async () => {
    const jobs: unknown[] = []
    for await (const job of muster.records('/public/v1/jobs')) jobs.push(job)
    expect(jobs).toEqual([])
  })
})

interface Reply {
  status: number
  headers?: Record<string, string>
  body?: string
}

/** A server that responds as `respond` says, and closes the connection if `respond` returns
 *  undefined. `count` is the number of requests so far, including this one. */
async function startServer(
  respond: (request: IncomingMessage, count: number) => Reply | undefined,
) {
  const requests: (IncomingMessage & { text: string })[] = []
  const server = createServer(async (request, response) => {
    requests.push(Object.assign(request, { text: await readText(request) }))
    const reply = respond(request, requests.length)
    if (reply === undefined) return void response.socket?.destroy()
    response
      .writeHead(reply.status, { 'Content-Type': 'application/json', ...reply.headers })
      .end(reply.body ?? '{"message":"Later."}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const OK: Reply = { status: 200, body: '{"id":"1"}' }

describe('retries', () => {
  it.each([409, 429, 503])(
    'wait for Retry-After of a %i, and send the same body and Idempotency-Key',
    async (status) => {
      await using server = await startServer((_, count) =>
        count === 1 ? { status, headers: { 'Retry-After': '1' } } : OK,
      )
      const startedAt = performance.now()
      await createMuster({ baseUrl: server.url, apiKey: 'any' }).POST('/public/v1/tasks', {
        body: { title: 'Once' },
      })
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990)
      const [first, second] = server.requests
      expect(server.requests).toHaveLength(2)
      expect(first?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/)
      for (const same of ['idempotency-key', 'authorization', 'content-type'])
        expect(second?.headers[same]).toBe(first?.headers[same])
      expect([first?.text, second?.text]).toEqual(['{"title":"Once"}', '{"title":"Once"}'])
    },
  )

  it('do not share an Idempotency-Key with another POST, unless the caller sets it', async () => {
    await using server = await startServer(() => OK)
    const client = createMuster({ baseUrl: server.url, apiKey: 'any' })
    for (let count = 0; count < 2; count++)
      await client.POST('/public/v1/tasks', { body: { title: 'Twice' } })
    await client.POST('/public/v1/tasks', {
      params: { header: { 'Idempotency-Key': 'mine' } },
      body: { title: 'Thrice' },
    })
    await client.PATCH('/public/v1/tasks/{task}', { params: { path: { task: '1' } }, body: {} })
    const keys = server.requests.map(({ headers }) => headers['idempotency-key'])
    expect(new Set(keys.slice(0, 2)).size).toBe(2)
    expect(keys.slice(2)).toEqual(['mine', undefined])
  })

  it.each([
    ['none', 'PATCH', 2],
    ['none', 'POST', 2],
    ['unknown', 'POST', 2],
    ['unknown', 'PATCH', 1],
    ['unknown', 'DELETE', 1],
    // Another program, such as a proxy, does not know the outcome.
    [undefined, 'DELETE', 1],
    [undefined, 'POST', 2],
    [undefined, 'GET', 2],
  ] as const)(
    'after a 503 with X-Change-Outcome %s: %s is sent %i times',
    async (outcome, method, times) => {
      await using server = await startServer(() => ({
        status: 503,
        headers: { 'Retry-After': '0', ...(outcome && { 'X-Change-Outcome': outcome }) },
      }))
      const client = createMuster({ baseUrl: server.url, apiKey: 'any', maxRetries: 1 })
      const params = { path: { task: '1' } }
      const calls = {
        GET: () => client.GET('/public/v1/tasks'),
        POST: () => client.POST('/public/v1/tasks', { body: { title: 'Once' } }),
        // The service ignores the key of a change that is no POST.
        PATCH: () =>
          client.PATCH('/public/v1/tasks/{task}', {
            params,
            body: { title: 'Once' },
            headers: { 'Idempotency-Key': 'mine' },
          }),
        DELETE: () => client.DELETE('/public/v1/tasks/{task}', { params }),
      }
      const error = await catchError(calls[method]())
      expect([error.status, error.changeOutcome]).toEqual([503, outcome ?? null])
      expect(server.requests).toHaveLength(times)
    },
  )

  it('do not wait for a Retry-After above maxWaitMs', async () => {
    await using server = await startServer(() => ({
      status: 429,
      headers: { 'Retry-After': '3600' },
    }))
    const startedAt = performance.now()
    const call = createMuster({ baseUrl: server.url, apiKey: 'any', maxWaitMs: 5_000 }).GET(
      '/public/v1/tasks',
    )
    expect(await catchError(call)).toMatchObject({ status: 429, retryAfterSeconds: 3600 })
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    expect(server.requests).toHaveLength(1)
  })

  it('end after maxRetries, and do not follow a 500', async () => {
    await using server = await startServer(({ url }) => ({
      status: url?.includes('jobs') ? 500 : 503,
      headers: { 'Retry-After': '0' },
    }))
    const client = createMuster({ baseUrl: server.url, apiKey: 'any', maxRetries: 2 })
    expect((await catchError(client.GET('/public/v1/tasks'))).status).toBe(503)
    expect(server.requests).toHaveLength(3)
    expect((await catchError(client.GET('/public/v1/jobs'))).status).toBe(500)
    expect(server.requests).toHaveLength(4)
  })

  it('follow a lost connection of GET and POST, but not of DELETE', async () => {
    await using server = await startServer((_, count) => (count % 2 === 1 ? undefined : OK))
    const client = createMuster({ baseUrl: server.url, apiKey: 'any' })
    await client.GET('/public/v1/tasks')
    await client.POST('/public/v1/tasks', { body: { title: 'Once' } })
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST', 'POST'])
    await expect(
      client.DELETE('/public/v1/tasks/{task}', { params: { path: { task: '1' } } }),
    ).rejects.toThrow('fetch failed')
    expect(server.requests).toHaveLength(5)
  })

  it('end when the signal aborts', async () => {
    await using server = await startServer(() => ({
      status: 503,
      headers: { 'Retry-After': '30' },
    }))
    const call = createMuster({ baseUrl: server.url, apiKey: 'any' }).GET('/public/v1/tasks', {
      signal: AbortSignal.timeout(200),
    })
    await expect(call).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(server.requests).toHaveLength(1)
  })

  it('know Retry-After of the rate limit of the service', async () => {
    await using limited = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '1' } })
    const { key } = await limited.newAccount()
    const client = createMuster({ baseUrl: limited.url, apiKey: key, maxRetries: 0 })
    await client.GET('/public/v1/tasks')
    const error = await catchError(client.GET('/public/v1/tasks'))
    expect(error.status).toBe(429)
    expect(error.retryAfterSeconds).toBeGreaterThan(0)
  })
})

describe('many calls at once', () => {
  const create = (client: Muster, title: string) =>
    client.POST('/public/v1/tasks', { body: { title } })

  it('1,000 creates above the rate limit: all are created', async () => {
    await using limited = await startApp({
      environment: { RATE_LIMIT_PER_MINUTE: '300', REQUESTS_IN_FLIGHT_PER_USER: '10' },
      config: { rateLimitWindowSeconds: 1 },
    })
    const client = createMuster({ baseUrl: limited.url, apiKey: (await limited.newAccount()).key })
    const created = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => create(client, `Task ${index}`)),
    )
    expect(new Set(created.map(({ data }) => data.id)).size).toBe(1_000)
    const { data } = await client.GET('/public/v1/tasks')
    expect(data.meta.total).toBe(1_000)
  })

  it('are sent in their order, with at most maxConcurrentCalls in progress', async () => {
    let inProgress = 0
    const counts: number[] = []
    await using server = await startServer(() => OK)
    const client = createMuster({
      baseUrl: server.url,
      apiKey: 'any',
      maxConcurrentCalls: 3,
      async fetch(request) {
        counts.push(++inProgress)
        return fetch(request).finally(() => inProgress--)
      },
    })
    const body = { title: '' }
    const calls = ['A', 'B', 'C', 'D', 'E', 'F', 'G'].map((title) => {
      // The client serialises the body before the call waits.
      body.title = title
      return client.POST('/public/v1/tasks', { body })
    })
    await Promise.all(calls)
    expect(Math.max(...counts)).toBe(3)
    const sent = server.requests.map(({ text }) => JSON.parse(text).title)
    // Three requests at once may arrive in any order.
    for (const [index, title] of sent.entries())
      expect(Math.abs('ABCDEFG'.indexOf(title) - index)).toBeLessThanOrEqual(2)
  })

  it('send nothing after a 429 until Retry-After is over, and do not use up their retries', async () => {
    const times: number[] = []
    await using server = await startServer((_, count) => {
      times.push(performance.now())
      return count === 1 ? { status: 429, headers: { 'Retry-After': '1' } } : OK
    })
    const client = createMuster({ baseUrl: server.url, apiKey: 'any', maxConcurrentCalls: 1 })
    const calls = [create(client, 'A'), create(client, 'B')]
    await Promise.all(calls)
    const [first = 0, second = 0] = times
    expect(second - first).toBeGreaterThanOrEqual(990)
    expect(server.requests.map(({ text }) => JSON.parse(text).title)).toEqual(['A', 'A', 'B'])
  })

  it('a 429 with a Retry-After above maxWaitMs does not delay other calls', async () => {
    await using server = await startServer((_, count) =>
      count === 1 ? { status: 429, headers: { 'Retry-After': '3600' } } : OK,
    )
    const client = createMuster({ baseUrl: server.url, apiKey: 'any' })
    expect((await catchError(create(client, 'A'))).status).toBe(429)
    await client.GET('/public/v1/tasks')
    expect(server.requests).toHaveLength(2)
  })

  it('a waiting call ends when its signal aborts, and the others go on', async () => {
    await using server = await startServer(() => OK)
    const first = Promise.withResolvers<void>()
    const client = createMuster({
      baseUrl: server.url,
      apiKey: 'any',
      maxConcurrentCalls: 1,
      fetch: (request) => first.promise.then(() => fetch(request)),
    })
    const abort = new AbortController()
    const calls = [
      client.GET('/public/v1/tasks'),
      client.GET('/public/v1/jobs', { signal: abort.signal }),
      client.GET('/public/v1/events'),
    ]
    abort.abort(new Error('Enough'))
    await expect(calls[1]).rejects.toThrow('Enough')
    first.resolve()
    await Promise.all([calls[0], calls[2]])
    expect(server.requests.map(({ url }) => url)).toEqual(['/public/v1/tasks', '/public/v1/events'])
  })
})
