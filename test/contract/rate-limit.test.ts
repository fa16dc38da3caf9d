/** The rate limit. service-spec §8: 60 requests per minute per API key owner, for all public API
 *  requests. */
import { expect, test } from 'vitest'
import { type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { setQuota } from '../../records/quotas.ts'
import { updateRateLimit } from '../../records/users.ts'
import { readConfig } from '../../server/config.ts'
import { type Answer, startApp } from '../helpers.ts'
import { PARTICIPANTS } from './http.ts'

/** The default settings. */
const { quotas } = readConfig({ DATA_DIR: 'unused' }, { createsFiles: false })

test('by default each user has 60 requests per minute, over all their keys and all requests', async () => {
  await using app = await startApp({ config: { quotas } })
  const account = await app.newAccount()
  const keys = [account.key, await app.newKey(account), await app.newKey(account, 'read_only')]
  const requests: [method: string, path: string, body?: unknown][] = [
    ['GET', '/participants'],
    ['GET', '/exports'],
    ['GET', '/participants/no-record'],
    ['POST', '/tasks', { title: 'Call' }],
    ['POST', '/tasks', {}],
    ['GET', '/no-path'],
    ['PUT', '/participants'],
  ]
  const send = (index: number): Promise<Answer> => {
    const [method, path, body] = requests[index % requests.length] as (typeof requests)[number]
    return app.call(method, `/public/v1${path}`, { key: keys[index % keys.length], body })
  }
  for (let index = 0; index < 60; index++) {
    const { status, headers } = await send(index)
    expect(status).not.toBe(429)
    expect(headers.get('x-ratelimit-remaining')).toBe(String(59 - index))
  }
  for (let index = 0; index < keys.length * requests.length; index++) {
    const { status, headers } = await send(index)
    expect(status).toBe(429)
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  }
  const colleague = { ...account, ...(await app.newUser(account.accountId)) }
  const { status } = await app.as({ key: await app.newKey(colleague) }).get('/participants')
  expect(status).toBe(200)
})

test('all keys of a user share the limit → headers with the rest, then 429 with Retry-After', async () => {
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
  // Other users have their own limit, and OPTIONS needs no key.
  const other = await limited.newAccount()
  expect((await limited.as(other).get('/participants')).status).toBe(200)
  expect((await limited.call('OPTIONS', PARTICIPANTS)).status).toBe(204)
})

test('requests with an invalid body count against the limit', async () => {
  await using limited = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '2' } })
  const owner = await limited.newAccount()
  const statuses: number[] = []
  for (let i = 0; i < 3; i++)
    statuses.push((await limited.as(owner).post('/participants', '{broken')).status)
  expect(statuses).toEqual([400, 400, 429])
})

test('an operator sets the limit of an account and of a user → it applies to the next request', async () => {
  await using app = await startApp({ environment: { RATE_LIMIT_PER_MINUTE: '2' } })
  const owner = await app.newAccount()
  const { accountId } = owner
  const { userId } = await app.newUser(accountId)
  const key = await app.newKey({ accountId, userId })
  const change = (work: (scope: WriteScope) => Promise<void>): Promise<void> =>
    transaction(app.db, (trx) => work(writeScope(trx, accountId)))
  const use = async (client: { key: string }): Promise<[number, number, string | null]> => {
    const { status, body, headers } = await app.as(client).get('/me')
    return [status, body.rate_limit?.limit, headers.get('ratelimit-policy')]
  }
  expect(await use({ key })).toEqual([200, 2, '"default";q=2;w=60'])

  await change((scope) => setQuota(scope, 'requests_per_minute', 4))
  expect(await use({ key })).toEqual([200, 4, '"default";q=4;w=60'])
  await change((scope) => updateRateLimit(scope, userId, 3, new Date()))
  expect(await use({ key })).toEqual([200, 3, '"default";q=3;w=60'])
  expect(await use({ key })).toEqual([429, undefined, '"default";q=3;w=60'])
  expect(await use(owner)).toEqual([200, 4, '"default";q=4;w=60'])

  await change((scope) => updateRateLimit(scope, userId, null, new Date()))
  await change((scope) => setQuota(scope, 'requests_per_minute', null))
  expect(await use({ key })).toEqual([429, undefined, '"default";q=2;w=60'])
  expect(await use(await app.newAccount())).toEqual([200, 2, '"default";q=2;w=60'])
})
