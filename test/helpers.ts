/** A database, a server on a free port, accounts with keys, and API requests. */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { afterAll, beforeAll, inject } from 'vitest'
import { issueApiKey } from '../auth/api-key.ts'
import { type OperationId, type OperationRow, operations } from '../generated/operations.ts'
import { insertAccount } from '../records/accounts.ts'
import type { AccessLevel } from '../records/api-keys.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { type Db, openDatabase, withoutPooler } from '../records/database/open.ts'
import { writeScope } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { type Grant, insertUser, type Permission, type Role } from '../records/users.ts'
import { type Config, readConfig } from '../server/config.ts'
import { newLogger } from '../server/log.ts'
import { type Running, start } from '../server/main.ts'
import { asService } from './as-service.ts'
import { divideByAccount } from './hash-partitions.ts'
import { createDatabase } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    database: 'sqlite' | 'postgres'
    postgresUrl: string
  }
}

/** The clock of the service differs from that of a test by less than this. The service reads its
 *  clock at intervals, and advances it by the monotonic clock in between. */
export const CLOCK_DIFFERENCE_MS = 100

/** The settings of a new database. Disposing deletes a SQLite database. */
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
  return onPostgres(await createDatabase(inject('postgresUrl')))
}

/** The server is deleted at the end of the run, with all of its databases. */
const onPostgres = (url: string): TestDatabase => ({
  environment: { DATABASE_URL: url, SECRET_KEY: 'a secret key that only tests would ever use' },
  [Symbol.asyncDispose]: async () => {},
})

/** The name of a migrated database. PostgreSQL copies it in less time than the migrations take. */
let template: Promise<string> | undefined

/** Creates a migrated database of PostgreSQL and returns its URL. */
export async function createMigratedDatabase(): Promise<string> {
  template ??= newTemplate()
  return createDatabase(inject('postgresUrl'), await template)
}

async function newTemplate(): Promise<string> {
  const databaseUrl = await createDatabase(inject('postgresUrl'))
  const db = openDatabase({ databaseUrl })
  await migrate(db).finally(() => db.close())
  if (process.env.HASH_PARTITIONS) await divideByAccount(databaseUrl)
  return new URL(databaseUrl).pathname.slice(1)
}

/** Throws for a database of SQLite. */
export function databaseUrlOf({ environment }: TestDatabase): string {
  if ('DATABASE_URL' in environment) return environment.DATABASE_URL
  throw new Error('The test needs a database of PostgreSQL')
}

/** An open database without a server. */
export interface OpenDatabase extends AsyncDisposable {
  db: Db
  /** Opens the database once more. The caller must close the result. */
  reopen(): Db
}

