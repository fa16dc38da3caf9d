/** The mock refuses what the service refuses, with the same status and messages. */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMock } from '../../scripts/mock/mock.ts'
import { readGeneratedContract } from '../../scripts/model/contract.ts'
import { type HttpServer, listen } from '../../server/http.ts'
import { serviceParts } from '../../server/service-parts.ts'
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'
import { ROOT } from '../repository.ts'
import { createOneOfEach, fillPath } from '../resources.ts'
import { sendRaw } from './http.ts'

let app: TestApp
let account: TestAccount
let ids: Record<string, string>
let mock: HttpServer
let mockUrl: string

beforeAll(async () => {
  app = await startApp()
  account = await app.newAccount()
  ids = await createOneOfEach(app.as(account))
  const koa = await createMock({
    service: serviceParts,
    log: pino({ level: 'silent' }),
    contract: readGeneratedContract(ROOT),
  })
  mock = await listen(koa.callback(), { host: '127.0.0.1', port: 0 })
  mockUrl = `http://127.0.0.1:${mock.port}`
})
afterAll(async () => {
  await mock?.stop(0)
  await app?.[Symbol.asyncDispose]()
})

interface Request {
  method?: string
  /** `{task}` stands for the ID of a task. */
  path: string
  body?: unknown
  headers?: Record<string, string>
}

interface Response {
  status: number
  body: unknown
}

async function send(url: string, { method, path, body, headers }: Request): Promise<Response> {
  const response = await fetch(`${url}/public/v1${fillPath(path, ids)}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      Authorization: `Bearer ${account.key}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? '' : JSON.parse(text) }
}

const question = { key: 'a', label: 'A', requirement: 'must_have', expected: true }
const sameKeys = { screening_questions: [question, { ...question, label: 'B' }] }
const atLeastTrue = { screening_questions: [{ ...question, operator: 'at_least' }] }
const exportOf = (resource: string, filters: object): Request => ({
  path: '/exports',
  body: { resource, format: 'csv', filters },
})
const MERGE_PATCH = { 'Content-Type': 'application/merge-patch+json' }

const REFUSED: [what: string, request: Request, status: number][] = [
  ['a sort that names a field twice', { path: '/tasks?sort=title,-title' }, 422],
  [
    'a bracketed sort that names a field twice',
    { path: '/events?sort[]=created_at&sort[]=-created_at' },
    422,
  ],
  [
    'a filter that names an option twice',
    { path: '/tasks?filter[status]=open&filter[status]=open' },
    422,
  ],
  ['a repeated parameter with one value', { path: '/tasks?page[size]=1&page[size]=2' }, 422],
  ['an unknown filter of an export', exportOf('tasks', { shoe_size: '43' }), 422],
  ['a filter of another resource', exportOf('payments', { due_after: '2026-01-01' }), 422],
  ['an invalid filter of an export', exportOf('tasks', { status: 'open,bogus' }), 422],
  ['two questions with the same key', { path: '/jobs', body: { title: 'J', ...sameKeys } }, 422],
  [
    'two questions with the same key, in an update',
    { method: 'PATCH', path: '/jobs/{job}', body: sameKeys },
    422,
  ],
  [
    'at_least with a value that is not a number',
    { path: '/jobs', body: { title: 'J', ...atLeastTrue } },
    422,
  ],
  [
    'a time that is out of range in UTC',
    { path: '/tasks', body: { title: 'T', due_at: '2999-12-31T23:00:00-02:00' } },
    422,
  ],
  [
    'a time that is out of range in UTC, in an update',
    { method: 'PATCH', path: '/tasks/{task}', body: { due_at: '1000-01-01T00:00:00+02:00' } },
    422,
  ],
  ['text of white space only', { path: '/tasks', body: { title: ' ' } }, 422],
  [
    'a merge patch for a creation',
    { path: '/tasks', body: { title: 'T' }, headers: MERGE_PATCH },
    415,
  ],
  [
    'an invalid merge patch',
    {
      method: 'PATCH',
      path: '/job-applications/{job_application}',
      body: { answers: { a: [] } },
      headers: MERGE_PATCH,
    },
    422,
  ],
  [
    'an empty If-Match',
    { method: 'DELETE', path: '/tasks/{task}', headers: { 'If-Match': '' } },
    412,
  ],
]

describe('the mock and the service refuse', () => {
  const large = { description: '\u0001'.repeat(10_000) }
  const TOO_LARGE: Request[] = [
    { path: '/tasks', body: { title: 'T', ...large } },
    { method: 'PATCH', path: '/jobs/{job}', body: large },
  ]

  test.each(TOO_LARGE)('a record above 40 KiB: $path', async (request) => {
    for (const url of [app.url, mockUrl])
      expect(await send(url, request)).toMatchObject({
        status: 422,
        body: {
          errors: {
            description: [expect.stringMatching(/^makes the record larger than 40 KiB as JSON\./)],
          },
        },
      })
  })

  test.each(REFUSED)('%s', async (_, request, status) => {
    const refusal = await send(app.url, request)
    expect(refusal.status).toBe(status)
    // The example of a 412, which the mock returns, has another message.
    const expected = status === 412 ? { status } : refusal
    expect(await send(mockUrl, request)).toMatchObject(expected)
  })
})

const ACCEPTED: [what: string, request: Request][] = [
  ['repeated options', { path: '/tasks?filter[status]=open&filter[status]=completed' }],
  ['bracketed options', { path: '/tasks?filter[status][]=open&sort[]=title,%20due_at' }],
  ['the filters of an export', exportOf('tasks', { status: 'open, completed' })],
  [
    'a merge patch that removes an answer',
    {
      method: 'PATCH',
      path: '/job-applications/{job_application}',
      body: { answers: { a: null, b: 1 } },
      headers: MERGE_PATCH,
    },
  ],
]

describe('the mock and the service accept', () => {
  test.each(ACCEPTED)('%s', async (_, request) => {
    const { status } = await send(app.url, request)
    expect([200, 201]).toContain(status)
    expect(await send(mockUrl, request)).toMatchObject({ status })
  })
})

test.each([
  ['without Host', '', 400],
  ['with an unknown Expect', 'Host: test\r\nExpect: x\r\n', 417],
])('a request %s', async (_, headers, status) => {
  const text = `GET /public/v1/tasks HTTP/1.1\r\nConnection: close\r\n${headers}\r\n`
  for (const url of [app.url, mockUrl])
    expect(await sendRaw(url, text)).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} .*\r\n\r\n\\{"message":"The (Host|Expect) header `, 's'),
    )
})
