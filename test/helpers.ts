/** What tests need to go through the front door: a database, a server on a free port, accounts with keys, calls. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { inject } from 'vitest'
import { issueApiKey } from '../auth/api-key.ts'
import type { OperationId } from '../generated/operations.ts'
import { operations } from '../generated/operations.ts'
import { insertAccount } from '../records/accounts.ts'
import type { AccessLevel } from '../records/api-keys.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { openDatabase } from '../records/database/open.ts'
import { accountScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { insertUser, type Permission, type Role } from '../records/users.ts'
import { type Config, readConfig } from '../server/config.ts'
import { newLogger } from '../server/log.ts'
import { type Running, start } from '../server/main.ts'
import { createDatabase } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    database: 'sqlite' | 'postgres'
    postgresUrl: string
  }
}

/** Where the records of a test are, and how to be rid of them. */
export interface TestDatabase {
  environment: { DATA_DIR: string } | { DATABASE_URL: string; SECRET_KEY: string }
  [Symbol.asyncDispose](): Promise<void>
}

export async function newDatabase(
  kind: 'sqlite' | 'postgres' = inject('database'),
): Promise<TestDatabase> {
  if (kind === 'sqlite') {
    const directory = await mkdtemp(join(tmpdir(), 'muster-test-'))
    return {
      environment: { DATA_DIR: directory },
      [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
    }
  }
  const url = await createDatabase(inject('postgresUrl'))
  // It goes with the server, at the end of the run.
  return {
    environment: { DATABASE_URL: url, SECRET_KEY: 'a secret key that only tests would ever use' },
    [Symbol.asyncDispose]: async () => {},
  }
}

export interface TestAccount {
  accountId: string
  userId: string
  /** A Full Access key of the Owner, who has every permission. */
  key: string
}

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: a body under test may be anything; the assertions are the types.
  body: any
  text: string
}

export interface CallOptions {
  key?: string
  /** Sent as JSON; a string is sent as it is. */
  body?: unknown
  headers?: Record<string, string>
}

export interface TestApp extends Running {
  config: Config
  log: Logger
  database: TestDatabase
  newAccount(): Promise<TestAccount>
  newUser(
    accountId: string,
    options?: { role?: Role; finance?: Permission },
  ): Promise<{ userId: string }>
  newKey(account: { accountId: string; userId: string }, accessLevel?: AccessLevel): Promise<string>
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** As an account: `as(account).get('/participants')`. Paths are below `/public/v1`. */
  as(account: { key: string }): Client
  [Symbol.asyncDispose](): Promise<void>
}

export interface Client {
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  patch(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  delete(path: string, headers?: Record<string, string>): Promise<Answer>
}

export interface AppOptions {
  /** `api` by default: no delivery engine, which starts in a second or two. */
  role?: Config['role']
  environment?: Record<string, string>
  now?: () => Date
  database?: TestDatabase
  logLevel?: string
  /** Instead of standard error. */
  logTo?: { write(line: string): void }
  config?: Partial<Config>
}

/** A server on a free port of the loopback, with a database of its own unless one is given. Every response is held to the contract. */
export async function startApp(options: AppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await newDatabase())
  const settings = {
    PORT: '0',
    RATE_LIMIT_PER_MINUTE: '1000000',
    VALIDATE_RESPONSES: 'enforce',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    LOG_LEVEL: options.logLevel ?? 'silent',
    ...database.environment,
    ...options.environment,
  }
  const config: Config = { ...readConfig(settings), role: options.role ?? 'api', ...options.config }
  const log = newLogger(config.logLevel, options.logTo)
  await migrated(config)
  const running = await start(config, { log, now: options.now })
  const { db, url } = running

  async function call(
    method: string,
    path: string,
    { key, body, headers = {} }: CallOptions = {},
  ): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type') === 'application/json' && text !== ''
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    }
  }

  const newKey: TestApp['newKey'] = ({ accountId, userId }, accessLevel = 'full_access') =>
    transaction(
      db,
      async (trx) =>
        (
          await issueApiKey(
            accountScope(trx, accountId),
            { userId, name: 'Test key', accessLevel },
            new Date(),
          )
        ).token,
    )

  return {
    ...running,
    config,
    log,
    database,
    call,
    newKey,
    async newAccount() {
      const email = `${randomUUID()}@example.com`
      const account = { name: 'Test account', email, fullName: 'Test Owner', passwordHash: 'none' }
      const ids = await transaction(db, (trx) => insertAccount(trx, account, new Date()))
      return { ...ids, key: await newKey(ids) }
    },
    async newUser(accountId, { role = 'admin', finance = 'none' } = {}) {
      const user = {
        email: `${randomUUID()}@example.com`,
        fullName: 'Test User',
        passwordHash: 'none',
        role,
        permissions: { finance },
      }
      return {
        userId: await transaction(db, (trx) =>
          insertUser(accountScope(trx, accountId), user, new Date()),
        ),
      }
    },
    as: ({ key }) => ({
      get: (path, headers) => call('GET', `/public/v1${path}`, { key, headers }),
      post: (path, body, headers) => call('POST', `/public/v1${path}`, { key, body, headers }),
      patch: (path, body, headers) => call('PATCH', `/public/v1${path}`, { key, body, headers }),
      delete: (path, headers) => call('DELETE', `/public/v1${path}`, { key, headers }),
    }),
    async [Symbol.asyncDispose]() {
      await running.stop()
      if (options.database === undefined) await database[Symbol.asyncDispose]()
    },
  }
}

async function migrated(config: Config): Promise<void> {
  await withSetupLock(config.database, async () => {
    const db = openDatabase(config.database)
    await migrate(db).finally(() => db.close())
  })
}

/** Waits for a condition, never for a guess. Throws what the condition is called when it does not come true. */
export async function until<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 10_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== false) return value as T
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Every operation of the contract, for tests that hold of all. */
export const operationIds = Object.keys(operations) as OperationId[]
