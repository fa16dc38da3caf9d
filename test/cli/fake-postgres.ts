/** A server that speaks enough of PostgreSQL's protocol to return its name and version. */
import type { Socket } from 'node:net'
import { startListener } from '../receiver.ts'

export interface FakePostgres extends AsyncDisposable {
  url: string
}

/** A message of the server:
 *  https://www.postgresql.org/docs/current/protocol-message-formats.html. A text ends with NUL. */
function message(type: string, ...parts: (string | number[])[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from(part))),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** ReadyForQuery: idle. */
const READY = message('Z', [0x49])
/** `value` is at most 255. */
const int32 = (value: number): number[] => [0, 0, 0, value]

/** One row with one column of text: RowDescription, DataRow, CommandComplete, ReadyForQuery. */
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

/** `name`: the result of `version()`. `versionNumber`: for example `130014`. */
export async function startFakePostgres(
  versionNumber: string,
  name = `PostgreSQL ${versionNumber}`,
): Promise<FakePostgres> {
  const listener = await startListener({
    onConnection(socket: Socket) {
      socket.once('data', () => {
        // AuthenticationOk
        socket.write(Buffer.concat([message('R', int32(0)), READY]))
        socket.on('data', (data) => {
          if (isQuery(data)) socket.write(respond(data, versionNumber, name))
        })
      })
    },
  })
  return {
    url: `postgres://muster@127.0.0.1:${listener.port}/muster`,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  }
}

const isQuery = (data: Buffer): boolean => data.toString('latin1', 0, 1) === 'Q'

function respond(query: Buffer, versionNumber: string, name: string): Buffer {
  return query.includes('version()')
    ? resultOf('name', name)
    : resultOf('server_version_num', versionNumber)
}
