/** service-spec §8: 60 requests per minute per API key owner, for all public API requests. */
import { expect, test } from 'vitest'
import { readConfig } from '../../server/config.ts'
import { type Answer, startApp } from '../helpers.ts'

/** The default settings. */
const { rateLimitPerMinute } = readConfig({ DATA_DIR: 'unused' }, { createsFiles: false })

test('by default each user has 60 requests per minute, over all their keys and all requests', async () => {
  await using app = await startApp({ config: { rateLimitPerMinute } })
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
