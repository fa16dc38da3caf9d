import { expect, test } from 'vitest'
import { StatusReader } from '../../webhooks/transport/status-reader.ts'

const HEADERS = 'content-length: 0\r\nx: HTTP/1.1 500 No\r\n\r\n'

const ROWS: { given: string; want: number | undefined; passedOn?: string }[] = [
  { given: `HTTP/1.1 200 OK\r\n${HEADERS}`, want: 200 },
  { given: 'HTTP/1.0 204\r\n', want: 204 },
  { given: 'HTTP/1.1 299 \r\n', want: 299 },
  { given: 'HTTP/1.1 503 Später\n', want: 503 },
  { given: `HTTP/1.1 103 Early Hints\r\n${HEADERS}HTTP/1.1 201 Created\r\n`, want: 201 },
  {
    given:
      'HTTP/1.1 100 Continue\r\nx: HTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 200 OK\r\n',
    passedOn:
      'HTTP/1.1 102 Continue\r\nx: HTTP/1.1 100\r\n\r\nHTTP/1.1 102\r\n\r\nHTTP/1.1 200 OK\r\n',
    want: 200,
  },
  // The body of a final response is not read.
  { given: 'HTTP/1.1 500 No\r\n\r\nHTTP/1.1 100 Continue\r\nHTTP/1.1 200 OK\r\n', want: 500 },
  { given: 'HTTP/1.1 200 OK', want: undefined },
  { given: 'HTTP/1.1 20 OK\r\n', want: undefined },
  { given: 'HTTP/1.1 2000 OK\r\n', want: undefined },
  { given: 'HTTP/1.1 200OK\r\n', want: undefined },
  { given: 'HTTP/1.1 200 O\0K\r\n', want: undefined },
  { given: 'HTTP/1.1  200 OK\r\n', want: undefined },
  { given: 'HTTP/2 200 OK\r\n', want: undefined },
  { given: 'ICY 200 OK\r\nHTTP/1.1 200 OK\r\n', want: undefined },
  { given: ' HTTP/1.1 200 OK\r\n', want: undefined },
  { given: 'HTTP/1.1 101 Switching\r\n\r\nHTTP/1.1 200 OK\r\n', want: undefined },
  { given: `HTTP/1.1 200 ${'a'.repeat(20_000)}\r\n`, want: undefined },
]

test.each(ROWS)(
  '$given: $want, however the bytes are split',
  ({ given, want, passedOn = given }) => {
    const sizes = [1, 2, 3, 5, 7, 11, 12, 13, 17, given.length]
    for (const size of sizes) {
      const reader = new StatusReader()
      const pieces: Buffer[] = []
      for (let at = 0; at < given.length; at += size) {
        const piece = Buffer.from(given.slice(at, at + size), 'latin1')
        reader.read(piece)
        pieces.push(piece)
      }
      expect(reader.status).toBe(want)
      expect(Buffer.concat(pieces).toString('latin1')).toBe(passedOn)
    }
  },
)
