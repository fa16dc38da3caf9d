/** `kill -9` of the only node during an import: the import goes on, and each row is done exactly once. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { type Cluster, type Node, openCluster } from '../chaos/cluster.ts'
import { until } from '../helpers.ts'

const KILLS = 3
const ROWS = 5_000
/** The last kills hit different steps of a batch. */
const MAX_DELAY_MS = 40
const names = Array.from({ length: ROWS }, (_, index) => `Person ${index}`)
/** The row is refused, because its email is none. */
const isRefused = (_: string, index: number): boolean => index % 50 === 0
const file = [
  'full_name,email',
  ...names.map((name, i) => `${name},${isRefused(name, i) ? 'x' : ''}`),
]

async function call({ token }: Cluster, { url }: Node, path: string, body?: string) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'text/csv' }
  const method = body === undefined ? 'GET' : 'POST'
  return fetch(`${url}/public/v1/imports${path}`, { method, headers, body })
}

interface ImportState {
  status: string
  created_count: number
  refused_count: number
}

const findImport = ({ db }: Cluster): Promise<ImportState> => db.read('imports').first()

/** Kills the node when the import has done this number of rows. The lease of the import ends at once
 *  instead of after a minute. Returns what the killed node has done. */
async function killAt(cluster: Cluster, node: Node, rows: number): Promise<ImportState> {
  await until(
    `${rows} rows are done`,
    async () => {
      const { created_count, refused_count } = await findImport(cluster)
      return created_count + refused_count >= rows
    },
    60_000,
  )
  await delay(Math.random() * MAX_DELAY_MS)
  await node.kill()
  const state = await findImport(cluster)
  await cluster.db.write('imports').update({ lease_expires_at: Date.now() })
  await node.start()
  return state
}

test(`${KILLS} times kill -9 during an import: each row is done once, with its event`, async () => {
  await using cluster = await openCluster({ kind: inject('database') })
  const node = await cluster.addNode('node', 'all')
  const sent = await call(cluster, node, '?resource=participants&mode=create', file.join('\n'))
  const { id } = (await sent.json()) as { id: string }
  const killed: ImportState[] = []
  for (let kill = 1; kill <= KILLS; kill++)
    killed.push(await killAt(cluster, node, (ROWS * kill) / (KILLS + 2)))
  await until(
    'the import ends',
    async () => (await findImport(cluster)).status !== 'processing',
    60_000,
  )
  console.log({ killedAfter: killed.map(({ created_count }) => created_count) })

  expect(killed.map(({ status }) => status)).toEqual(killed.map(() => 'processing'))
  const created = names.filter((name, index) => !isRefused(name, index))
  const record = await (await call(cluster, node, `/${id}`)).json()
  expect(record).toMatchObject({
    status: 'completed',
    row_count: ROWS,
    created_count: created.length,
    refused_count: ROWS - created.length,
  })
  const rows: { id: string; full_name: string }[] = await cluster.db.read('participants')
  expect(rows.map(({ full_name }) => full_name).toSorted()).toEqual(created.toSorted())
  const events: { resource_id: string; event_type: string }[] = await cluster.db.read('events')
  const about = (type: string): string[] =>
    events.filter(({ event_type }) => event_type === type).map((event) => event.resource_id)
  expect(about('participant.created').toSorted()).toEqual(rows.map((row) => row.id).toSorted())
  expect(about('import.completed')).toEqual([id])
  const refused = (await (await call(cluster, node, `/${id}/errors`)).text()).trim().split('\r\n')
  expect(refused.slice(1).map((line) => line.split(',').at(-2))).toEqual(names.filter(isRefused))
}, 120_000)
