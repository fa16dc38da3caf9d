/** Engines on a database without the API, and tenants whose events they deliver. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { inject } from 'vitest'
import { insertAccount } from '../../records/accounts.ts'
import { migrate } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import {
  accountScope,
  type Scope,
  type WriteScope,
  writeScope,
} from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { type Delivery, findDelivery, listDeliveries } from '../../records/deliveries.ts'
import { insertWebhook, type NewWebhook } from '../../records/webhooks.ts'
import { readConfig } from '../../server/config.ts'
import { emit, emitMany, type NewEvent } from '../../webhooks/emit.ts'
import { type Engine, type EngineOptions, startEngine } from '../../webhooks/engine/engine.ts'
import type { BackgroundJobs } from '../../webhooks/queue/background-jobs.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { createDatabase } from '../postgres.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from '../receiver.ts'

export const SECRET_KEY = 'a secret key that only tests would ever use'
export const QUICK = '0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03'
export const NEVER = '600,600,600,600,600,600,600,600,600'
/** Without a cache the embedded queue takes seconds to start. */
const cacheDir = fileURLToPath(new URL('../../node_modules/.cache/muster', import.meta.url))

export interface StartOptions extends Pick<EngineOptions, 'now' | 'horizonMs'> {
  delays?: string
  timeoutMs?: number
  allow?: string
  backgroundJobs?: Record<string, BackgroundJobs>
}

export interface Bench extends AsyncDisposable {
  db: Db
  databaseUrl?: string
  start(options?: StartOptions): Promise<Engine>
}

/** A new database, and engines on it. */
export async function newBench(): Promise<Bench> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-engine-'))
  const databaseUrl =
    inject('database') === 'postgres' ? await createDatabase(inject('postgresUrl')) : undefined
  const db = openDatabase(databaseUrl ? { databaseUrl } : { dataDir: directory })
  await migrate(db)
  const engines: Engine[] = []
  return {
    db,
    databaseUrl,
    async start({ delays = QUICK, timeoutMs = 1_000, allow = '127.0.0.0/8', ...options } = {}) {
      const config = readConfig({
        DATA_DIR: directory,
        SECRET_KEY,
        WEBHOOK_ALLOW_ADDRESSES: allow,
        WEBHOOK_RETRY_DELAYS: delays,
        WEBHOOK_TIMEOUT_MS: String(timeoutMs),
      })
      const engine = await startEngine({
        db,
        databaseUrl,
        cacheDir,
        config,
        log: pino({ level: 'silent' }),
        ...options,
      })
      engines.push(engine)
      return engine
    },
    async [Symbol.asyncDispose]() {
      for (const engine of engines) await engine.stop(2_000)
      await db.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export interface Tenant {
  scope: Scope
  write<T>(work: (scope: WriteScope) => Promise<T>): Promise<T>
  /** Creates a webhook for all events. */
  subscribe(url: string, ordering?: NewWebhook['ordering']): Promise<{ id: string; secret: string }>
  /** Emits `participant.created`; returns its only delivery. */
  emit(): Promise<Delivery>
  /** Emits `task.created` for this number of tasks in one transaction. */
  emitTasks(count: number): Promise<void>
  find(id: string): Promise<Delivery>
  /** Waits until a delivery has no scheduled attempt. */
  settled(id: string): Promise<Delivery>
}

export async function newTenant(db: Db): Promise<Tenant> {
  const now = new Date()
  const owner = {
    name: 'Tenant',
    email: `${randomUUID()}@example.com`,
    fullName: 'Owner',
    passwordHash: '',
  }
  const { accountId } = await transaction(db, (trx) => insertAccount(trx, owner, now))
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  const tenant: Tenant = {
    scope,
    write: (work) => transaction(db, (trx) => work(writeScope(trx, accountId))),
    async subscribe(url, ordering) {
      const secret = newSecret()
      const input = { url, description: '', eventTypes: ['*'], ordering, createdBy: null }
      const webhook = await tenant.write((own) =>
        insertWebhook(own, input, (id) => sealSecret(SECRET_KEY, id, secret), new Date()),
      )
      return { id: webhook.id, secret }
    },
    async emit() {
      await tenant.write((own) => emit(own, 'participant.created', randomUUID(), [], new Date()))
      const [delivery] = await listDeliveries(scope, { limit: 1 })
      if (!delivery) throw new Error('There is no delivery')
      return delivery
    },
    emitTasks: (count) => tenant.write((own) => emitMany(own, newTaskEvents(count), new Date())),
    async find(id) {
      const delivery = await findDelivery(scope, id)
      if (!delivery) throw new Error('There is no such delivery')
      return delivery
    },
    async settled(id) {
      await until(async () => (await tenant.find(id)).nextAttemptAt === null)
      return tenant.find(id)
    },
  }
  return tenant
}

/** `task.created` events of different tasks. */
export function newTaskEvents(count: number): NewEvent[] {
  return Array.from({ length: count }, () => ({
    eventType: 'task.created',
    resourceId: randomUUID(),
    data: [],
  }))
}

export interface Subscriber extends AsyncDisposable {
  tenant: Tenant
  receiver: Receiver
  webhookId: string
  secret: string
}

/** A tenant with one webhook and its receiver. */
export async function newSubscriber(db: Db, options?: ReceiverOptions): Promise<Subscriber> {
  const receiver = await startReceiver(options)
  const tenant = await newTenant(db)
  const { id: webhookId, secret } = await tenant.subscribe(receiver.url)
  return {
    tenant,
    receiver,
    webhookId,
    secret,
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

export async function until(
  condition: () => Promise<boolean> | boolean,
  timeoutMs = 15_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Not true within ${timeoutMs} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
