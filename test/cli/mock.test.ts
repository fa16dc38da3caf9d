/** `muster mock` responds with the examples of the contract, and refuses to start with invalid
 *  ones. */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OperationId } from '../../generated/operations.ts'
import { operations } from '../../generated/operations.ts'
import { responses } from '../../generated/validators.js'
import { createMock } from '../../scripts/mock/mock.ts'
import { type Contract, readGeneratedContract } from '../../scripts/model/contract.ts'
import { type HttpServer, listen } from '../../server/http.ts'
import { serviceParts } from '../../server/service-parts.ts'
import { operationIds } from '../helpers.ts'
import { ROOT } from '../repository.ts'
import { newMuster, waitForDocument, waitForOutput } from './muster.ts'

// biome-ignore lint/suspicious/noExplicitAny: parts of the contract are not typed.
type Part = any

const log = pino({ level: 'silent' })

/** The contract, and its OpenAPI document to change. */
function readOwnContract(): { contract: Contract; document: Part } {
  const contract = readGeneratedContract(ROOT)
  return { contract, document: contract.openapi.root }
}

const own = readOwnContract()

async function startMock(contract: Contract): Promise<HttpServer & { url: string }> {
  const mock = await createMock({ service: serviceParts, log, contract })
  const server = await listen(mock.callback(), { host: '127.0.0.1', port: 0 })
  return { ...server, url: `http://127.0.0.1:${server.port}` }
}

let mock: HttpServer & { url: string }
let url: string

beforeAll(async () => {
  mock = await startMock(own.contract)
  url = mock.url
})
afterAll(() => mock.stop(0))

/** Follows `$ref` to a component of the contract. */
const follow = (part: Part): Part => {
  if (part.$ref === undefined) return part
  const [, , kind, name] = part.$ref.split('/')
  return follow(own.document.components[kind][name])
}

/** The contract's example of a request to the operation. */
function exampleRequest(id: OperationId): {
  method: string
  path: string
  body?: string
  type: Record<string, string>
} {
  const { method, path } = operations[id]
  const item = own.document.paths[path]
  const parameters: Part[] = (item.parameters ?? []).map(follow)
  const examplePath = path.replace(
    /\{(\w+)\}/g,
    (_, name) => parameters.find((parameter) => parameter.name === name).example,
  )
  const query = new URLSearchParams(
    (item[method].parameters ?? [])
      .map(follow)
      .filter((parameter: Part) => parameter.in === 'query' && parameter.required)
      .map(({ name, example }: Part) => [name, String(example)]),
  )
  const declared = item[method].requestBody
  const [[type, content]] = declared
    ? Object.entries<Part>(follow(declared).content)
    : [[undefined, undefined]]
  const example = content?.example
  return {
    method: method.toUpperCase(),
    path: query.size === 0 ? examplePath : `${examplePath}?${query}`,
    body: type === 'application/json' ? JSON.stringify(example) : example,
    type: type ? { 'Content-Type': type } : {},
  }
}

async function sendExample(
  id: OperationId,
  headers: Record<string, string> = {},
): Promise<Response> {
  const { method, path, body, type } = exampleRequest(id)
  return fetch(url + path, {
    method,
    body,
    headers: { Authorization: 'Bearer any', ...type, ...headers },
  })
}

const json = async (response: Response): Promise<Part> => response.clone().json()

async function assertConforms(id: OperationId, response: Response): Promise<void> {
  const expected = responses[id][response.status]
  expect(expected, `${id} ${response.status}`).toBeDefined()
  const { headers, body } = expected ?? {}
  if (headers)
    expect(
      [headers(Object.fromEntries(response.headers)), headers.errors],
      `${id} ${response.status} headers`,
    ).toEqual([true, null])
  const text = await response.text()
  if (!body) return expect(text).toBe('')
  const type = response.headers.get('content-type') ?? ''
  expect(Object.keys(body)).toContain(type)
  const validator = body[type]
  if (validator)
    expect(
      [validator(JSON.parse(text)), validator.errors],
      `${id} ${response.status} body`,
    ).toEqual([true, null])
}

