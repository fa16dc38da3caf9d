/** Requests with an Idempotency-Key. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Http, PARTICIPANTS, startHttp } from './http.ts'

let http: Http
beforeAll(async () => {
  http = await startHttp()
})
afterAll(() => http[Symbol.asyncDispose]())

describe('Idempotency-Key', () => {
  const events = async (): Promise<number> =>
    (await http.get('/public/v1/events?page[size]=1')).body.meta.total

  test('same key and request → the first response again, and one event', async () => {
    const before = await events()
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
    expect(await events()).toBe(before + 1)
  })

  test('same key, other body → 422; same key of another user → 201', async () => {
    const headers = { 'Idempotency-Key': 'key-2' }
    await http.post({ full_name: 'One' }, headers)
    const other = await http.post({ full_name: 'Two' }, headers)
    expect([other.status, Object.keys(other.body.errors)]).toEqual([422, ['Idempotency-Key']])
    const stranger = await http.app.newAccount()
    expect(
      (await http.app.as(stranger).post('/participants', { full_name: 'Two' }, headers)).status,
    ).toBe(201)
  })

  test('the key of a refused request → can be used again', async () => {
    const headers = { 'Idempotency-Key': 'key-3' }
    await http.create({ full_name: 'Taken', external_id: 'taken' })
    expect((await http.post({ full_name: 'A', external_id: 'taken' }, headers)).status).toBe(422)
    expect((await http.post({ full_name: 'A', external_id: 'free' }, headers)).status).toBe(201)
  })

  test('eight requests at once → one record, and 409 or its response for the others', async () => {
    const before = await events()
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
    expect(await events()).toBe(before + 1)
  })

  test.each(['', 'ü', 'x'.repeat(256)])('an invalid key (%j) → 422', async (key) => {
    const answer = await http.raw(
      http.line(
        'POST',
        PARTICIPANTS,
        `Idempotency-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 17\r\n`,
        '{"full_name":"A"}',
      ),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 422 /)
  })

  test('a key after 24 hours → can be used again', async () => {
    const headers = { 'Idempotency-Key': 'key-5' }
    const first = await http.post({ full_name: 'Old' }, headers)
    await http.app.db
      .write('idempotency_keys')
      .where({ user_id: http.account.userId, key: 'key-5' })
      .update({ expires_at: Date.now() - 1 })
    expect((await http.post({ full_name: 'Old' }, headers)).body.id).not.toBe(first.body.id)
  })
})
