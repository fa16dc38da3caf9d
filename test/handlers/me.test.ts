import { describe, expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'

const app = sharedApp({ environment: { RATE_LIMIT_PER_MINUTE: '120' } })

describe('getMe', () => {
  test('a valid key → the key, its owner, the account and the configured rate limit', async () => {
    const account = await app.newAccount()
    const { status, body, headers } = await app.as(account).get('/me')
    const { email } = await app.db.read('users').where({ id: account.userId }).first('email')
    expect([status, body]).toEqual([
      200,
      {
        api_key: { id: expect.any(String), name: 'Test key', access_level: 'full_access' },
        user: {
          id: account.userId,
          full_name: 'Test Owner',
          email,
          role: 'owner',
          finance_permission: 'write',
          can_manage_webhooks: true,
        },
        account: { id: account.accountId, name: 'Test account' },
        rate_limit: { limit: 120, window_seconds: 60 },
      },
    ])
    expect(headers.get('x-ratelimit-limit')).toBe('120')
  })

  test('a Read Only key of another user of the account → that key and that user', async () => {
    const account = await app.newAccount()
    const { userId } = await app.newUser(account.accountId, { role: 'member', finance: 'read' })
    const key = await app.newKey({ accountId: account.accountId, userId }, 'read_only')
    const member = await app.as({ key }).get('/me')
    const owner = await app.as(account).get('/me')
    expect(member.body).toMatchObject({
      api_key: { access_level: 'read_only' },
      user: { id: userId, role: 'member', finance_permission: 'read' },
      account: { id: account.accountId },
    })
    expect(member.body.api_key.id).not.toBe(owner.body.api_key.id)
  })

  test('a change of the key or of its owner shows in the next response', async () => {
    const account = await app.newAccount()
    const { api_key } = (await app.as(account).get('/me')).body
    await app.db.write('api_keys').where({ id: api_key.id }).update({ access_level: 'read_only' })
    await app.db.write('users').where({ id: account.userId }).update({ finance_permission: 'none' })
    expect((await app.as(account).get('/me')).body).toMatchObject({
      api_key: { id: api_key.id, access_level: 'read_only' },
      user: { finance_permission: 'none' },
    })
  })

  test('401 without a valid key, 405 for other methods', async () => {
    expect(await app.call('GET', '/public/v1/me')).toMatchObject({ status: 401 })
    expect(await (await app.newClient()).post('/me', {})).toMatchObject({ status: 405 })
  })
})
