/** A process that does the work of `changes` with bare Koa and pg, in Muster's own tables: the
 *  least that TypeScript and PostgreSQL need. It has no authentication, contract, queue and
 *  retries. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import Koa, { type Context } from 'koa'
import pg from 'pg'
import { Agent } from 'undici'
import { newId } from '../../records/ids.ts'
import { serveCalls } from './child.ts'
import { sendSigned } from './signed-post.ts'

const CONNECTIONS = 16
const FLUSH_MS = 100
const KEY_MS = 24 * 60 * 60_000

export type BareStore = keyof typeof stores

interface Endpoint {
  account_id: string
  user_id: string
  webhook_id: string
  url: string
}

interface Change {
  key: string
  participantId: string
  eventId: string
  deliveryId: string
  fullName: string
  response: string
  body: string
}

const KEY = `insert into idempotency_keys (user_id, key, fingerprint, status, headers, body, expires_at)
  values ($1, $2, $3, 201, '{}', $4, $5) on conflict do nothing returning user_id`
const PARTICIPANT =
  'insert into participants (id, account_id, full_name, status, tags, search_text, created_at, updated_at)'
const EVENT =
  'insert into events (id, account_id, event_type, resource_type, resource_id, data, created_at)'
const DELIVERY = `insert into deliveries
  (id, account_id, webhook_id, event_id, event_type, body, state, next_trigger, created_at, updated_at)`

/** Two ways to store one change. */
const stores = {
  async oneStatement(pool: pg.Pool, endpoint: Endpoint, change: Change): Promise<void> {
    const { rowCount } = await pool.query({
      name: 'change',
      text: `with stored_key as (${KEY}),
        participant as (${PARTICIPANT} select $6, $7, $8, 'active', '[]', $8, $9, $9 from stored_key),
        event as (${EVENT} select $10, $7, 'participant.created', 'participant', $6, '[]', $9 from stored_key),
        delivery as (${DELIVERY}
          select $11, $7, $12, $10, 'participant.created', $13, 'pending', 'schedule', $9, $9 from stored_key)
        select 1 from stored_key`,
      values: [...keyValues(endpoint, change), ...recordValues(endpoint, change)],
    })
    if (rowCount !== 1) throw new Error('The key exists')
  },

  async fourInserts(pool: pg.Pool, endpoint: Endpoint, change: Change): Promise<void> {
    const { participantId, eventId, deliveryId, fullName, body } = change
    const { account_id: accountId } = endpoint
    const now = Date.now()
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query(KEY, keyValues(endpoint, change))
      if (rowCount !== 1) throw new Error('The key exists')
      await client.query(`${PARTICIPANT} values ($1, $2, $3, 'active', '[]', $3, $4, $4)`, [
        participantId,
        accountId,
        fullName,
        now,
      ])
      await client.query(
        `${EVENT} values ($1, $2, 'participant.created', 'participant', $3, '[]', $4)`,
        [eventId, accountId, participantId, now],
      )
      await client.query(
        `${DELIVERY} values ($1, $2, $3, $4, 'participant.created', $5, 'pending', 'schedule', $6, $6)`,
        [deliveryId, accountId, endpoint.webhook_id, eventId, Buffer.from(body), now],
      )
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  },
}

function keyValues({ user_id }: Endpoint, { key, response }: Change): unknown[] {
  return [user_id, key, 'fingerprint', response, Date.now() + KEY_MS]
}

function recordValues(endpoint: Endpoint, change: Change): unknown[] {
  const { participantId, fullName, eventId, deliveryId, body } = change
  const { account_id: accountId, webhook_id: webhookId } = endpoint
  const now = Date.now()
  return [
    participantId,
    accountId,
    fullName,
    now,
    eventId,
    deliveryId,
    webhookId,
    Buffer.from(body),
  ]
}

/** Writes rows in batches, each soon after its first row. */
function batches<Row>(write: (rows: Row[]) => Promise<unknown>): (row: Row) => void {
  let rows: Row[] = []
  const flush = async (): Promise<void> => {
    const batch = rows
    rows = []
    await write(batch)
  }
  return (row) => {
    if (rows.push(row) === 1) setTimeout(flush, FLUSH_MS)
  }
}

