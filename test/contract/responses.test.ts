/** Headers of responses, and conditional requests. */
import { describe, expect, test } from 'vitest'
import type { Answer } from '../helpers.ts'
import { PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('every response', () => {
  test('X-Request-Id: repeats a valid ID, and replaces an invalid one', async () => {
    const requestIdFor = async (sent: string) =>
      (await http.get(PARTICIPANTS, { 'X-Request-Id': sent })).headers.get('x-request-id')
    expect(await requestIdFor('my-id.1')).toBe('my-id.1')
    for (const invalid of ['a b', 'x'.repeat(129)])
      expect(await requestIdFor(invalid)).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  })

  test('Accept: application/xml → JSON, with nosniff and private caching', async () => {
    const { status, headers } = await http.get(PARTICIPANTS, { Accept: 'application/xml' })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('private, no-cache')
    expect(headers.get('vary')).toContain('Authorization')
    expect(headers.get('x-powered-by')).toBeNull()
  })

  test('CORS: headers for an allowed origin only; a preflight needs no key', async () => {
    const origin = 'https://app.example.com'
    const allowedOrigin = ({ headers }: Answer) => headers.get('access-control-allow-origin')
    const withoutKey = await http.app.call('GET', PARTICIPANTS, { headers: { Origin: origin } })
    expect(allowedOrigin(withoutKey)).toBe(origin)
    expect(allowedOrigin(await http.get(PARTICIPANTS, { Origin: origin }))).toBe(origin)
    const otherOrigin = { Origin: 'https://evil.example.com' }
    expect(allowedOrigin(await http.get(PARTICIPANTS, otherOrigin))).toBeNull()
    const preflight = await http.app.call('OPTIONS', PARTICIPANTS, {
      headers: { Origin: origin, 'Access-Control-Request-Method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
  })
})

describe('versions of a record', () => {
  test('If-None-Match with the version, also weak, in a list or * → 304 without a body', async () => {
    const { id } = await http.create()
    const path = `${PARTICIPANTS}/${id}`
    const etag = (await http.get(path)).headers.get('etag') ?? ''
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await http.get(path, { 'If-None-Match': header })
      expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([304, '', etag])
    }
    expect((await http.get(path, { 'If-None-Match': '"other"' })).status).toBe(200)
  })

  test('If-Match with another version → 412; with the current one → 200 and a new ETag', async () => {
    const { id } = await http.create()
    const path = `${PARTICIPANTS}/${id}`
    const etag = (await http.get(path)).headers.get('etag') ?? ''
    const patch = (header: string): Promise<Answer> =>
      http.call('PATCH', path, { body: { full_name: 'New' }, headers: { 'If-Match': header } })
    const remove = (header: string): Promise<Answer> =>
      http.call('DELETE', path, { headers: { 'If-Match': header } })
    expect((await patch('"other"')).status).toBe(412)
    const weak = await patch(`W/${etag}`)
    expect([weak.status, weak.body.message]).toEqual([412, expect.stringContaining('without W/')])
    expect((await patch('W/"other"')).body.message).toBe(
      'The record has changed since you read it.',
    )
    const changed = await patch(etag)
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
    expect((await remove(etag)).status).toBe(412)
    expect((await remove('*')).status).toBe(204)
  })

  test('create, read, delete → 201 with Location, the same record, 204 without a body, then 404', async () => {
    const created = await http.post({ full_name: 'Ada' })
    const path = created.headers.get('location') ?? ''
    expect([created.status, path]).toEqual([201, `${PARTICIPANTS}/${created.body.id}`])
    const read = await http.get(path)
    expect([read.text, read.headers.get('etag')]).toEqual([
      created.text,
      created.headers.get('etag'),
    ])
    const gone = await http.call('DELETE', path)
    expect([
      gone.status,
      gone.text,
      gone.headers.get('content-type'),
      gone.headers.get('content-length'),
    ]).toEqual([204, '', null, null])
    expect([(await http.get(path)).status, (await http.call('DELETE', path)).status]).toEqual([
      404, 404,
    ])
  })
})
