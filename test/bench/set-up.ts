/** Databases, and the accounts, keys, participants, webhooks and events in them. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueApiKey } from '../../auth/api-key.ts'
import { insertAccount } from '../../records/accounts.ts'
import { migrate, withSetupLock } from '../../records/database/migrate.ts'
import { openDatabase } from '../../records/database/open.ts'
import { type WriteScope, writeScope } from '../../records/database/scope.ts'
import { type Trx, transaction } from '../../records/database/transaction.ts'
import { insertParticipant } from '../../records/participants.ts'
import { FIXED_DEFAULTS } from '../../records/quotas.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { emit } from '../../webhooks/emit.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { startPostgres } from '../postgres.ts'

export const databaseKinds = ['sqlite', 'postgres'] as const
export type DatabaseKind = (typeof databaseKinds)[number]
/** Input of `readConfig`. */
export type Environment = Record<string, string>

/** The conditions of a measurement. */
export interface Bench {
  database: DatabaseKind
  /** Fewer and smaller rounds: checks that the measurement works, not its result. */
  quick: boolean
  /** The folder of an earlier checkout to compare with. */
  before?: string
  /** The measure `neighbours` runs these. */
  scenarios: string[]
  /** Settings of a service with a new, empty database. */
  newEnvironment(): Promise<Environment>
  progress(text: string): void
}

export interface Databases extends AsyncDisposable {
  newEnvironment(kind: DatabaseKind): Promise<Environment>
}

const SETTINGS = {
  LOG_LEVEL: 'warn',
  DRAIN_MS: '0',
  RATE_LIMIT_PER_MINUTE: '1000000000',
  REQUESTS_IN_FLIGHT_PER_USER: '1000000',
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  SECRET_KEY: 'a secret key for nothing but benchmarks',
}

/** The setting of PostgreSQL that `startCounters` needs. */
export const STATISTICS = { shared_preload_libraries: 'pg_stat_statements' }

/** Creates databases when they are needed, and removes all of them at the end. */
export async function openDatabases(
  kinds: readonly DatabaseKind[],
  postgresSettings?: Record<string, string>,
): Promise<Databases> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const postgres = kinds.includes('postgres')
    ? await startPostgres({ settings: postgresSettings })
    : undefined
  return {
    async newEnvironment(kind) {
      if (kind === 'sqlite') return { ...SETTINGS, DATA_DIR: join(directory, randomUUID()) }
      if (!postgres) throw new Error('Add postgres to the kinds of openDatabases')
      return { ...SETTINGS, DATABASE_URL: await postgres.createDatabase() }
    },
    async [Symbol.asyncDispose]() {
      await postgres?.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Migrates the database and calls `work` in one transaction. Returns its result. `analyze`: false
 *  for a measurement of a database that PostgreSQL has not analyzed yet. */
export async function withRecords<T>(
  environment: Environment,
  work: (trx: Trx, config: Config) => Promise<T>,
  { analyze = true } = {},
): Promise<T> {
  const config = readConfig(environment)
  const db = openDatabase(config.database)
  try {
    await withSetupLock(config.database, () => migrate(db))
    const result = await transaction(db, (trx) => work(trx, config))
    // Autovacuum would do this, but during a measurement.
    if (analyze && db.dialect === 'postgres') await db.write.raw('vacuum analyze')
    return result
  } finally {
    await db.close()
  }
}

/** Creates an account and a key of its Account Owner. */
export async function newAccount(trx: Trx): Promise<{ scope: WriteScope; token: string }> {
  const now = new Date()
  const owner = {
    name: 'Bench',
    email: `${randomUUID()}@example.com`,
    fullName: 'Bench Owner',
    passwordHash: 'none',
  }
  const { accountId, userId } = await insertAccount(trx, owner, now)
  const scope = writeScope(trx, accountId)
  const { token } = await issueApiKey(
    scope,
    { userId, name: 'Bench', accessLevel: 'full_access' },
    now,
  )
  return { scope, token }
}

/** Creates one webhook for all events at each URL. */
export async function addWebhooks(
  scope: WriteScope,
  urls: string[],
  { secretKeys }: Config,
): Promise<void> {
  for (const url of urls) {
    const webhook = { url, description: '', eventTypes: ['*'], createdBy: null }
    await insertWebhook(
      scope,
      webhook,
      (id) => sealSecret(secretKeys.newest(), id, newSecret()),
      new Date(),
    )
  }
}

/** Creates one webhook for all events at each origin, in as many accounts as needed. Returns the
 *  account IDs. */
export async function subscribe(environment: Environment, origins: string[]): Promise<string[]> {
  return withRecords(environment, async (trx, config) => {
    const accounts: string[] = []
    for (let from = 0; from < origins.length; from += FIXED_DEFAULTS.webhooks) {
      const { scope } = await newAccount(trx)
      const urls = origins
        .slice(from, from + FIXED_DEFAULTS.webhooks)
        .map((origin) => `${origin}/webhooks`)
      await addWebhooks(scope, urls, config)
      accounts.push(scope.accountId)
    }
    return accounts
  })
}

/** Emits `count` events in each account in one transaction: one delivery per webhook and event. */
export async function emitEvents(
  environment: Environment,
  accounts: string[],
  count: number,
): Promise<void> {
  await withRecords(environment, async (trx) => {
    for (const accountId of accounts)
      for (let event = 0; event < count; event++)
        await emit(
          writeScope(trx, accountId),
          { eventType: 'participant.created', resourceId: randomUUID(), data: [] },
          new Date(),
        )
  })
}

/** Returns the IDs of the participants. */
export async function addParticipants(scope: WriteScope, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let number = 1; number <= count; number++) {
    const participant = {
      full_name: `Participant ${number}`,
      email: `participant.${number}@example.com`,
      phone: '+44 20 7946 0000',
      status: 'active' as const,
      external_id: `crm-${number}`,
      tags: number % 10 === 0 ? ['panel', 'newsletter'] : [],
    }
    ids.push((await insertParticipant(scope, participant, new Date())).id)
  }
  return ids
}
