/** A process that does the work of `changes` with bare Koa and pg, in a few plain tables: the least
 *  that TypeScript and PostgreSQL need. It has no authentication, contract, request log, queue and
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
const KEY_MS = 24 * 60 * 60_000

export type BareStore = keyof typeof stores

/** With the indexes for lists by account, the log of a webhook and of an event, and the removal of
 *  expired keys. */
const TABLES = `
  create table keys (account_id uuid, key text, response text, expires_at bigint, primary key (account_id, key));
  create index on keys (expires_at);
  create table participants (id uuid primary key, account_id uuid, full_name text, status text, created_at bigint);
  create index on participants (account_id, id);
  create table events (id uuid primary key, account_id uuid, event_type text, resource_id uuid, created_at bigint);
  create index on events (account_id, id);
  create table deliveries (id uuid primary key, account_id uuid, webhook_id uuid, event_id uuid, body bytea,
    state text, attempts integer, created_at bigint, updated_at bigint);
  create index on deliveries (webhook_id, id);
  create index on deliveries (event_id);
  create table attempts (delivery_id uuid, number integer, started_at bigint, duration_ms integer, status integer,
    primary key (delivery_id, number))`

interface Endpoint {
  accountId: string
  webhookId: string
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

const KEY = `insert into keys (account_id, key, response, expires_at) values ($1, $2, $3, $4)
  on conflict do nothing returning key`
const PARTICIPANT = 'insert into participants (id, account_id, full_name, status, created_at)'
const EVENT = 'insert into events (id, account_id, event_type, resource_id, created_at)'
const DELIVERY = `insert into deliveries
  (id, account_id, webhook_id, event_id, body, state, attempts, created_at, updated_at)`

/** Two ways to store one change. */
const stores = {
  async oneStatement(pool: pg.Pool, endpoint: Endpoint, change: Change): Promise<void> {
    const { rowCount } = await pool.query({
      name: 'change',
      text: `with stored_key as (${KEY}),
        participant as (${PARTICIPANT} select $5, $1, $6, 'active', $7 from stored_key),
        event as (${EVENT} select $8, $1, 'participant.created', $5, $7 from stored_key),
        delivery as (${DELIVERY} select $9, $1, $10, $8, $11, 'pending', 0, $7, $7 from stored_key)
        select 1 from stored_key`,
      values: [
        ...keyValues(endpoint, change),
        change.participantId,
        change.fullName,
        Date.now(),
        change.eventId,
        change.deliveryId,
        endpoint.webhookId,
        Buffer.from(change.body),
      ],
    })
    if (rowCount !== 1) throw new Error('The key exists')
  },

  async fourInserts(pool: pg.Pool, endpoint: Endpoint, change: Change): Promise<void> {
    const { participantId, eventId, deliveryId, fullName, body } = change
    const { accountId, webhookId } = endpoint
    const now = Date.now()
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rowCount } = await client.query(KEY, keyValues(endpoint, change))
      if (rowCount !== 1) throw new Error('The key exists')
      await client.query(`${PARTICIPANT} values ($1, $2, $3, 'active', $4)`, [
        participantId,
        accountId,
        fullName,
        now,
      ])
      await client.query(`${EVENT} values ($1, $2, 'participant.created', $3, $4)`, [
        eventId,
        accountId,
        participantId,
        now,
      ])
      await client.query(`${DELIVERY} values ($1, $2, $3, $4, $5, 'pending', 0, $6, $6)`, [
        deliveryId,
        accountId,
        webhookId,
        eventId,
        Buffer.from(body),
        now,
      ])
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  },
}

function keyValues({ accountId }: Endpoint, { key, response }: Change): unknown[] {
  return [accountId, key, response, Date.now() + KEY_MS]
}

interface Attempted {
  deliveryId: string
  startedAt: number
  durationMs: number
  status: number
}

function storeResult(pool: pg.Pool, attempted: Attempted): Promise<unknown> {
  const { deliveryId, startedAt, durationMs, status } = attempted
  return pool.query({
    name: 'result',
    text: `with attempt as (
        insert into attempts (delivery_id, number, started_at, duration_ms, status)
        values ($1, 1, $2, $3, $4) returning delivery_id
      )
      update deliveries set state = 'delivered', attempts = 1, updated_at = $5
      from attempt where deliveries.id = attempt.delivery_id`,
    values: [deliveryId, startedAt, durationMs, status, Date.now()],
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
  /** Creates the tables in an empty database. Returns the URL that creates participants. */
  async start(store: BareStore, connectionString: string, url: string): Promise<string> {
    const pool = new pg.Pool({ connectionString, max: CONNECTIONS })
    await pool.query(TABLES)
    const endpoint: Endpoint = { accountId: newId(), webhookId: newId(), url }
    const agent = new Agent({ connections: CONNECTIONS })
    const signingKey = randomUUID()
    async function attempt({ deliveryId, body }: Change): Promise<void> {
      const startedAt = Date.now()
      const post = { url: endpoint.url, id: deliveryId, body, key: signingKey }
      const status = await sendSigned(post, agent)
      await storeResult(pool, { deliveryId, startedAt, durationMs: Date.now() - startedAt, status })
    }

    const app = new Koa().use(async (ctx: Context) => {
      const input = await readText(ctx.req)
      const change = newChange(ctx.get('Idempotency-Key'), JSON.parse(input).full_name)
      await stores[store](pool, endpoint, change)
      ctx.status = 201
      ctx.type = 'json'
      ctx.body = change.response
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