interface Attempted {
  deliveryId: string
  startedAt: number
  durationMs: number
  status: number
}

function storeResults(pool: pg.Pool, accountId: string, results: Attempted[]): Promise<unknown> {
  return pool.query({
    name: 'results',
    text: `with result as (
        select * from unnest($2::uuid[], $3::bigint[], $4::int[], $5::int[])
          as result (id, started_at, duration_ms, status)
      ), attempt as (
        insert into attempts (account_id, delivery_id, number, trigger, started_at, duration_ms, outcome, status)
        select $1, id, 1, 'schedule', started_at, duration_ms, 'success', status from result
      )
      update deliveries set state = 'delivered', attempts = 1, next_trigger = null, updated_at = $6
      from result where deliveries.id = result.id`,
    values: [
      accountId,
      results.map(({ deliveryId }) => deliveryId),
      results.map(({ startedAt }) => startedAt),
      results.map(({ durationMs }) => durationMs),
      results.map(({ status }) => status),
      Date.now(),
    ],
  })
}

interface LoggedRequest {
  startedAt: number
  request: string
  response: string
}

function storeRequests(
  pool: pg.Pool,
  { account_id, user_id }: Endpoint,
  requests: LoggedRequest[],
): Promise<unknown> {
  return pool.query({
    name: 'requests',
    text: `insert into request_log
        (id, account_id, user_id, api_key_id, request_id, method, path, status, duration_ms, ip,
         request_body, response_body, created_at)
      select id, $1, $2, id, id, 'POST', '/public/v1/participants', 201, 1, '127.0.0.1',
        request, response, started_at
      from unnest($3::uuid[], $4::text[], $5::text[], $6::bigint[]) as entry (id, request, response, started_at)`,
    values: [
      account_id,
      user_id,
      requests.map(() => newId()),
      requests.map(({ request }) => request),
      requests.map(({ response }) => response),
      requests.map(({ startedAt }) => startedAt),
    ],
  })
}

function newChange(key: string, fullName: string): Change {
  const [participantId, eventId, deliveryId] = [newId(), newId(), newId()]
  const resource = { type: 'participant', id: participantId }
  const payload = { id: deliveryId, event_type: 'participant.created', resource, data: [] }
  const participant = { id: participantId, full_name: fullName, status: 'active', tags: [] }
  return {
    key,
    participantId,
    eventId,
    deliveryId,
    fullName,
    response: JSON.stringify(participant),
    body: JSON.stringify(payload),
  }
}

const calls = {
  /** Returns the URL that creates participants. */
  async start(store: BareStore, connectionString: string, accountId: string): Promise<string> {
    const pool = new pg.Pool({ connectionString, max: CONNECTIONS })
    const { rows } = await pool.query<Endpoint>(
      `select webhooks.account_id, webhooks.id as webhook_id, url, users.id as user_id
       from webhooks join users using (account_id) where account_id = $1`,
      [accountId],
    )
    const endpoint = rows[0] as Endpoint
    const agent = new Agent({ connections: CONNECTIONS })
    const signingKey = randomUUID()
    const addResult = batches<Attempted>((results) => storeResults(pool, accountId, results))
    const addRequest = batches<LoggedRequest>((entries) => storeRequests(pool, endpoint, entries))

    async function attempt({ deliveryId, body }: Change): Promise<void> {
      const startedAt = Date.now()
      const post = { url: endpoint.url, id: deliveryId, body, key: signingKey }
      const status = await sendSigned(post, agent)
      addResult({ deliveryId, startedAt, durationMs: Date.now() - startedAt, status })
    }

    const app = new Koa().use(async (ctx: Context) => {
      const startedAt = Date.now()
      const input = await readText(ctx.req)
      const change = newChange(ctx.get('Idempotency-Key'), JSON.parse(input).full_name)
      await stores[store](pool, endpoint, change)
      ctx.status = 201
      ctx.type = 'json'
      ctx.body = change.response
      addRequest({ startedAt, request: input, response: change.response })
      void attempt(change)
    })
    const server = createServer(app.callback())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  },
  pid: (): number => process.pid,
}

export type BareChanges = typeof calls
serveCalls(calls)
