/** `muster mock`: answers as the contract says, whatever is asked, and refuses to answer from examples that break it. */
import { readFile } from 'node:fs/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OperationId } from '../../generated/operations.ts'
import { operations } from '../../generated/operations.ts'
import { responses } from '../../generated/validators.js'
import { createMock } from '../../scripts/mock/mock.ts'
import { type HttpServer, listen } from '../../server/http.ts'
import { serviceParts } from '../../server/service-parts.ts'
import { operationIds } from '../helpers.ts'
import { newMuster, type Started } from './muster.ts'

const document = JSON.parse(
  await readFile(new URL('../../generated/openapi.json', import.meta.url), 'utf8'),
)
const log = pino({ level: 'silent' })

async function startMock(of: unknown): Promise<HttpServer & { url: string }> {
  const server = await listen(
    (await createMock({ service: serviceParts, log, document: of })).callback(),
    {
      host: '127.0.0.1',
      port: 0,
    },
  )
  return { ...server, url: `http://127.0.0.1:${server.port}` }
}

let mock: HttpServer & { url: string }
let url: string

beforeAll(async () => {
  mock = await startMock(document)
  url = mock.url
})
afterAll(() => mock.stop(0))

// biome-ignore lint/suspicious/noExplicitAny: parts of the contract, as they are.
type Part = any

const follow = (part: Part): Part => {
  if (part.$ref === undefined) return part
  const [, , kind, name] = part.$ref.split('/')
  return follow(document.components[kind][name])
}

/** What the contract shows of a request to the operation. */
function exampleOf(id: OperationId): {
  method: string
  path: string
  body?: string
  type: Record<string, string>
} {
  const { method, path } = operations[id]
  const item = document.paths[path]
  const values = (item.parameters ?? [])
    .map(follow)
    .map(({ name, example }: Part) => [`{${name}}`, example])
  const filled = values.reduce(
    (text: string, [from, to]: string[]) => text.replace(from ?? '', to ?? ''),
    path,
  )
  const declared = item[method].requestBody
  const body = declared && JSON.stringify(follow(declared).content['application/json'].example)
  return {
    method: method.toUpperCase(),
    path: filled,
    body,
    type: body ? { 'Content-Type': 'application/json' } : {},
  }
}

async function ask(id: OperationId, headers: Record<string, string> = {}): Promise<Response> {
  const { method, path, body, type } = exampleOf(id)
  return fetch(url + path, {
    method,
    body,
    headers: { Authorization: 'Bearer any', ...type, ...headers },
  })
}

const json = async (answer: Response): Promise<Part> => answer.clone().json()

async function assertConforms(id: OperationId, answer: Response): Promise<void> {
  const expected = responses[id][answer.status]
  expect(expected, `${id} ${answer.status}`).toBeDefined()
  const { headers, body } = expected ?? {}
  if (headers)
    expect(
      [headers(Object.fromEntries(answer.headers)), headers.errors],
      `${id} ${answer.status} headers`,
    ).toEqual([true, null])
  const text = await answer.text()
  if (!body) return expect(text).toBe('')
  const type = answer.headers.get('content-type') ?? ''
  expect(Object.keys(body)).toContain(type)
  const validator = body[type]
  if (validator)
    expect([validator(JSON.parse(text)), validator.errors], `${id} ${answer.status} body`).toEqual([
      true,
      null,
    ])
}

describe.each(operationIds)('%s', (id) => {
  it('answers the documented example with the documented success', async () => {
    const answer = await ask(id)
    expect(answer.status).toBe(operations[id].success)
    await assertConforms(id, answer)
  })

  it.each(operations[id].statuses)('answers %i when it is preferred', async (status) => {
    const answer = await ask(id, { Prefer: `code=${status}` })
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([
      status,
      `code=${status}`,
    ])
    await assertConforms(id, answer)
  })
})

