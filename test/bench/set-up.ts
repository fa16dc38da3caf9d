/** What measures need before they begin: an empty database, and in it an account with its key, participants and webhooks. */
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
import { insertWebhook, MAX_WEBHOOKS_PER_ACCOUNT } from '../../records/webhooks.ts'
import { type Config, readConfig } from '../../server/config.ts'
import { emit } from '../../webhooks/emit.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { startPostgres } from '../postgres.ts'

export const databaseKinds = ['sqlite', 'postgres'] as const
export type DatabaseKind = (typeof databaseKinds)[number]
/** Settings, as `readConfig` takes them. */
export type Environment = Record<string, string>

/** Where a measure runs. */
export interface Bench {
  database: DatabaseKind
  /** Fewer rounds of less: shows that everything works, not how fast. */
  quick: boolean
  /** The settings of a service with an empty database of its own. */
  newEnvironment(): Promise<Environment>
  progress(text: string): void
}

export interface Databases extends AsyncDisposable {
  newEnvironment(kind: DatabaseKind): Promise<Environment>
}

const SETTINGS = {
  LOG_LEVEL: 'warn',
  RATE_LIMIT_PER_MINUTE: '1000000000',
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  SECRET_KEY: 'a secret key for nothing but benchmarks',
}

/** Makes databases as they are asked for, and removes them all in the end. */
export async function openDatabases(kinds: readonly DatabaseKind[]): Promise<Databases> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-bench-'))
  const postgres = kinds.includes('postgres') ? await startPostgres() : undefined
  return {
    async newEnvironment(kind) {
      if (kind === 'sqlite') return { ...SETTINGS, DATA_DIR: join(directory, randomUUID()) }
      if (!postgres) throw new Error('PostgreSQL was not asked for')
      return { ...SETTINGS, DATABASE_URL: await postgres.createDatabase() }
    },
    async [Symbol.asyncDispose]() {
      await postgres?.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Brings the tables up to date and does `work` there, in one transaction. */
export async function withRecords<T>(
  environment: Environment,
  work: (trx: Trx, config: Config) => Promise<T>,
): Promise<T> {
  const config = readConfig(environment)
  const db = openDatabase(config.database)
  try {
    await withSetupLock(config.database, () => migrate(db))
    const made = await transaction(db, (trx) => work(trx, config))
    // As autovacuum would, but not in the middle of a measure.
    if (db.dialect === 'postgres') await db.write.raw('vacuum analyze')
    return made
  } finally {
    await db.close()
  }
}

/** An account, and a key of its Owner. */
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

/** A webhook of the account at each of these addresses, subscribed to everything. */
export async function addWebhooks(
  scope: WriteScope,
  urls: string[],
  { secretKey }: Config,
): Promise<void> {
  for (const url of urls) {
    const webhook = { url, description: '', eventTypes: ['*'], createdBy: null }
    await insertWebhook(scope, webhook, (id) => sealSecret(secretKey, id, newSecret()), new Date())
  }
}

/** A webhook for everything at each of these origins, in as many accounts as that takes. Returns the accounts' ids. */
export async function subscribe(environment: Environment, origins: string[]): Promise<string[]> {
  return withRecords(environment, async (trx, config) => {
    const accounts: string[] = []
    for (let from = 0; from < origins.length; from += MAX_WEBHOOKS_PER_ACCOUNT) {
      const { scope } = await newAccount(trx)
      const urls = origins
        .slice(from, from + MAX_WEBHOOKS_PER_ACCOUNT)
        .map((origin) => `${origin}/webhooks`)
      await addWebhooks(scope, urls, config)
      accounts.push(scope.accountId)
    }
    return accounts
  })
}

/** So many events in each account, all committed at once: a delivery for each webhook and event. */
export async function emitEvents(
  environment: Environment,
  accounts: string[],
  count: number,
): Promise<void> {
  await withRecords(environment, async (trx) => {
    for (const accountId of accounts)
      for (let event = 0; event < count; event++)
        await emit(writeScope(trx, accountId), 'participant.created', randomUUID(), [], new Date())
  })
}

/** Returns their ids. */
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