describe.each(operationIds)('%s', (id) => {
  it('responds to the example with the documented success', async () => {
    const response = await sendExample(id)
    expect(response.status).toBe(operations[id].success)
    await assertConforms(id, response)
  })

  it.each(operations[id].statuses)('Prefer: code=%i returns that status', async (status) => {
    const response = await sendExample(id, { Prefer: `code=${status}` })
    expect([response.status, response.headers.get('preference-applied')]).toEqual([
      status,
      `code=${status}`,
    ])
    await assertConforms(id, response)
  })
})

describe('a request that the service refuses, too', () => {
  const post = (headers: Record<string, string>, body: string) =>
    fetch(`${url}/public/v1/tasks`, {
      method: 'POST',
      headers: { Authorization: 'Bearer any', ...headers },
      body,
    })
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/public/v1${path}`, { headers: { Authorization: 'Bearer any', ...headers } })
  const asJson = { 'Content-Type': 'application/json' }

  it.each<{ name: string; send: () => Promise<Response>; status: number; id: OperationId }>([
    {
      name: 'no key',
      send: () => fetch(`${url}/public/v1/tasks`),
      status: 401,
      id: 'listTasks',
    },
    {
      name: 'a key of another scheme',
      send: () => get('/tasks', { Authorization: 'Basic eDp5' }),
      status: 401,
      id: 'listTasks',
    },
    {
      name: 'an unknown parameter',
      send: () => get('/tasks?bogus=1'),
      status: 422,
      id: 'listTasks',
    },
    { name: 'a malformed ID', send: () => get('/tasks/1'), status: 404, id: 'getTask' },
    {
      name: 'a body that is not JSON',
      send: () => post(asJson, '{'),
      status: 400,
      id: 'createTask',
    },
    {
      name: 'a body of another type',
      send: () => post({ 'Content-Type': 'text/plain' }, '{}'),
      status: 415,
      id: 'createTask',
    },
    {
      name: 'an oversized body',
      send: () => post(asJson, JSON.stringify({ title: 'x'.repeat(1024 * 1024) })),
      status: 413,
      id: 'createTask',
    },
    {
      name: 'invalid fields',
      send: () => post(asJson, '{"title": 1, "titel": "x"}'),
      status: 422,
      id: 'createTask',
    },
  ])('$name: $status', async ({ send, status, id }) => {
    const response = await send()
    expect(response.status).toBe(status)
    await assertConforms(id, response)
  })

  it('invalid fields: the same messages as the service', async () => {
    expect(await json(await post(asJson, '{"title": 1, "titel": "x"}'))).toEqual({
      message: 'The input is invalid.',
      errors: { title: ['must be a string.'], titel: ['is not a recognised field.'] },
    })
  })

  it('an unknown path: 404', async () => {
    const response = await fetch(`${url}/public/v1/nowhere`)
    expect([response.status, await response.json()]).toEqual([
      404,
      { message: 'There is nothing at this URL.' },
    ])
  })

  it('an unknown method: 405 with the known ones, but 401 without a key', async () => {
    const put = (headers: Record<string, string>) =>
      fetch(`${url}/public/v1/tasks`, { method: 'PUT', headers })
    expect((await put({})).status).toBe(401)
    const { status, headers } = await put({ Authorization: 'Bearer mst_x' })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, POST, HEAD, OPTIONS'])
  })
})

describe('request headers', () => {
  it('Prefer: code of an undocumented status returns 422 with the documented ones', async () => {
    const response = await sendExample('getTask', { Prefer: 'code=418' })
    const [message] = (await json(response)).errors.Prefer
    expect([response.status, message]).toEqual([
      422,
      expect.stringMatching(/code=418.*use 200, 304, 400/),
    ])
  })

  it('Prefer: example selects a named example, by default the first', async () => {
    const { contract, document } = readOwnContract()
    const { content } = document.components.responses.Task
    const { schema, example: first } = content['application/json']
    const other = { ...first, title: 'Another' }
    content['application/json'] = {
      schema,
      examples: { first: { value: first }, other: { value: other } },
    }
    const server = await startMock(contract)
    const mockUrl = server.url + exampleRequest('getTask').path
    const titleWith = async (headers: Record<string, string>) =>
      (await json(await fetch(mockUrl, { headers: { Authorization: 'Bearer any', ...headers } })))
        .title
    try {
      expect(await titleWith({})).toBe(first.title)
      expect(await titleWith({ Prefer: 'code=200, example="other"' })).toBe('Another')
      expect(await titleWith({ Prefer: 'dynamic=false, example=other' })).toBe('Another')
      const unknown = await fetch(mockUrl, {
        headers: { Authorization: 'Bearer any', Prefer: 'example=third' },
      })
      expect((await json(unknown)).errors.Prefer).toEqual([
        expect.stringContaining('use first, other'),
      ])
    } finally {
      await server.stop(0)
    }
  })

  it('Accept selects the media type of a file', async () => {
    for (const type of ['text/csv', 'application/json']) {
      const response = await sendExample('getExportFile', { Accept: type })
      expect(response.headers.get('content-type')).toBe(type)
      await assertConforms('getExportFile', response)
    }
  })

  it('If-Match and If-None-Match are compared with the ETag', async () => {
    const etag = (await sendExample('getTask')).headers.get('etag') ?? ''
    expect((await sendExample('getTask', { 'If-None-Match': etag })).status).toBe(304)
    expect((await sendExample('updateTask', { 'If-Match': etag })).status).toBe(200)
    for (const tags of ['"older"', ''])
      expect((await sendExample('deleteTask', { 'If-Match': tags })).status).toBe(412)
  })
})

it('allows requests from all origins, also for errors', async () => {
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

it('refuses to start with examples that break the contract, and names each place', async () => {
  const { contract, document } = readOwnContract()
  document.components.responses.Task.content['application/json'].example.status = 'odd'
  delete document.components.headers['Retry-After'].example
  const refusal = await startMock(contract).catch((error: Error) => error.message)
  expect(refusal).toContain('listParticipants 429: headers/retry-after must match pattern')
  expect(refusal).toMatch(/\nand \d+ more$/)
  document.components.headers['Retry-After'].example = 30
  await expect(startMock(contract)).rejects.toThrow(
    /\ngetTask 200: body\/status must be equal.*\nupdateTask 200: body\/status .*$/,
  )
})

describe('muster mock', () => {
  it('prints its URL and each response, and stops on SIGTERM', async () => {
    await using muster = await newMuster()
    const started = muster.start(['mock', '--port', '0'])
    const [, mockUrl = ''] = await waitForOutput(started, /at (http:\S+[^.\s])/)
    await fetch(`${mockUrl}/public/v1/tasks?bogus=1`, { headers: { Authorization: 'Bearer any' } })
    started.process.kill('SIGTERM')
    const { status, stdout, stderr } = await started.ended
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(
      '422  GET /public/v1/tasks?bogus=1  listTasks\n     bogus is not a recognised field.\n',
    )
  })

  it('--json prints only its URL', async () => {
    await using muster = await newMuster()
    const started = muster.start(['mock', '--port', '0', '--json'])
    const { url: mockUrl } = await waitForDocument(started)
    expect((await fetch(`${mockUrl}/public/v1/tasks`)).status).toBe(401)
    started.process.kill('SIGINT')
    expect(await started.ended).toMatchObject({
      status: 0,
      stdout: `${JSON.stringify({ url: mockUrl })}\n`,
      stderr: '',
    })
  })

  it('refuses a port that is in use', async () => {
    await using muster = await newMuster()
    const port = String(mock.port)
    expect(await muster.run(['mock', '--port', port])).toEqual({
      status: 1,
      stdout: '',
      stderr: `Port ${port} of 127.0.0.1 is already in use. Set --port to another port.\n`,
    })
  })
})
