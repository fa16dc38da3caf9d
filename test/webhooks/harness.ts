/** Delivery engines, accounts with webhooks, and deliveries to receivers. */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, inject } from 'vitest'
import type { EventType } from '../../generated/asyncapi.ts'
import { insertAccount } from '../../records/accounts.ts'
import { listAttempts, type RecordedAttempt } from '../../records/attempts.ts'
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
import { findSealedSecrets } from '../../records/webhook-secrets.ts'
import { insertWebhook, type NewWebhook } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { emit, emitMany, type NewEvent } from '../../webhooks/emit.ts'
import { type Engine, type EngineOptions, startEngine } from '../../webhooks/engine/engine.ts'
import { newSecret, openSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { asService } from '../as-service.ts'
import { createMigratedDatabase, until } from '../helpers.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from '../receiver.ts'

/** Retry delays: no attempt is repeated during a test. */
export const NEVER = '600,600,600,600,600,600,600,600,600'
const QUICK = '0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03'

/** A database with accounts: of a whole server or of an `Installation`. */
export interface Accounts {
  db: Db
  config: Pick<Config, 'secretKeys'>
  newAccount(): Promise<{ accountId: string }>
}

export interface StartOptions
  extends Pick<EngineOptions, 'now' | 'readClock' | 'horizonMs' | 'backgroundJobs'> {
  delays?: string
  timeoutMs?: number
}

/** A new database without a server, and engines on it. */
export interface Installation extends Accounts, AsyncDisposable {
  /** Undefined on SQLite. */
  databaseUrl?: string
  dataDir: string
  start(options?: StartOptions): Promise<Engine>
}

export async function newInstallation(): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-engine-'))
  const databaseUrl = inject('database') === 'postgres' ? await createMigratedDatabase() : undefined
  const db = openDatabase(databaseUrl ? { databaseUrl } : { dataDir: directory })
  await migrate(db)
  const settings = {
    DATA_DIR: directory,
    SECRET_KEY: 'a secret key that only tests would ever use',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  }
  const engines: Engine[] = []
  return {
    db,
    databaseUrl,
    dataDir: directory,
    config: readConfig(settings),
    newAccount() {
      const email = `${randomUUID()}@example.com`
      const owner = { name: 'Tenant', email, fullName: 'Owner', passwordHash: '' }
      return transaction(db, (trx) => insertAccount(trx, owner, new Date()))
    },
    async start({ delays = QUICK, timeoutMs = 1_000, ...options } = {}) {
      const config = readConfig({
        ...settings,
        WEBHOOK_RETRY_DELAYS: delays,
        WEBHOOK_TIMEOUT_MS: String(timeoutMs),
      })
      const log = pino({ level: 'silent' })
      const engine = await asService(() =>
        startEngine({ db, databaseUrl, config, log, ...options }),
      )
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

/** The installation as another process writes to it: no commit is announced to the engines. */
export const withoutAnnouncements = (installation: Installation): Installation => ({
  ...installation,
  db: { ...installation.db, publish: () => true },
})

/** One installation for all tests of a file or a group. It is opened before them and closed after
 *  them. */
export function sharedInstallation(): Installation {
  const installation = {} as Installation
  beforeAll(async () => void Object.assign(installation, await newInstallation()))
  afterAll(() => installation[Symbol.asyncDispose]?.())
  return installation
}

/** An account with webhooks. */
export interface Tenant {
  db: Db
  accountId: string
  scope: Scope
  write<T>(work: (scope: WriteScope) => Promise<T>): Promise<T>
  /** Creates a webhook, by default for all events. Returns its ID. Does not check the URL. */
  subscribe(
    url: string,
    options?: Partial<Pick<NewWebhook, 'description' | 'eventTypes' | 'ordering'>>,
  ): Promise<string>
  /** The current signing secret. */
  secretOf(webhookId: string): Promise<string>
  /** Emits events of different resources in one transaction; `participant.created` by default. */
  emit(count?: number, eventType?: PlainEventType): Promise<void>
  /** Emits one event and returns its delivery. The account must have one webhook. */
  emitOne(): Promise<Delivery>
  /** Newest first. */
  deliveries(): Promise<Delivery[]>
  find(id: string): Promise<Delivery>
  /** Waits until the delivery is in this state. */
  reached(id: string, state: Delivery['state']): Promise<Delivery>
  /** Waits until the delivery has no scheduled attempt. */
  settled(id: string): Promise<Delivery>
}

/** Events without data. */
type PlainEventType = Exclude<EventType, 'job_application.created'>

export async function newTenant({ db, config, newAccount }: Accounts): Promise<Tenant> {
  const { accountId } = await newAccount()
  const scope = accountScope({ dialect: db.dialect, sql: db.read }, accountId)
  const tenant: Tenant = {
    db,
    accountId,
    scope,
    write: (work) => transaction(db, (trx) => work(writeScope(trx, accountId))),
    async subscribe(url, options) {
      const webhook = { url, description: '', eventTypes: ['*'], createdBy: null, ...options }
      const seal = (id: string): string => sealSecret(config.secretKeys.newest(), id, newSecret())
      return (await tenant.write((scope) => insertWebhook(scope, webhook, seal, new Date()))).id
    },
    async secretOf(webhookId) {
      const sealed = await findSealedSecrets(scope, webhookId)
      return openSecret(config.secretKeys, webhookId, sealed?.current ?? '')
    },
    emit: (count = 1, eventType = 'participant.created') =>
      tenant.write((scope) => emitMany(scope, newEvents(count, eventType), new Date())),
    async emitOne() {
      await tenant.emit()
      const [delivery] = await listDeliveries(scope, { limit: 1 })
      if (!delivery) throw new Error('There is no delivery')
      return delivery
    },
    deliveries: () => listDeliveries(scope, { limit: 10_000 }),
    async find(id) {
      const delivery = await findDelivery(scope, id)
      if (!delivery) throw new Error('There is no such delivery')
      return delivery
    },
    reached: (id, state) =>
      until(`the delivery is ${state}`, async () => {
        const delivery = await tenant.find(id)
        return delivery.state === state && delivery
      }),
    settled: (id) =>
      until('the delivery has no scheduled attempt', async () => {
        const delivery = await tenant.find(id)
        return delivery.nextAttemptAt === null && delivery
      }),
  }
  return tenant
}

/** Emits one event. */
export const emitFor = (
  scope: WriteScope,
  resourceId: string,
  eventType: PlainEventType,
): Promise<void> => emit(scope, { eventType, resourceId, data: [] }, new Date())

/** Events of different resources. */
export function newEvents(count: number, eventType: PlainEventType): NewEvent[] {
  return Array.from({ length: count }, () => ({ eventType, resourceId: randomUUID(), data: [] }))
}

export interface Subscriber extends AsyncDisposable {
  tenant: Tenant
  receiver: Receiver
  webhookId: string
}

/** A tenant with one webhook, by default for all events, and its receiver. */
export async function newSubscriber(
  accounts: Accounts,
  { eventTypes, ...options }: ReceiverOptions & { eventTypes?: string[] } = {},
): Promise<Subscriber> {
  const receiver = await startReceiver(options)
  const tenant = await newTenant(accounts)
  const webhookId = await tenant.subscribe(receiver.url, eventTypes && { eventTypes })
  return {
    tenant,
    receiver,
    webhookId,
    [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
  }
}

/** Sends one event to a URL, and waits until its delivery has ended. */
export async function deliver(
  accounts: Accounts,
  url: string,
): Promise<{ delivery: Delivery; attempts: RecordedAttempt[] }> {
  const tenant = await newTenant(accounts)
  await tenant.subscribe(url)
  const { id } = await tenant.emitOne()
  return { delivery: await tenant.settled(id), attempts: await listAttempts(tenant.scope, id) }
}
