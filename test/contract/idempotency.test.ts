/** Requests with an Idempotency-Key. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { transaction } from '../../records/database/transaction.ts'
import { type Answer, startApp, until } from '../helpers.ts'
import { type Http, PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('Idempotency-Key', () => {
  const countEvents = async (): Promise<number> =>
    (await http.get('/public/v1/events?page[size]=1')).body.meta.total

  const postSlow = (key: string): Promise<Answer> =>
    http.post({ full_name: 'Slow' }, { 'Idempotency-Key': key })

  const isReplayed = (answer?: Answer): boolean =>
    answer?.headers.get('idempotent-replayed') === 'true'

  test('the same key and request → the first response again, and one event', async () => {
    const before = await countEvents()
    const headers = { 'Idempotency-Key': 'key-1' }
    const first = await http.post({ full_name: 'Once' }, headers)
    const second = await http.post({ full_name: 'Once' }, headers)
    expect([second.status, second.text]).toEqual([201, first.text])
    expect([
      first.headers.get('idempotent-replayed'),
      second.headers.get('idempotent-replayed'),
    ]).toEqual([null, 'true'])
    expect(second.headers.get('location')).toBe(first.headers.get('location'))
    for (const name of ['etag', 'cache-control', 'content-type'])
      expect(second.headers.get(name)).toBe(first.headers.get(name))
    expect(await countEvents()).toBe(before + 1)
  })

  test('the same key with another body → 422; with another user → 201', async () => {
    const headers = { 'Idempotency-Key': 'key-2' }
    await http.post({ full_name: 'One' }, headers)
    const other = await http.post({ full_name: 'Two' }, headers)
    expect([other.status, Object.keys(other.body.errors)]).toEqual([422, ['Idempotency-Key']])
    const stranger = await http.app.newAccount()
    expect(
      (await http.app.as(stranger).post('/participants', { full_name: 'Two' }, headers)).status,
    ).toBe(201)
  })

  test('the same JSON value in other bytes → the first response again', async () => {
    const headers = { 'Idempotency-Key': 'key-spelling' }
    const first = await http.post({ full_name: 'Zoë', tags: ['a', 'b'] }, headers)
    const post = (body: string) =>
      fetch(`${http.app.url}/public/v1/participants`, {
        method: 'POST',
        headers: {
          ...headers,
          Authorization: `Bearer ${http.account.key}`,
          'Content-Type': 'application/json',
        },
        body,
      })
    const again = await post('{ "tags": ["a", "b"],\n "full_name": "Zo\\u00eb" }')
    expect([again.status, await again.text()]).toEqual([201, first.text])
    const other = await post('{ "tags": ["b", "a"], "full_name": "Zoë" }')
    expect(other.status).toBe(422)
  })

  test('the key of a refused request → can be used again', async () => {
    const headers = { 'Idempotency-Key': 'key-3' }
    await http.create({ full_name: 'Taken', external_id: 'taken' })
    expect((await http.post({ full_name: 'A', external_id: 'taken' }, headers)).status).toBe(422)
    expect((await http.post({ full_name: 'A', external_id: 'free' }, headers)).status).toBe(201)
  })

  test('eight requests at once → one record, whose response the others get, or 409', async () => {
    const before = await countEvents()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        http.post({ full_name: 'Many' }, { 'Idempotency-Key': 'key-4' }),
      ),
    )
    const statuses = new Set(answers.map(({ status }) => status))
    expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true)
    expect(
      new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id)).size,
    ).toBe(1)
    expect(await countEvents()).toBe(before + 1)
  })

  test('a repeat of a request in progress → waits, and gets its response', async () => {
    const before = await countEvents()
    const changes = await blockChanges(http)
    const answers = [postSlow('key-6'), postSlow('key-6')]
    await delay(300)
    await changes.unblock()
    const [first, second] = await Promise.all(answers)
    expect([first?.status, second?.status, second?.text]).toEqual([201, 201, first?.text])
    expect([first, second].filter(isReplayed)).toHaveLength(1)
    expect(await countEvents()).toBe(before + 1)
  })

  test('a repeat of a request that takes longer than a second → 409 with Retry-After', async () => {
    const before = await countEvents()
    const changes = await blockChanges(http)
    const sentAt = performance.now()
    const answers = [postSlow('key-7'), postSlow('key-7')]
    const refused = await Promise.race(answers)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, '1'])
    expect(performance.now() - sentAt).toBeGreaterThan(990)
    await changes.unblock()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, 409])
    expect((await postSlow('key-7')).status).toBe(201)
    expect(await countEvents()).toBe(before + 1)
  })

  test.skipIf(inject('database') !== 'postgres')(
    'a repeat at another node → 409 while the first is in progress, and 201 after it has failed',
    async () => {
      await using other = await startApp({ database: http.app.database })
      const { db } = http.app
      const repeat = () =>
        other.call('POST', PARTICIPANTS, {
          key: http.account.key,
          body: { full_name: 'Slow' },
          headers: { 'Idempotency-Key': 'key-8' },
        })
      const changes = await blockChanges(http)
      const lost = postSlow('key-8')
      const waitingLocks = "pg_locks where relation = 'participants'::regclass and not granted"
      await until('the first request is blocked', async () => {
        const { rows } = await db.read.raw(`select pid from ${waitingLocks}`)
        return rows.length > 0
      })
      expect((await repeat()).status).toBe(409)
      // The connection of the first request ends, as if its process had been killed.
      await db.read.raw(`select pg_terminate_backend(pid) from ${waitingLocks}`)
      expect((await lost).status).toBe(503)
      await changes.unblock()
      expect(await repeat()).toMatchObject({ status: 201, body: { full_name: 'Slow' } })
    },
  )

  test.each(['', 'ü', 'x'.repeat(256)])('an invalid key (%j) → 422', async (key) => {
    const answer = await http.raw(
      http.requestText(
        'POST',
        PARTICIPANTS,
        `Idempotency-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 17\r\n`,
        '{"full_name":"A"}',
      ),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 422 /)
  })

  test('a node of the previous version stored the key, without its account → the first response again', async () => {
    const headers = { 'Idempotency-Key': 'key-without-account' }
    const first = await http.post({ full_name: 'Upgraded' }, headers)
    const stored = () => http.app.db.write('idempotency_keys').where({ key: 'key-without-account' })
    const { account_id, ...row } = await stored().first()
    expect(account_id).toBe(http.account.accountId)
    await stored().delete()
    await http.app.db.write('idempotency_keys').insert(row)
    expect((await http.post({ full_name: 'Upgraded' }, headers)).text).toBe(first.text)
  })

  test('a key after 24 hours → can be used again', async () => {
    const headers = { 'Idempotency-Key': 'key-5' }
    const first = await http.post({ full_name: 'Old' }, headers)
    const stored = () =>
      http.app.db.write('idempotency_keys').where({ user_id: http.account.userId, key: 'key-5' })
    const { expires_at } = await stored().first()
    const validMs = Number(expires_at) - Date.now()
    expect(Math.abs(validMs - 24 * 3_600_000)).toBeLessThan(60_000)
    await stored().update({ expires_at: Date.now() - 1 })
    expect((await http.post({ full_name: 'Old' }, headers)).body.id).not.toBe(first.body.id)
  })
})

/** Keeps requests from creating participants. On SQLite an open transaction blocks all other
 *  writers. */
async function blockChanges({ app: { db } }: Http): Promise<{ unblock(): Promise<void> }> {
  const isBlocking = Promise.withResolvers<void>()
  const mayEnd = Promise.withResolvers<void>()
  const ended = transaction(db, async ({ sql, dialect }) => {
    if (dialect === 'postgres') await sql.raw('lock table participants in exclusive mode')
    isBlocking.resolve()
    await mayEnd.promise
  })
  await isBlocking.promise
  return {
    async unblock() {
      mayEnd.resolve()
      await ended
    },
  }
}
