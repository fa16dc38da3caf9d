/** An outage of about 20 s: few lines in the log, and deliveries go on by themselves. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { type Cluster, type Node, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { create } from './load.ts'

const OUTAGE_MS = 20_000
const CLIENTS = 5
const REST_MS = 100
/** The lines of a node between the first and the last one of an outage. */
const MAX_LINES_BETWEEN = 20
/** Without a limit of their own, the results of so many attempts need more memory than SQLite uses
 *  before it writes a temporary file. */
const ATTEMPTS = 100
const WEBHOOKS = 8
const RECOVERED_WITHIN_MS = 30_000
const ENVIRONMENT = { WEBHOOK_RETRY_DELAYS: '1,2,5,5,5,5,5,5,5' }

/** Clients that create participants, each one request after the other. */
function startClients({ token }: Cluster, node: Node) {
  let created = 0
  let failed = 0
  let isStopping = false
  const run = async (): Promise<void> => {
    while (!isStopping) {
      const response = await create(
        node.url,
        '/participants',
        { full_name: 'Ada Lovelace' },
        { token },
      ).catch(() => undefined)
      await response?.text()
      if (response?.status === 201) created++
      else failed++
      await delay(REST_MS)
    }
  }
  const clients = Array.from({ length: CLIENTS }, run)
  return {
    created: () => created,
    failed: () => failed,
    async stop() {
      isStopping = true
      await Promise.all(clients)
    },
  }
}

/** Checks the lines of the only outage. */
function expectFewLines(node: Node): void {
  const lines = node.readLog()
  const began = lines.findIndex(({ outage }) => outage === 'began')
  const ended = lines.findIndex(({ outage }) => outage === 'ended')
  console.log(node.name, {
    began: lines[began],
    between: lines
      .slice(began + 1, ended)
      .map(({ msg, repeated, errors }) => [msg, repeated, errors]),
    ended: lines[ended],
  })
  expect(lines.filter(({ outage }) => outage === 'began')).toHaveLength(1)
  expect(lines[began]).toMatchObject({ err: { message: expect.any(String) } })
  expect(lines[ended]).toMatchObject({ msg: 'The database is available again' })
  const seconds = Number(lines[ended]?.seconds)
  expect(seconds).toBeGreaterThan((OUTAGE_MS / 1_000) * 0.8)
  expect(seconds).toBeLessThan(OUTAGE_MS / 1_000 + 10)
  expect(ended - began - 1).toBeLessThanOrEqual(MAX_LINES_BETWEEN)
}

async function waitUntilDelivered({ db }: Cluster): Promise<void> {
  const isDelivered = async (): Promise<boolean> =>
    (await db.read('deliveries').whereNot('state', 'delivered').first('id')) === undefined
  await until('all deliveries are delivered', isDelivered, RECOVERED_WITHIN_MS)
}

test.skipIf(inject('database') !== 'postgres')(
  'PostgreSQL is away for 20 s: one line when it begins, one when it ends, and few in between',
  async () => {
    await using cluster = await openCluster({ kind: 'postgres', environment: ENVIRONMENT })
    await using receiver = await startReceiver()
    await cluster.addWebhook(receiver.url, ['participant.created'])
    const nodes = [await cluster.addNode('api', 'api'), await cluster.addNode('worker', 'worker')]
    const clients = startClients(cluster, nodes[0] as Node)
    await until('deliveries', () => receiver.requests.length > 0, 20_000)
    await cluster.postgres?.kill()
    await delay(OUTAGE_MS)
    await cluster.postgres?.restart()
    const before = clients.created()
    await until('changes go on', () => clients.created() > before, RECOVERED_WITHIN_MS)
    await clients.stop()
    await waitUntilDelivered(cluster)
    const hasEnded = ({ readLog }: Node): boolean =>
      readLog().some(({ outage }) => outage === 'ended')
    await until('the outage has ended', () => nodes.every(hasEnded))
    for (const node of nodes) expectFewLines(node)
  },
  150_000,
)

/** A receiver that asks for connections to stay open for longer than the test runs. */
async function startHoldingReceiver() {
  const held: (() => void)[] = []
  let isHolding = false
  let responses = 0
  const server = createServer((request, response) => {
    const respond = (): void => {
      responses++
      response.writeHead(204).end()
    }
    request.resume().on('end', () => (isHolding ? held.push(respond) : respond()))
  })
  server.keepAliveTimeout = 10 * 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    responses: () => responses,
    /** The requests without a response. */
    held: () => held.length,
    hold() {
      isHolding = true
    },
    release() {
      isHolding = false
      for (const respond of held) respond()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test.skipIf(inject('database') !== 'sqlite' || process.platform !== 'linux')(
  'embedded mode lacks file descriptors for 20 s: changes succeed, deliveries go on, and the log has few lines',
  async () => {
    await using cluster = await openCluster({ kind: 'sqlite', environment: ENVIRONMENT })
    await using receiver = await startHoldingReceiver()
    for (let webhook = 0; webhook < WEBHOOKS; webhook++)
      await cluster.addWebhook(`${receiver.url}${webhook}`, ['participant.created'])
    const node = await cluster.addNode('node', 'all')
    const clients = startClients(cluster, node)
    // An endpoint without a success gets fewer attempts at once.
    await until('each endpoint has responded', () => receiver.responses() > ATTEMPTS)
    receiver.hold()
    await until('many attempts are in flight', () => receiver.held() >= ATTEMPTS)
    const limit = readdirSync(`/proc/${node.pid}/fd`).length
    execFileSync('prlimit', ['--pid', String(node.pid), `--nofile=${limit}`])
    receiver.release()
    await delay(OUTAGE_MS)
    await clients.stop()
    await waitUntilDelivered(cluster)
    const lines = node.readLog()
    console.log({ created: clients.created(), lines: lines.map(({ msg }) => msg) })
    expect(clients.failed()).toBe(0)
    expect(lines.length).toBeLessThanOrEqual(MAX_LINES_BETWEEN + 2)
  },
  150_000,
)
