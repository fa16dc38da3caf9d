/** A user has a limited number of requests in progress on a node. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { newCompleteExport } from '../handlers/export-helpers.ts'
import { sharedApp, type TestAccount, until } from '../helpers.ts'

const app = sharedApp({ environment: { REQUESTS_IN_FLIGHT_PER_USER: '2' } })

const BODY = '{"full_name": "Ada"}'

/** Sends a request without the end of its body, and waits until it is in progress. */
async function beginRequest({ key }: TestAccount): Promise<Socket> {
  const socket = send(
    `POST /public/v1/participants HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${BODY.length}\r\nExpect: 100-continue\r\n\r\n${BODY.slice(0, 5)}`,
  )
  await once(socket, 'data')
  // `100 Continue` comes before the check of the key. A later request ends after that check.
  await (await app.newClient()).get('/me')
  return socket
}

function send(text: string): Socket {
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  socket.write(text)
  return socket
}

const statusOf = async (account: { key: string }): Promise<number> =>
  (await app.as(account).get('/me')).status

test('a request above the limit waits for two seconds, and then gets 429', async () => {
  const account = await app.newAccount()
  const [one, other] = [await beginRequest(account), await beginRequest(account)]
  const otherKey = await app.newKey(account)
  await until('both requests are in progress', async () => {
    const status = await Promise.race([statusOf(account), delay(200)])
    return status === undefined
  })
  const startedAt = performance.now()
  const { status, headers, body } = await app.as({ key: otherKey }).get('/participants')
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_990)
  expect(status).toBe(429)
  expect(body).toEqual({
    message:
      'You have 2 requests in progress, which is the limit. Wait until one of them has ended.',
  })
  expect(headers.get('retry-after')).toBe('1')
  expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0)
  const colleague = { ...account, ...(await app.newUser(account.accountId)) }
  expect(await statusOf({ ...colleague, key: await app.newKey(colleague) })).toBe(200)

  const waiting = statusOf(account)
  expect(await Promise.race([waiting, delay(200)])).toBe(undefined)
  one.write(BODY.slice(5))
  expect(String(await once(one, 'data'))).toContain('HTTP/1.1 201')
  expect(await waiting).toBe(200)
  const third = await beginRequest(account)
  expect(await statusOf(account)).toBe(429)
  other.destroy()
  third.destroy()
  await until('the end of the aborted request', async () => (await statusOf(account)) === 200)
})

test('at most 100 requests of a user wait, and none of a client that has gone', async () => {
  const account = await app.newAccount()
  const [one, other] = [await beginRequest(account), await beginRequest(account)]
  const statuses: Promise<number>[] = []
  /** The status, or undefined if the request waits. */
  const begin = (): Promise<number | undefined> => {
    const status = statusOf(account)
    statuses.push(status)
    return Promise.race([status, delay(50)]) as Promise<number | undefined>
  }
  const gone = send(
    `GET /public/v1/me HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${account.key}\r\n\r\n`,
  )
  await Promise.all(Array.from({ length: 98 }, begin))
  await until('a request is refused at once', async () => (await begin()) === 429)
  gone.destroy()
  await until('another request waits', async () => (await begin()) === undefined)
  one.write(BODY.slice(5))
  const ended = await Promise.all(statuses)
  expect(ended.filter((status) => status === 200)).toHaveLength(100)
  other.destroy()
})

test('a burst of 50 creates: all are created', async () => {
  const account = await app.newAccount()
  const created = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      app.as(account).post('/tasks', { title: `T${index}` }),
    ),
  )
  expect(created.map(({ status }) => status)).toEqual(Array(50).fill(201))
})

test('a download counts until it begins', async () => {
  const account = await app.newAccount()
  const id = await newCompleteExport(app, app.as(account), { resource: 'tasks' })
  // More than the kernel buffers for a client that does not read.
  const chunk = { export_id: id, bytes: Buffer.alloc(1024 * 1024) }
  const chunks = Array.from({ length: 16 }, (_, index) => ({ ...chunk, position: index + 1 }))
  for (const row of chunks) await app.db.write('export_chunks').insert(row)
  await app.db
    .write('exports')
    .where({ id })
    .update({ byte_size: 16 * 1024 * 1024 })
  const sockets = Array.from({ length: 3 }, () =>
    send(
      `GET /public/v1/exports/${id}/file HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${account.key}\r\n\r\n`,
    ).pause(),
  )
  await Promise.all(sockets.map((socket) => once(socket, 'readable')))
  expect(await statusOf(account)).toBe(200)
  for (const socket of sockets) socket.destroy()
})
