/** API keys: refused ones, and what a key may do. test/contract/access-levels.test.ts has every
 *  operation with each access level. */
import { describe, expect, test } from 'vitest'
import { newApiKey } from '../../auth/api-key.ts'
import { operations } from '../../generated/operations.ts'
import { type Answer, operationIds, startApp } from '../helpers.ts'
import { assertError, PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('API key', () => {
  const wrong = {
    'no key': [{}, 'The API key is missing.'],
    'an empty header': [{ Authorization: '' }, 'The API key is missing.'],
    'a scheme without a key': [{ Authorization: 'Bearer ' }, 'must have the form'],
    'another scheme': [{ Authorization: 'Basic abc' }, 'not with the scheme Basic'],
    'a key without a scheme': [{ Authorization: newApiKey().token }, 'The word Bearer is missing'],
    'another header': [{ 'X-API-Key': newApiKey().token }, 'not in X-API-Key'],
    'a malformed key': [{ Authorization: 'Bearer mst_short' }, 'malformed'],
    'a key with a wrong checksum': [
      { Authorization: `Bearer mst_${'a'.repeat(43)}_000000` },
      'malformed',
    ],
    'an unknown key': [{ Authorization: `Bearer ${newApiKey().token}` }, 'unknown or revoked'],
  } as const
  test.each(Object.entries(wrong))(
    '%s → 401 with WWW-Authenticate',
    async (_, [headers, message]) => {
      const answer = await http.app.call('GET', PARTICIPANTS, { headers })
      assertError(answer, 401)
      expect(answer.body.message).toContain(message)
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/)
    },
  )

  test.each(operationIds)('%s without a key → 401, before any other check', async (id) => {
    const { path, method } = operations[id]
    const answer = await http.app.call(method.toUpperCase(), path, {
      body: method === 'get' ? undefined : '{broken',
      headers: { 'Content-Type': 'text/plain' },
    })
    expect(answer.status).toBe(401)
  })

  test('a revoked key, or a deactivated user → 401 for the next request', async () => {
    const [first, second] = [await http.app.newAccount(), await http.app.newAccount()]
    expect((await http.app.as(first).get('/participants')).status).toBe(200)
    await http.app.db
      .write('api_keys')
      .where({ user_id: first.userId })
      .update({ revoked_at: Date.now() })
    expect((await http.app.as(first).get('/participants')).status).toBe(401)
    await http.app.db.write('users').where({ id: second.userId }).update({ status: 'deactivated' })
    expect((await http.app.as(second).get('/participants')).status).toBe(401)
  })

  test('130 unknown keys from one IP address → 429', async () => {
    await using other = await startApp()
    const statuses = new Set<number>()
    for (let i = 0; i < 130; i++)
      statuses.add((await other.call('GET', PARTICIPANTS, { key: newApiKey().token })).status)
    expect([...statuses]).toEqual([401, 429])
    expect((await other.as(await other.newAccount()).get('/participants')).status).toBe(200)
  })

  test('a Read Only key → 403 for every write, before its body is parsed; 200 for a read', async () => {
    const key = await http.app.newKey(http.account, 'read_only')
    for (const id of operationIds.filter((one) => operations[one].access === 'write')) {
      const { path, method } = operations[id]
      const body = method === 'delete' ? undefined : '{broken'
      const { status } = await http.app.call(method.toUpperCase(), path, { key, body })
      expect([id, status]).toEqual([id, 403])
    }
    expect((await http.app.call('GET', PARTICIPANTS, { key })).status).toBe(200)
  })

  test('payments: 403 unless the user has Finance access, checked for each request', async () => {
    const user = await http.app.newUser(http.account.accountId)
    const key = await http.app.newKey({ ...http.account, ...user })
    const payments = '/public/v1/payments'
    const read = (): Promise<Answer> => http.app.call('GET', payments, { key })
    const write = (): Promise<Answer> => http.app.call('POST', payments, { key, body: {} })
    const grant = (finance_permission: string): Promise<unknown> =>
      http.app.db.write('users').where({ id: user.userId }).update({ finance_permission })
    expect([(await read()).status, (await write()).status]).toEqual([403, 403])
    await grant('read')
    expect([(await read()).status, (await write()).status]).toEqual([200, 403])
    await grant('write')
    expect([(await read()).status, (await write()).status]).toEqual([200, 422])
  })
})
