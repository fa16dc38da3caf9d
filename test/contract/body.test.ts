/** The bodies of requests. */
import { request as httpRequest } from 'node:http'
import { describe, expect, test } from 'vitest'
import { UNKNOWN_ID } from '../handlers/new-records.ts'
import { PARTICIPANTS, sharedHttp } from './http.ts'

const http = sharedHttp()

describe('body', () => {
  const cases: [string, string | Buffer, Record<string, string>, number][] = [
    ['malformed JSON', '{"full_name": ', {}, 400],
    ['an empty body', '', {}, 400],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), {}, 400],
    ['JSON nested too deep', '['.repeat(10_000) + ']'.repeat(10_000), {}, 400],
    ['text/plain', '{"full_name": "A"}', { 'Content-Type': 'text/plain' }, 415],
    ['a form', 'full_name=A', { 'Content-Type': 'application/x-www-form-urlencoded' }, 415],
    [
      'another charset',
      '{"full_name": "A"}',
      { 'Content-Type': 'application/json; charset=utf-16' },
      415,
    ],
    ['a compressed body', '{"full_name": "A"}', { 'Content-Encoding': 'gzip' }, 415],
    [
      'charset=utf-8',
      '{"full_name": "A"}',
      { 'Content-Type': 'application/json; charset=utf-8' },
      201,
    ],
    [
      'more than 10,000 entries',
      JSON.stringify({ full_name: 'A', tags: Array(10_001).fill({}) }),
      {},
      400,
    ],
    ['10,000 commas in text', JSON.stringify({ title: ',\\",[{'.repeat(5_000) }), {}, 422],
    ['more than 1 MiB', JSON.stringify({ full_name: 'x'.repeat(1024 * 1024) }), {}, 413],
  ]
  test.each(cases)('%s', async (_, body, headers, status) => {
    const response = await fetch(http.app.url + PARTICIPANTS, {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers: {
        Authorization: `Bearer ${http.account.key}`,
        'Content-Type': 'application/json',
        ...headers,
      },
    })
    const text = await response.text()
    expect({ status: response.status, text }).toMatchObject({ status })
    if (status === 415) expect(response.headers.get('accept')).toBe('application/json')
    if (status >= 400) expect(JSON.parse(text).message).toBeTypeOf('string')
  })

  test('malformed JSON → 400 with its position', async () => {
    const cases = [
      [
        '{"full_name": "A",, ',
        'The body is not valid JSON: look at position 18 (line 1 column 19).',
      ],
      ['{"full_name": ', 'The body is not valid JSON: look at its end.'],
      // The parser quotes this body in its message, and names no position.
      ['x position 999', 'The body is not valid JSON.'],
    ]
    for (const [body, message] of cases)
      expect((await http.post(body)).body.message, body).toBe(message)
  })

  test('no Content-Type → 415', async () => {
    const answer = await http.raw(
      http.requestText('POST', PARTICIPANTS, 'Content-Length: 2\r\n', '{}'),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 415 /)
  })

  // A client that still sends can lose the response if the connection closes.
  test.each([
    ['more than 1 MiB without Content-Length', {}, 20, 'close'],
    ['16 MiB with Content-Length', { 'Content-Length': 256 * 64 * 1024 }, 256, 'keep-alive'],
  ])('%s → 413', async (_, length, chunks, connection) => {
    const { hostname, port } = new URL(http.app.url)
    const answered = await new Promise<object>((resolve, reject) => {
      const sent = httpRequest(
        {
          hostname,
          port,
          path: PARTICIPANTS,
          method: 'POST',
          headers: {
            Authorization: `Bearer ${http.account.key}`,
            Connection: 'keep-alive',
            'Content-Type': 'application/json',
            ...length,
          },
        },
        (answer) => {
          answer.resume()
          resolve({ status: answer.statusCode, connection: answer.headers.connection })
        },
      )
      sent.on('error', reject)
      for (let i = 0; i < chunks; i++) sent.write('x'.repeat(64 * 1024))
      sent.end()
    })
    expect(answered).toEqual({ status: 413, connection })
  })

  test('several invalid fields → 422 names each', async () => {
    const { status, body } = await http.post({
      full_name: '',
      email: 'nobody',
      phone: 5,
      tags: ['a', 'a'],
      status: 'gone',
      extra: 1,
      external_id: 'x'.repeat(201),
    })
    expect(status).toBe(422)
    const names = Object.keys(body.errors).sort()
    expect(names.join(' ')).toBe('email external_id extra full_name phone status tags')
    expect(body.errors.status).toEqual(['must be one of active, inactive, archived.'])
  })

  test('500 unknown fields → 422 names 100', async () => {
    const { status, body } = await http.post(
      Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, 1])),
    )
    expect([status, Object.keys(body.errors).length]).toEqual([422, 100])
  })

  test('an invalid body for an unknown record → 422 before 404', async () => {
    for (const id of ['abc', UNKNOWN_ID]) {
      const update = (body: object) => http.call('PATCH', `${PARTICIPANTS}/${id}`, { body })
      expect((await update({ bad: 1 })).status).toBe(422)
      expect((await update({})).status).toBe(404)
    }
  })

  test('__proto__ and constructor → 422 as unknown fields', async () => {
    const { status, body } = await http.post(
      '{"full_name": "A", "__proto__": {"admin": true}, "constructor": 1}',
    )
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['__proto__', 'constructor'])
  })

  test('NUL or a lone surrogate → 422 on the field; other Unicode is returned unchanged', async () => {
    expect((await http.post('{"full_name": "a\\u0000b"}')).body.errors).toHaveProperty('full_name')
    expect(
      (await http.post('{"full_name": "A", "tags": ["ok", "\\ud800"]}')).body.errors,
    ).toHaveProperty(['tags.1'])
    const full_name = '𝔄da 👩‍🚀 עברית \u2028 "\\'
    const { id } = await http.create({ full_name })
    expect((await http.get(`${PARTICIPANTS}/${id}`)).body.full_name).toBe(full_name)
  })

  test('id and created_at → 422 as unknown fields', async () => {
    const { status, body } = await http.post({
      full_name: 'A',
      id: UNKNOWN_ID,
      created_at: '2026-03-02T09:30:00.000Z',
    })
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['created_at', 'id']])
  })
})
