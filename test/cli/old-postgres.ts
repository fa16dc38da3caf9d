/** A server that speaks enough of PostgreSQL's protocol to say that it is too old. */
import { createServer, type Socket } from 'node:net'

export interface OldPostgres extends AsyncDisposable {
  url: string
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
function message(type: string, ...parts: (string | number[])[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from(part))),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const READY = message('Z', [0x49])
const int32 = (value: number): number[] => [...Buffer.from([0, 0, 0, value])]

/** One row with one column of text. */
function resultOf(column: string, value: string): Buffer {
  return Buffer.concat([
    message(
      'T',
      [0, 1],
      column,
      int32(0),
      [0, 0],
      int32(25),
      [0xff, 0xff],
      [0xff, 0xff, 0xff, 0xff],
      [0, 0],
    ),
    message('D', [0, 1], int32(value.length), [...Buffer.from(value)]),
    message('C', 'SHOW'),
    READY,
  ])
}

/** Responds to every statement with the version. */
export async function startOldPostgres(versionNumber: string): Promise<OldPostgres> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let isStarted = false
    socket.on('data', (data) => {
      if (!isStarted) {
        isStarted = true
        socket.write(Buffer.concat([message('R', int32(0)), READY]))
      } else if (data.toString('latin1', 0, 1) === 'Q')
        socket.write(
          data.includes('version()')
            ? resultOf('version', `PostgreSQL ${versionNumber}`)
            : resultOf('server_version_num', versionNumber),
        )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `postgres://muster@127.0.0.1:${port}/muster`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
