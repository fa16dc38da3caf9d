/** The order of checks in openapi.yaml, the statuses, and the shape of errors: service-spec §7.
 *  The request of a row fails the check of the row, and where possible also those of later rows. */
import { beforeAll, describe, expect, test } from 'vitest'
import { newParticipant, UNKNOWN_ID } from '../handlers/new-records.ts'
import { type Answer, sharedApp, startApp, type TestAccount } from '../helpers.ts'

const PARTICIPANTS = '/public/v1/participants'
const UNKNOWN = `${PARTICIPANTS}/${UNKNOWN_ID}`
const OVER_1_MIB = JSON.stringify({ full_name: 'x'.repeat(1024 * 1024) })

let account: TestAccount
let readOnlyKey: string
const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
  readOnlyKey = await app.newKey(account, 'read_only')
})

interface Request {
  key?: 'read_only' | 'full_access'
  method?: string
  path: string
  body?: unknown
  headers?: Record<string, string>
}

interface Row extends Request {
  fails: string
  status: number
}

function send({ key, method = 'PATCH', path, body, headers }: Request): Promise<Answer> {
  const keys = { read_only: readOnlyKey, full_access: account.key }
  return app.call(method, path, { key: key && keys[key], body, headers })
}

const plainText = { 'Content-Type': 'text/plain' }
const rows: Row[] = [
  { fails: '1. no API key', path: `${UNKNOWN}?x=1`, body: '{', headers: plainText, status: 401 },
  {
    fails: '3. a URL that cannot be decoded',
    key: 'read_only',
    path: `${PARTICIPANTS}/%E0%A4%A`,
    body: '{',
    headers: plainText,
    status: 400,
  },
  {
    fails: '3. a URL longer than 8 KiB',
    key: 'read_only',
    path: `${UNKNOWN}?x=${'x'.repeat(9_000)}`,
    body: '{',
    headers: plainText,
    status: 414,
  },
  {
    fails: '3. an unknown path',
    key: 'read_only',
    path: '/public/v1/nothing?x=1',
    body: '{',
    headers: plainText,
    status: 404,
  },
  {
    fails: '3. an unsupported method',
    key: 'read_only',
    method: 'PUT',
    path: `${UNKNOWN}?x=1`,
    body: '{',
    headers: plainText,
    status: 405,
  },
  {
    fails: '4. a Read Only key',
    key: 'read_only',
    path: `${UNKNOWN}?x=1`,
    body: '{',
    headers: plainText,
    status: 403,
  },
  {
    fails: '5. a body that is not JSON',
    key: 'full_access',
    path: `${UNKNOWN}?x=1`,
    body: OVER_1_MIB,
    headers: plainText,
    status: 415,
  },
  {
    fails: '5. a body over 1 MiB',
    key: 'full_access',
    path: `${UNKNOWN}?x=1`,
    body: `{${OVER_1_MIB}`,
    status: 413,
  },
  {
    fails: '5. a body that cannot be parsed',
    key: 'full_access',
    path: `${UNKNOWN}?x=1`,
    body: '{',
    status: 400,
  },
  {
    fails: '6. an unknown parameter',
    key: 'full_access',
    path: `${UNKNOWN}?x=1`,
    body: {},
    status: 422,
  },
  {
    fails: '6. an invalid field',
    key: 'full_access',
    path: UNKNOWN,
    body: { full_name: '' },
    status: 422,
  },
  { fails: '7. an unknown record', key: 'full_access', path: UNKNOWN, body: {}, status: 404 },
]

describe('the first check that fails decides', () => {
  test.each(rows)('$fails: $status', async ({ status, ...request }) => {
    const response = await send(request)
    expect(response.status).toBe(status)
    expectErrorBody(response)
  })

  test('2. a request above the rate limit: 429, unless it has no valid key', async () => {
    await using limited = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '1' } })
    const owner = await limited.newAccount()
    const key = await limited.newKey(owner, 'read_only')
    await limited.as(owner).get('/participants')
    for (const { path, method = 'PATCH', headers, body } of rows.filter(({ key }) => key)) {
      const response = await limited.call(method, path, { key, headers, body })
      expect([path, response.status]).toEqual([path, 429])
      expectErrorBody(response)
    }
    expect((await limited.call('GET', PARTICIPANTS)).status).toBe(401)
  })

  test('7. a stale version of a record: 412, after its body is checked', async () => {
    const { id } = await newParticipant(app.as(account))
    const headers = { 'If-Match': '"stale"' }
    const update = (body: object): Promise<Answer> =>
      send({ key: 'full_access', path: `${PARTICIPANTS}/${id}`, body, headers })
    expect((await update({ full_name: '' })).status).toBe(422)
    const response = await update({ full_name: 'New' })
    expect(response.status).toBe(412)
    expectErrorBody(response)
  })
})

/** `message`, and `errors` on validation failures only. */
function expectErrorBody({ status, body }: Answer): void {
  expect(body.message).toEqual(expect.any(String))
  expect(Object.keys(body)).toEqual(status === 422 ? ['message', 'errors'] : ['message'])
  if (status !== 422) return
  expect(Object.keys(body.errors)).not.toEqual([])
  for (const messages of Object.values<unknown[]>(body.errors)) {
    expect(messages.length).toBeGreaterThan(0)
    for (const message of messages) expect(message).toEqual(expect.any(String))
  }
}
