/** A user has a limited number of requests in progress on a node. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
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

const statusOf = async (account: TestAccount): Promise<number> =>
  (await app.as(account).get('/me')).status

test('a request above the limit: 429, until one of the others has ended', async () => {
  const account = await app.newAccount()
  const [one, other] = [await beginRequest(account), await beginRequest(account)]
  const otherKey = await app.newKey(account)
  const { status, headers, body } = await app.as({ key: otherKey }).get('/participants')
  expect(status).toBe(429)
  expect(body).toEqual({
    message:
      'You have 2 requests in progress, which is the limit. Wait until one of them has ended.',
  })
  expect(headers.get('retry-after')).toBe('1')
  expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0)
  const colleague = { ...account, ...(await app.newUser(account.accountId)) }
  expect(await statusOf({ ...colleague, key: await app.newKey(colleague) })).toBe(200)

  one.write(BODY.slice(5))
  expect(String(await once(one, 'data'))).toContain('HTTP/1.1 201')
  expect(await statusOf(account)).toBe(200)
  const third = await beginRequest(account)
  expect(await statusOf(account)).toBe(429)
  other.destroy()
  third.destroy()
  await until('the end of the aborted request', async () => (await statusOf(account)) === 200)
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
