/** The log of API requests. */
import { describe, expect, test } from 'vitest'
import { startApp, until } from '../helpers.ts'
import { sharedHttp } from './http.ts'

const http = sharedHttp()

describe('request log', () => {
  test('stores each request with both bodies, and masks secrets', async () => {
    const account = await http.app.newAccount()
    await http.app
      .as(account)
      .post(
        '/participants',
        { full_name: `Ada ${account.key} whsec_abcdefgh` },
        { 'X-Request-Id': 'logged-1' },
      )
    await http.app.as(account).get('/participants?filter[search]=ada')
    await http.app.as(account).post('/participants', '{broken')
    const rows = await threeRequests(account.accountId)
    expect(rows.map(({ method, status }) => [method, status])).toEqual([
      ['POST', 201],
      ['GET', 200],
      ['POST', 400],
    ])
    expect(rows[0]).toMatchObject({
      request_id: 'logged-1',
      operation_id: 'createParticipant',
      user_id: account.userId,
      ip: expect.stringContaining('127.0.0.1'),
    })
    expect(JSON.parse(rows[0]?.request_body ?? '').full_name).toMatch(/^Ada mst_.{4}… whsec_…$/)
    expect(rows[0]?.response_body).not.toContain(account.key)
    expect(rows[1]?.path).toBe('/public/v1/participants?filter[search]=ada')
    const [key] = await http.app.db.read('api_keys').where({ user_id: account.userId })
    expect(key.last_used_at).toBeGreaterThan(0)
  })

  test('stores the headers of requests and responses, and masks secrets', async () => {
    const account = await http.app.newAccount()
    const client = http.app.as(account)
    await client.get('/tasks', { 'X-Request-Id': 'with-headers', 'X-Shop': `1 ${account.key}` })
    await client.get('/tasks', { Cookie: 'a=SECRET', 'X-Api-Key': 'SECRET', 'X-Token': 'SECRET' })
    await client.get('/tasks', { 'X-Long': 'x'.repeat(9_000) })
    const [first, second, third] = await threeRequests(account.accountId)
    const sent = Object.fromEntries(JSON.parse(first?.request_headers ?? ''))
    expect(sent).toMatchObject({ 'X-Request-Id': 'with-headers', Authorization: '…' })
    expect(sent['X-Shop']).toMatch(/^1 mst_.{4}…$/)
    const received = Object.fromEntries(JSON.parse(first?.response_headers ?? ''))
    expect(received).toMatchObject({
      'x-request-id': 'with-headers',
      'x-ratelimit-limit': expect.any(String),
      'content-type': expect.stringContaining('application/json'),
    })
    expect(JSON.stringify([first, second])).not.toContain(account.key)
    expect(JSON.stringify(second)).not.toContain('SECRET')
    expect(third?.request_headers?.length).toBeLessThan(9_000)
  })

  test('replaces NUL characters, and masks secrets that JSON or a URL escapes', async () => {
    const account = await http.app.newAccount()
    const afterPrefix = account.key.slice('mst_'.length)
    const secret = 'whsec_ab+cd/TAIL='
    await http.app.as(account).post('/participants', '\0')
    await http.app
      .as(account)
      .post('/participants', `{"full_name": "mst\\u005f${afterPrefix} whsec_ab+cd\\/TAIL="}`)
    await http.app
      .as(account)
      .get(`/participants?filter[search]=mst%5F${afterPrefix}+${encodeURIComponent(secret)}`)
    const rows = await threeRequests(account.accountId)
    expect(rows[0]?.request_body).toBe('\uFFFD')
    const logged = JSON.stringify(rows)
    expect(logged).not.toContain('TAIL')
    expect(logged).not.toContain(afterPrefix.slice(5))
  })

  test('masks a whole key with an escaped letter in its middle', async () => {
    const account = await http.app.newAccount()
    // An escaped letter takes the place of the letter between these two.
    const [start, end] = [
      account.key.slice(0, 'mst_'.length + 6),
      account.key.slice('mst_'.length + 7),
    ]
    await http.app.as(account).post('/participants', `{"full_name": "${start}\\u0063${end}"}`)
    await http.app.as(account).get(`/participants?filter[search]=${start}%63${end}`)
    await http.app.as(account).post('/participants', { full_name: `${start}-${end}` })
    const [json, url, other] = await threeRequests(account.accountId)
    const masked = `${account.key.slice(0, 'mst_'.length + 4)}…`
    expect(json?.request_body).toBe(`{"full_name": "${masked}"}`)
    expect(url?.path).toBe(`/public/v1/participants?filter[search]=${masked}`)
    // A hyphen is in no key.
    expect(other?.request_body).toBe(JSON.stringify({ full_name: `${masked}-${end}` }))
  })

  test('stores at most 64 KiB of a body', async () => {
    const account = await http.app.newAccount()
    for (const character of ['\0', 'é', '😀'])
      await http.app.as(account).post('/participants', character.repeat(70_000))
    const sizes = (await threeRequests(account.accountId)).map(({ request_body }) =>
      Buffer.byteLength(request_body ?? ''),
    )
    // A NUL character is stored as U+FFFD, which has three bytes.
    expect(sizes).toEqual([65_535, 65_536, 65_536])
  })

  test('an entry that the database refuses does not block the others', async () => {
    const logLines: string[] = []
    await using app = await startApp({
      logLevel: 'error',
      logTo: { write: (line) => void logLines.push(line) },
    })
    await app.db.write.raw('create unique index unique_request_id on request_log (request_id)')
    const client = await app.newClient()
    const ids = ['first', 'second', 'second', 'third']
    for (const id of ids) await client.get('/me', { 'X-Request-Id': id })
    const logged = await until('the third request in the log', async () => {
      const rows: string[] = await app.db.read('request_log').orderBy('id').pluck('request_id')
      return rows.includes('third') && rows
    })
    expect(logged).toEqual(['first', 'second', 'third'])
    expect(logLines.map((line) => JSON.parse(line))).toMatchObject([
      { requestId: 'second', msg: 'A request could not be logged' },
    ])
  })

  interface Row {
    method: string
    status: number
    path: string
    request_body: string | null
    response_body: string | null
    request_headers: string | null
    response_headers: string | null
  }

  async function threeRequests(accountId: string): Promise<Row[]> {
    return until('three requests in the log', async () => {
      const rows = (await http.app.db
        .read('request_log')
        .where({ account_id: accountId })
        .orderBy('id')) as Row[]
      return rows.length === 3 && rows
    })
  }
})
