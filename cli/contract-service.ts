/** Starts the service for contract tests, on temporary databases. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { issueApiKey, newApiKey } from '../auth/api-key.ts'
import { deactivateUser } from '../auth/deactivation.ts'
import { AccountQuotas } from '../operations/account-quota.ts'
import { makeExport } from '../operations/export-job.ts'
import { runImport } from '../operations/import-job.ts'
import { suspendAccount } from '../records/account-suspension.ts'
import { insertAccount } from '../records/accounts.ts'
import { listApiKeys, revokeApiKey } from '../records/api-keys.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { type Db, openDatabase } from '../records/database/open.ts'
import { accountScope, accountTransaction } from '../records/database/scope.ts'
import { transaction } from '../records/database/transaction.ts'
import { insertUser } from '../records/users.ts'
import type { Receiver } from '../scripts/contract/deliveries/receiver.ts'
import type {
  Files,
  Server,
  Servers,
  ServiceStates,
} from '../scripts/contract/dredd/provoke-status.ts'
import type { CreateWebhook } from '../scripts/contract/run.ts'
import { type Config, readConfig } from '../server/config.ts'
import { type Running, start } from '../server/main.ts'

/** A limit that no test reaches. */
const UNREACHABLE_LIMIT = 1_000_000

interface ServerOptions {
  directory: string
  role: Config['role']
  perMinute?: number
  /** Default: the time-out of asyncapi.yaml. */
  webhookTimeoutMs?: number
}

/** Starts the service on a free loopback port. The service does not validate its own responses,
 *  because the contract tests do. */
async function startServer({
  directory,
  role,
  perMinute = UNREACHABLE_LIMIT,
  webhookTimeoutMs,
}: ServerOptions): Promise<Server & Running & { config: Config }> {
  const settings = {
    DATA_DIR: directory,
    PORT: '0',
    VALIDATE_RESPONSES: 'off',
    LOG_LEVEL: 'silent',
    EXPORTS_UNFINISHED_PER_ACCOUNT: String(UNREACHABLE_LIMIT),
    IMPORTS_UNFINISHED_PER_ACCOUNT: String(UNREACHABLE_LIMIT),
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    ...(webhookTimeoutMs && { WEBHOOK_TIMEOUT_MS: String(webhookTimeoutMs) }),
  }
  const config: Config = {
    ...readConfig({ ...settings, RATE_LIMIT_PER_MINUTE: String(perMinute) }),
    role,
  }
  await withSetupLock(config.database, async () => {
    const db = openDatabase(config.database)
    await migrate(db).finally(() => db.close())
  })
  const running = await start(config, { log: pino({ level: config.logLevel }) })
  return { ...running, config, ...newTestUsers(running.db) }
}

function newTestUsers(db: Db): Pick<Server, 'newKey' | 'newAccount' | 'newUser'> {
  const newPerson = () => ({
    email: `${randomUUID()}@example.com`,
    fullName: 'Tester',
    passwordHash: 'none',
  })
  const newKey: Server['newKey'] = ({ accountId, userId }, accessLevel = 'full_access') =>
    accountTransaction(db, accountId, async (scope) => {
      const key = { userId, name: 'Contract tests', accessLevel }
      return (await issueApiKey(scope, key, new Date())).token
    })
  return {
    newKey,
    async newAccount() {
      const ids = await transaction(db, (trx) =>
        insertAccount(trx, { name: 'Contract tests', ...newPerson() }, new Date()),
      )
      return { ...ids, key: await newKey(ids) }
    },
    async newUser(accountId, { finance = 'none' } = {}) {
      const permissions = { finance }
      const user = { ...newPerson(), role: 'admin' as const, permissions }
      const userId = await accountTransaction(db, accountId, (scope) =>
        insertUser(scope, user, new Date()),
      )
      return { userId }
    },
  }
}

/** Starts the whole service, with an account for the tests and a second account, whose key must not
 *  see the records of the first. */
