/** Paths, methods and headers. */
import { describe, expect, test } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { UNKNOWN_ID } from '../handlers/new-records.ts'
import { operationIds } from '../helpers.ts'
import { assertError, PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('paths', () => {
  test.each([
    '/public',
    '/public/v1/nothing',
    '/public/v2/participants',
    `${PARTICIPANTS}/`,
    `/${PARTICIPANTS}`,
    '/public/v1/Participants',
  ])('the unknown path %s → 404 as JSON, without a key', async (path) =>
    assertError(await http.app.call('GET', path, { headers: { Accept: 'text/html' } }), 404),
  )

  test('a known path and another method → 405 with Allow', async () => {
    const answer = await http.call('PUT', PARTICIPANTS, { body: {} })
    assertError(answer, 405)
    expect(answer.headers.get('allow')?.split(', ').sort()).toEqual([
      'GET',
      'HEAD',
      'OPTIONS',
      'POST',
    ])
  })

  test.each(operationIds)(
    'OPTIONS on the path of %s → 204 with Allow, without a key',
    async (id) => {
      const { path, method } = operations[id]
      const answer = await http.app.call('OPTIONS', path.replace(/\{.*?\}/, UNKNOWN_ID))
      expect(answer.status).toBe(204)
      expect(answer.headers.get('allow')?.split(', ')).toContain(method.toUpperCase())
    },
  )

  test('HEAD → the headers of GET, without a body', async () => {
    const { id } = await http.create()
    for (const path of [PARTICIPANTS, `${PARTICIPANTS}/${id}`]) {
      const [head, full] = [await http.call('HEAD', path), await http.get(path)]
      expect(head.status).toBe(200)
      expect(head.text).toBe('')
      for (const name of ['content-type', 'content-length', 'etag'])
        expect(head.headers.get(name)).toBe(full.headers.get(name))
    }
  })

  test.each(['/%E0%A4%A', '?filter[email]=%E0%A4%A', '?%ZZ=1'])(
    'broken percent-encoding %s → 400',
    async (suffix) => assertError(await http.get(PARTICIPANTS + suffix), 400),
  )

  test.each(['%00', 'not-a-uuid', 'a%2Fb', '..%2F..%2Fetc'])(
    'a malformed ID (%s) → 404',
    async (id) => assertError(await http.get(`${PARTICIPANTS}/${id}`), 404),
  )

  test('a URL longer than 8 KiB → 414', async () =>
    assertError(await http.get(`${PARTICIPANTS}?filter[search]=${'x'.repeat(9000)}`), 414))

  test('headers larger than 16 KiB → 431 as JSON', async () => {
    const answer = await http.raw(
      http.requestText('GET', PARTICIPANTS, `X-Big: ${'x'.repeat(20_000)}\r\n`),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toMatch(/X-Request-Id: .*\{"message":/s)
  })

  test.each([
    ['bytes that are not HTTP', 'GET nonsense\r\n\r\n', 400],
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: test\r\n\r\n', 501],
    ['a request without Host', `GET ${PARTICIPANTS} HTTP/1.1\r\n\r\n`, 400],
    [
      'an unknown Expect',
      `GET ${PARTICIPANTS} HTTP/1.1\r\nHost: test\r\nExpect: x\r\nConnection: close\r\n\r\n`,
      417,
    ],
  ])('%s → an error as JSON', async (_, bytes, status) => {
    expect(await http.raw(bytes)).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} .*X-Request-Id: .*\\{"message":`, 's'),
    )
  })

  test('POST /healthz → 405 with Allow', async () => {
    const answer = await http.app.call('POST', '/healthz')
    assertError(answer, 405)
    expect(answer.headers.get('allow')).toContain('GET')
  })
})