/** Opens a new database without tables. Disposing closes it, and deletes a SQLite database. */
export async function openNewDatabase(): Promise<OpenDatabase> {
  const database = await newDatabase()
  const { environment } = database
  const place =
    'DATABASE_URL' in environment
      ? { databaseUrl: environment.DATABASE_URL }
      : { dataDir: environment.DATA_DIR }
  const db = openDatabase(place)
  return {
    db,
    reopen: () => openDatabase(place),
    async [Symbol.asyncDispose]() {
      await db.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

export interface TestAccount {
  accountId: string
  userId: string
  /** A Full Access key of the Account Owner. */
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
  /** Sent as JSON, except a string, which is sent unchanged. */
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
    options?: { role?: Role; finance?: Permission; grants?: Grant[] },
  ): Promise<{ userId: string }>
  newKey(account: { accountId: string; userId: string }, accessLevel?: AccessLevel): Promise<string>
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** A client with the account's key: `as(account).get('/participants')`. Paths are below
   *  `/public/v1`. */
  as(account: { key: string }): Client
  /** A client of a new account. */
  newClient(): Promise<Client>
  [Symbol.asyncDispose](): Promise<void>
}

export interface Client {
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  patch(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  delete(path: string, headers?: Record<string, string>): Promise<Answer>
}

export interface AppOptions {
  /** `api` by default, because the delivery engine takes a second or two to start. */
  role?: Config['role']
  environment?: Record<string, string>
  now?: () => Date
  database?: TestDatabase
  logLevel?: string
  /** Where the log goes. To standard error by default. */
  logTo?: { write(line: string): void }
  config?: Partial<Config>
}

/** A server on a free loopback port, by default with a new database. A response that breaks the
 *  contract is a 500. */
export async function startApp(options: AppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await newAppDatabase())
  const settings = {
    PORT: '0',
    RATE_LIMIT_PER_MINUTE: '1000000',
    REQUESTS_IN_FLIGHT_PER_USER: '1000',
    EXPORTS_UNFINISHED_PER_ACCOUNT: '1000',
    IMPORTS_UNFINISHED_PER_ACCOUNT: '1000',
    VALIDATE_RESPONSES: 'enforce',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    LOG_LEVEL: options.logLevel ?? 'silent',
    ...database.environment,
    ...options.environment,
  }
  const config: Config = { ...readConfig(settings), role: options.role ?? 'api', ...options.config }
  const log = newLogger(config.logLevel, options.logTo)
  await migrateDatabase(config)
  const running = await asService(() => start(config, { log, now: options.now }))
  const accounts = accountsIn(running.db)
  const call = callsTo(running.url)
  const as: TestApp['as'] = (account) => clientOf(running.url, account)
  return {
    ...running,
    ...accounts,
    config,
    log,
    database,
    call,
    as,
    newClient: async () => as(await accounts.newAccount()),
    async [Symbol.asyncDispose]() {
      await running.stop()
      if (options.database === undefined) await database[Symbol.asyncDispose]()
    },
  }
}

const newAppDatabase = async (): Promise<TestDatabase> =>
  inject('database') === 'postgres' ? onPostgres(await createMigratedDatabase()) : newDatabase()

async function migrateDatabase(config: Config): Promise<void> {
  await withSetupLock(config.database, async () => {
    const db = openDatabase(withoutPooler(config.database))
    await migrate(db).finally(() => db.close())
  })
}

function accountsIn(db: Db): Pick<TestApp, 'newAccount' | 'newUser' | 'newKey'> {
  const newKey: TestApp['newKey'] = async ({ accountId, userId }, accessLevel = 'full_access') => {
    const input = { userId, name: 'Test key', accessLevel }
    const { token } = await transaction(db, (trx) =>
      issueApiKey(writeScope(trx, accountId), input, new Date()),
    )
    return token
  }
  return {
    newKey,
    async newAccount() {
      const email = `${randomUUID()}@example.com`
      const account = { name: 'Test account', email, fullName: 'Test Owner', passwordHash: 'none' }
      const ids = await transaction(db, (trx) => insertAccount(trx, account, new Date()))
      return { ...ids, key: await newKey(ids) }
    },
    async newUser(accountId, { role = 'admin', finance = 'none', grants } = {}) {
      const user = {
        email: `${randomUUID()}@example.com`,
        fullName: 'Test User',
        passwordHash: 'none',
        role,
        grants,
        permissions: { finance },
      }
      const userId = await transaction(db, (trx) =>
        insertUser(writeScope(trx, accountId), user, new Date()),
      )
      return { userId }
    },
  }
}

export function clientOf(url: string, { key }: { key: string }): Client {
  const call = callsTo(url)
  return {
    get: (path, headers) => call('GET', `/public/v1${path}`, { key, headers }),
    post: (path, body, headers) => call('POST', `/public/v1${path}`, { key, body, headers }),
    patch: (path, body, headers) => call('PATCH', `/public/v1${path}`, { key, body, headers }),
    delete: (path, headers) => call('DELETE', `/public/v1${path}`, { key, headers }),
  }
}

function callsTo(url: string): TestApp['call'] {
  return async (method, path, { key, body, headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: encodeBody(body),
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
}

function encodeBody(body: unknown): string | undefined {
  return body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
}

/** One service for all tests of a file. It starts before them and stops after them. */
export function sharedApp(options?: AppOptions): TestApp {
  const app = {} as TestApp
  beforeAll(async () => void Object.assign(app, await startApp(options)))
  afterAll(() => app[Symbol.asyncDispose]?.())
  return app
}

/** Waits until the condition returns neither undefined nor false, and returns that value. Throws
 *  after the time limit. */
export async function until<T>(
  description: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 15_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value !== undefined && value !== false) return value as T
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${description}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The ID of every operation of the contract. */
export const operationIds = Object.keys(operations) as OperationId[]

export const operationOf = (id: OperationId): OperationRow => operations[id]

/** The path of the operation for a `Client`: below `/public/v1`. */
export const pathOf = (id: OperationId): string => operations[id].path.replace('/public/v1', '')