export async function startOwnService({ webhookTimeoutMs }: { webhookTimeoutMs?: number } = {}) {
  await using cleanup = new AsyncDisposableStack()
  const directory = await newDirectory(cleanup)
  const server = await startServer({ directory, role: 'all', webhookTimeoutMs })
  cleanup.defer(server.stop)
  const account = await server.newAccount()
  const { accountId } = account
  const restricted = { accountId, ...(await server.newUser(accountId)) }
  const reader = { accountId, ...(await server.newUser(accountId, { finance: 'read' })) }
  const other = await server.newAccount()
  const target = {
    url: server.url,
    key: account.key,
    restrictedKey: await server.newKey(restricted, 'read_only'),
    noPermissionKey: await server.newKey(restricted),
    readPermissionKey: await server.newKey(reader),
    otherKey: other.key,
    invalidKeys: await newInvalidKeys(server),
    connect: ({ url }: Receiver, create: CreateWebhook) => create(url),
    newAccount: server.newAccount,
    webhookTimeoutMs,
  }
  return withCleanup(target, cleanup)
}

/** Keys of accounts without records. */
async function newInvalidKeys({
  db,
  newAccount,
  newUser,
  newKey,
}: Server & Running): Promise<Record<string, string>> {
  const [revoked, suspended] = [await newAccount(), await newAccount()]
  const { accountId } = revoked
  const { userId } = await newUser(accountId)
  const ofDeactivated = await newKey({ accountId, userId })
  await accountTransaction(db, accountId, async (scope) => {
    await deactivateUser(scope, userId, new Date())
    for (const { id } of await listApiKeys(scope, revoked.userId))
      await revokeApiKey(scope, id, new Date())
  })
  await accountTransaction(db, suspended.accountId, (scope) => suspendAccount(scope, new Date()))
  return {
    'a revoked key': revoked.key,
    'an unknown key': newApiKey().token,
    'a key of a deactivated user': ofDeactivated,
    'a key of a suspended account': suspended.key,
  }
}

/** Starts the servers for Dredd. They run no export jobs, so that an export stays unfinished. */
export async function startDreddServers(): Promise<Servers & AsyncDisposable> {
  await using cleanup = new AsyncDisposableStack()
  const startApi = async (directory: string, perMinute?: number) => {
    const server = await startServer({ directory, role: 'api', perMinute })
    cleanup.defer(server.stop)
    return server
  }
  const directory = await newDirectory(cleanup)
  const app = await startApi(directory)
  const limited = await startApi(directory, 1)
  const broken = await startApi(await newDirectory(cleanup))
  const { key: brokenKey } = await broken.newAccount()
  await broken.db.write.raw('alter table api_keys rename to lost_keys')
  const down = await startApi(await newDirectory(cleanup))
  await down.db.close()
  return withCleanup({ app, limited, broken, brokenKey, down, states: statesOf(app) }, cleanup)
}

async function newDirectory(cleanup: AsyncDisposableStack): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-contract-'))
  cleanup.defer(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Returns the value with a disposer that runs the cleanup. The caller's own `await using` of the
 *  stack then cleans up nothing. */
function withCleanup<T extends object>(
  value: T,
  cleanup: AsyncDisposableStack,
): T & AsyncDisposable {
  const moved = cleanup.move()
  return { ...value, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

const FORMATS = {
  exports: {
    'text/csv': 'csv',
    'application/json': 'json',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  },
  imports: { 'text/csv': 'csv', 'application/x-ndjson': 'ndjson' },
} as Record<Files, Record<string, string>>

export function statesOf({
  db,
  keysInUse,
  config: { quotas },
}: Pick<Running, 'db' | 'keysInUse'> & { config: Pick<Config, 'quotas'> }): ServiceStates {
  return {
    async finishFile(files, id, at, mediaType) {
      const format = mediaType && FORMATS[files][mediaType]
      if (format) await db.write(files).where({ id }).update({ format })
      const now = () => at
      const { signal } = new AbortController()
      if (files === 'exports')
        return makeExport({ db, now, quotas: { export_mib: 1024 } }, id, signal)
      await runImport({ db, now, quotas: new AccountQuotas({ db, now, quotas }) }, id, signal)
    },
    async restrictFiles(files, accountId) {
      await accountScope({ dialect: db.dialect, sql: db.write }, accountId)
        .rows(files)
        .update({ resource: 'payments' })
    },
    useIdempotencyKey(userId, key) {
      const endless = new Promise<void>(() => undefined)
      void keysInUse.use({ userId, key, fingerprint: '' }, () => endless)
    },
  }
}
