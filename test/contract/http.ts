/** A service with one account, for tests of what all operations have in common. */
import { connect } from 'node:net'
import { expect } from 'vitest'
import { type Answer, startApp, type TestAccount, type TestApp } from '../helpers.ts'

export const PARTICIPANTS = '/public/v1/participants'

export interface Http extends AsyncDisposable {
  app: TestApp
  account: TestAccount
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Posts to the participants. */
  post(body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Creates a participant. */
  create(body?: object): Promise<Answer['body']>
  /** Sends bytes that `fetch` would correct. Returns the bytes of the response. */
  raw(text: string): Promise<string>
  /** The text of a request. `headers` end with a line break. */
  line(method: string, path: string, headers?: string, body?: string): string
}

export async function startHttp(): Promise<Http> {
  const app = await startApp({ environment: { CORS_ORIGINS: 'https://app.example.com' } })
  const account = await app.newAccount()
  const { key } = account
  const post: Http['post'] = (body, headers) =>
    app.call('POST', PARTICIPANTS, { key, body, headers })
  return {
    app,
    account,
    get: (path, headers) => app.call('GET', path, { key, headers }),
    post,
    create: async (body = { full_name: 'Ada Lovelace' }) => (await post(body)).body,
    raw: (text) => sendRaw(app.url, text),
    line: (method, path, headers = '', body = '') =>
      `${method} ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n` +
      `Authorization: Bearer ${key}\r\n${headers}\r\n${body}`,
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}

function sendRaw(url: string, text: string): Promise<string> {
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

/** The shape that all errors share. */
export function assertError(answer: Answer, status: number): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(typeof answer.body.message).toBe('string')
}