describe('a request that the service refuses', () => {
  const post = (headers: Record<string, string>, body: string) =>
    fetch(`${url}/public/v1/tasks`, {
      method: 'POST',
      headers: { Authorization: 'Bearer any', ...headers },
      body,
    })
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/public/v1${path}`, { headers: { Authorization: 'Bearer any', ...headers } })
  const asJson = { 'Content-Type': 'application/json' }

  it.each([
    ['no key', () => fetch(`${url}/public/v1/tasks`), 401, 'listTasks'],
    [
      'a key of another scheme',
      () => get('/tasks', { Authorization: 'Basic eDp5' }),
      401,
      'listTasks',
    ],
    ['an unknown parameter', () => get('/tasks?bogus=1'), 422, 'listTasks'],
    ['an id that is none', () => get('/tasks/1'), 404, 'getTask'],
    ['a body that is no JSON', () => post(asJson, '{'), 400, 'createTask'],
    [
      'a body of another type',
      () => post({ 'Content-Type': 'text/plain' }, '{}'),
      415,
      'createTask',
    ],
    [
      'a body too large',
      () => post(asJson, JSON.stringify({ title: 'x'.repeat(1024 * 1024) })),
      413,
      'createTask',
    ],
    ['fields at fault', () => post(asJson, '{"title": 1, "titel": "x"}'), 422, 'createTask'],
  ] as const)('%s', async (_, request, status, id) => {
    const answer = await request()
    expect(answer.status).toBe(status)
    await assertConforms(id, answer)
  })

  it('fields at fault are named as the service names them', async () => {
    expect(await json(await post(asJson, '{"title": 1, "titel": "x"}'))).toEqual({
      message: 'The given data was invalid.',
      errors: { title: ['must be a string.'], titel: ['is not a recognised field.'] },
    })
  })

  it('an address and a method that there is not', async () => {
    const nowhere = await fetch(`${url}/public/v1/nowhere`)
    expect([nowhere.status, await nowhere.json()]).toEqual([
      404,
      { message: 'There is nothing at this address.' },
    ])
    const method = await fetch(`${url}/public/v1/tasks`, { method: 'PUT' })
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'GET, POST, HEAD, OPTIONS'])
  })
})

describe('a preference', () => {
  it('for a status that the operation does not have is refused, with those it has', async () => {
    const answer = await ask('getTask', { Prefer: 'code=418' })
    const [message] = (await json(answer)).errors.Prefer
    expect([answer.status, message]).toEqual([
      422,
      expect.stringMatching(/code=418.*use 200, 304, 400/),
    ])
  })

  it('for one of several named examples brings it, and the first without it', async () => {
    const named = structuredClone(document)
    const { content } = named.components.responses.Task
    const [first, other] = [
      content['application/json'].example,
      { ...content['application/json'].example, title: 'Another' },
    ]
    content['application/json'] = {
      schema: content['application/json'].schema,
      examples: { first: { value: first }, other: { value: other } },
    }
    const server = await startMock(named)
    const address = server.url + exampleOf('getTask').path
    const titleWith = async (headers: Record<string, string>) =>
      (await json(await fetch(address, { headers: { Authorization: 'Bearer any', ...headers } })))
        .title
    try {
      expect(await titleWith({})).toBe(first.title)
      expect(await titleWith({ Prefer: 'code=200, example="other"' })).toBe('Another')
      expect(await titleWith({ Prefer: 'dynamic=false, example=other' })).toBe('Another')
      const unknown = await fetch(address, {
        headers: { Authorization: 'Bearer any', Prefer: 'example=third' },
      })
      expect((await json(unknown)).errors.Prefer).toEqual([
        expect.stringContaining('use first, other'),
      ])
    } finally {
      await server.stop(0)
    }
  })

  it('a file comes in the media type that is accepted', async () => {
    for (const type of ['text/csv', 'application/json']) {
      const answer = await ask('getExportFile', { Accept: type })
      expect(answer.headers.get('content-type')).toBe(type)
      await assertConforms('getExportFile', answer)
    }
  })

  it('the version of a record is compared', async () => {
    const etag = (await ask('getTask')).headers.get('etag') ?? ''
    expect((await ask('getTask', { 'If-None-Match': etag })).status).toBe(304)
    expect((await ask('updateTask', { 'If-Match': etag })).status).toBe(200)
    expect((await ask('deleteTask', { 'If-Match': '"older"' })).status).toBe(412)
  })
})

it('browsers of any origin may call it, errors included', async () => {
  const preflight = await fetch(`${url}/public/v1/tasks`, {
    method: 'OPTIONS',
    headers: {
      Origin: 'https://app.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'prefer',
    },
  })
  expect(preflight.headers.get('access-control-allow-headers')).toContain('Prefer')
  const refused = await fetch(`${url}/public/v1/tasks`, {
    headers: { Origin: 'https://app.example' },
  })
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, '*'])
})

it('examples that break the contract are refused, each by its place', async () => {
  const broken = structuredClone(document)
  broken.components.responses.Task.content['application/json'].example.status = 'odd'
  delete broken.components.headers['Retry-After'].example
  const refusal = await createMock({ service: serviceParts, log, document: broken }).catch(
    (error: Error) => error.message,
  )
  expect(refusal).toContain('listParticipants 429: headers/retry-after must match pattern')
  expect(refusal).toMatch(/\nand \d+ more$/)
  broken.components.headers['Retry-After'].example = 30
  await expect(createMock({ service: serviceParts, log, document: broken })).rejects.toThrow(
    /\ngetTask 200: body\/status must be equal.*\nupdateTask 200: body\/status .*$/,
  )
})

describe('the command', () => {
  const whenReady = (started: Started) =>
    new Promise<string>((resolve, reject) => {
      started.process.stdout?.on('data', () => {
        if (started.output.stdout.includes('\n')) resolve(started.output.stdout)
      })
      started.ended.then(({ stderr }) => reject(new Error(stderr)), reject)
    })

  it('prints its address and each answer, and ends when it is told to', async () => {
    await using muster = await newMuster()
    const started = muster.start(['mock', '--port', '0'])
    const [, address = ''] = /at (http:\S+[^.\s])/.exec(await whenReady(started)) ?? []
    await fetch(`${address}/public/v1/tasks?bogus=1`, { headers: { Authorization: 'Bearer any' } })
    started.process.kill('SIGTERM')
    const { status, stdout, stderr } = await started.ended
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(
      '422  GET /public/v1/tasks?bogus=1  listTasks\n     bogus is not a recognised field.\n',
    )
  })

  it('--json prints its address and nothing else; a port in use is refused', async () => {
    await using muster = await newMuster()
    const started = muster.start(['mock', '--port', '0', '--json'])
    const { url: address } = JSON.parse(await whenReady(started))
    expect((await fetch(`${address}/public/v1/tasks`)).status).toBe(401)
    const { port } = new URL(address)
    expect(await muster.run(['mock', '--port', port])).toEqual({
      status: 1,
      stdout: '',
      stderr: `Port ${port} of 127.0.0.1 is in use: choose another with --port\n`,
    })
    started.process.kill('SIGINT')
    expect(await started.ended).toMatchObject({
      status: 0,
      stdout: `${JSON.stringify({ url: address })}\n`,
      stderr: '',
    })
  })
})
