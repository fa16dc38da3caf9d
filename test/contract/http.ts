/** A service with one account, for tests of what all operations have in common. */
import { connect } from 'node:net'
import { afterAll, beforeAll, expect } from 'vitest'
import {
  type Answer,
  type CallOptions,
  startApp,
  type TestAccount,
  type TestApp,
} from '../helpers.ts'

export const PARTICIPANTS = '/public/v1/participants'

export interface Http {
  app: TestApp
  account: TestAccount
  /** Sends a request with the key of the account. Paths begin with `/public/v1`. */
  call(method: string, path: string, options?: Omit<CallOptions, 'key'>): Promise<Answer>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Posts to the participants. */
  post(body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Creates a participant. */
  create(body?: object): Promise<Answer['body']>
  /** Sends bytes that `fetch` would correct. Returns the bytes of the response. */
  raw(text: string): Promise<string>
  /** The text of a request with the key of the account. `headers` end with a line break. */
  requestText(method: string, path: string, headers?: string, body?: string): string
}

/** One service for all tests of a file. It starts before them and stops after them. */
export function sharedHttp(): Http {
  const http = {} as Http
  beforeAll(async () => void Object.assign(http, await startHttp()))
  afterAll(() => http.app?.[Symbol.asyncDispose]())
  return http
}

async function startHttp(): Promise<Http> {
  const app = await startApp({ environment: { CORS_ORIGINS: 'https://app.example.com' } })
  const account = await app.newAccount()
  const { key } = account
  const call: Http['call'] = (method, path, options) => app.call(method, path, { key, ...options })
  const post: Http['post'] = (body, headers) => call('POST', PARTICIPANTS, { body, headers })
  return {
    app,
    account,
    call,
    get: (path, headers) => call('GET', path, { headers }),
    post,
    create: async (body = { full_name: 'Ada Lovelace' }) => (await post(body)).body,
    raw: (text) => sendRaw(app.url, text),
    requestText: (method, path, headers = '', body = '') =>
      `${method} ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n` +
      `Authorization: Bearer ${key}\r\n${headers}\r\n${body}`,
  }
}

/** Returns the bytes of the response after the connection was closed. */
export function sendRaw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
    socket.on('error', reject)
    socket.write(text)
  })
}

/** Asserts the status, and what all errors have in common. */
export function assertError(answer: Answer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(typeof answer.body.message).toBe('string')
}
