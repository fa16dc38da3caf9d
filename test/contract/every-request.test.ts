/** The checks that every request below /public passes, whatever its path and method: service-spec
 *  §1 "API Dashboard" and §8 "All public API requests". */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { visitor } from '../console/visitors.ts'
import { type Answer, sharedApp, type TestAccount, until } from '../helpers.ts'

const RATE_LIMIT = 5
const PARTICIPANTS = '/public/v1/participants'

const app = sharedApp({ environment: { RATE_LIMIT_PER_MINUTE: String(RATE_LIMIT) } })

/** The dashboard's rows of a request ID, as text. */
async function findLoggedRows(account: TestAccount, requestId: string): Promise<string[]> {
  const owner = await visitor(app, account)
  return until('the request is in the dashboard', async () => {
    const { text } = await owner.get(`/requests?request=${requestId}`)
    const rows = [...text.matchAll(/<tbody id="request-.*?<\/tbody>/gs)]
    return rows.length > 0 && rows.map(([row]) => row.replace(/<[^>]*>/g, ' '))
  })
}

const refused: [name: string, method: string, path: string, status: number][] = [
  ['an unknown path', 'GET', '/public/v1/nothing', 404],
  ['an unknown version', 'GET', '/public/v2/participants', 404],
  ['an unknown method', 'PUT', PARTICIPANTS, 405],
  ['a path that cannot be decoded', 'GET', `${PARTICIPANTS}/%E0%A4%A`, 400],
]

describe.each(refused)('%s', (_, method, path, status) => {
  test('with a valid key: counts against the limit, says so in headers, and is in the dashboard', async () => {
    const account = await app.newAccount()
    const requestId = randomUUID()
    const call = (): Promise<Answer> =>
      app.call(method, path, { key: account.key, headers: { 'X-Request-Id': requestId } })
    const first = await call()
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([
      status,
      String(RATE_LIMIT - 1),
    ])
    const [row] = await findLoggedRows(account, requestId)
    expect(row).toContain(String(status))
    for (let request = 2; request <= RATE_LIMIT; request++)
      expect((await call()).status).toBe(status)
    expect((await call()).status).toBe(429)
    expect((await app.as(account).get('/participants')).status).toBe(429)
  })
})

test('without a valid key: 401 for a known path with any method, 404 for an unknown path', async () => {
  const statuses = async (key?: string): Promise<number[]> => [
    (await app.call('GET', PARTICIPANTS, { key })).status,
    (await app.call('PUT', PARTICIPANTS, { key })).status,
    (await app.call('GET', '/public/v1/nothing', { key })).status,
  ]
  expect(await statuses()).toEqual([401, 401, 404])
  expect(await statuses('mst_malformed')).toEqual([401, 401, 404])
})

test('a revoked key: 401, in the dashboard of its account, and nothing of its owner’s limit is used', async () => {
  const account = await app.newAccount()
  const revoked = await app.newKey(account)
  const { id } = await app.db
    .read('api_keys')
    .where({ user_id: account.userId })
    .orderBy('id', 'desc')
    .first('id')
  await app.db.write('api_keys').where({ id }).update({ revoked_at: Date.now() })
  const requestId = randomUUID()
  for (let request = 0; request < RATE_LIMIT + 1; request++) {
    const { status, headers } = await app.call('GET', PARTICIPANTS, {
      key: revoked,
      headers: { 'X-Request-Id': requestId },
    })
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([401, null])
  }
  expect((await findLoggedRows(account, requestId))[0]).toContain('401')
  const { headers } = await app.as(account).get('/participants')
  expect(headers.get('x-ratelimit-remaining')).toBe(String(RATE_LIMIT - 1))
})
