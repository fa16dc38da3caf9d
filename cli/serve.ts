import { join } from 'node:path'
import type { Command } from 'commander'
import { createFirstAccount, type FirstAccount } from '../auth/first-account.ts'
import { Refused } from '../errors.ts'
import { acquireFileLock, FileLocked } from '../records/database/lock.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { openDatabase } from '../records/database/open.ts'
import type { Config } from '../server/config.ts'
import { newLogger } from '../server/log.ts'
import { examples, type Shell } from './shell.ts'

const SECOND = 1_000
const STOP_WITHIN_MS = 20 * SECOND
/** Only if the server does not keep to that. */
const ABANDON_AFTER_MS = STOP_WITHIN_MS + 5 * SECOND
/** Ctrl-C reaches this process from the terminal and once more from npm: together they are one wish. */
const ECHO_MS = SECOND
const LOCK_WAIT_MS = 500

export function addServe(program: Command, shell: Shell): void {
  program
    .command('serve')
    .description(
      'Run the service: the API, the console and the delivery of webhooks. The first start makes an account and shows, once, its password and an API key.',
    )
    .addHelpText(
      'after',
      `${examples('muster serve', 'PORT=8080 DATA_DIR=/var/lib/muster muster serve', 'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… ROLE=api muster serve')}
Log lines go to standard error, as JSON. SIGTERM or Ctrl-C ends it within ${STOP_WITHIN_MS / SECOND} seconds; the second one ends it at once.
With --json one document {"url", "first_account"} is printed when the service is ready.
`,
    )
    .action(
      shell.action(async ({ json = false }: { json?: boolean }): Promise<undefined> => {
        const config = await shell.config()
        const lock = await takeServeLock(config)
        try {
          await serve(shell, config, json)
        } finally {
          await lock?.release()
        }
      }),
    )
}

async function serve(shell: Shell, config: Config, json: boolean): Promise<void> {
  // Only now: the help need not wait for all of the server.
  const { start } = await import('../server/main.ts')
  const log = newLogger(config.logLevel)
  const first = await setUp(config)
  // Before the start, which can still fail: nobody can ask for these again.
  if (first && !json) shell.print(sayFirstAccount(first))

  const stopping = signalled()
  const server = await start(config, { log }).catch((error: unknown) => {
    if (first && json) shell.print(JSON.stringify(readyDocument(null, first)))
    throw listenRefusal(error, config) ?? error
  })
  const url = config.port === 0 ? server.url : config.baseUrl
  shell.print(json ? JSON.stringify(readyDocument(url, first)) : sayReady(url, first))

  log.info({ signal: await stopping }, 'Stopping')
  const deadline = setTimeout(() => {
    log.error(
      'The server does not stop: leaving. What was cut off is taken up again at the next start.',
    )
    process.exit(1)
  }, ABANDON_AFTER_MS)
  await server.stop()
  clearTimeout(deadline)
}

/** Two servers on one SQLite database would each run a schedule of their own. Throws `Refused` when there is one already. */
async function takeServeLock({
  database,
}: Config): Promise<{ release(): Promise<void> } | undefined> {
  if (!('dataDir' in database)) return undefined
  try {
    return await acquireFileLock(join(database.dataDir, 'serve.lock'), LOCK_WAIT_MS)
  } catch (error) {
    if (!(error instanceof FileLocked)) throw error
    throw new Refused(
      `Another muster serve is already running on DATA_DIR ${database.dataDir}. Stop it, choose another DATA_DIR, or set DATABASE_URL to run several on PostgreSQL.`,
      { cause: error },
    )
  }
}

/** Brings the tables up to date and makes the first account, where there is none yet. */
async function setUp({ database }: Config): Promise<FirstAccount | undefined> {
  const db = openDatabase(database)
  try {
    return await withSetupLock(database, async () => {
      await migrate(db)
      return createFirstAccount(db, new Date())
    })
  } finally {
    await db.close()
  }
}

/** The first signal that asks to stop. A second one ends the process on the spot. */
function signalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let askedAt: number | undefined
    const ask = (signal: NodeJS.Signals): void => {
      if (askedAt === undefined) resolve(signal)
      else if (performance.now() - askedAt > ECHO_MS) process.exit(1)
      askedAt ??= performance.now()
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, ask)
  })
}

/** What is wrong with HOST or PORT, if it is that. */
function listenRefusal(error: unknown, { host, port }: Config): Refused | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined
  if (error.code === 'EADDRINUSE')
    return new Refused(`Port ${port} of ${host} is in use: set PORT to another one`, {
      cause: error,
    })
  if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') return undefined
  return new Refused(`HOST ${host} and PORT ${port} cannot be listened on: ${error.message}`, {
    cause: error,
  })
}

function readyDocument(url: string | null, first: FirstAccount | undefined) {
  return {
    url,
    first_account: first
      ? {
          account_id: first.accountId,
          user_id: first.userId,
          email: first.email,
          password: first.password,
          token: first.token,
        }
      : null,
  }
}

function sayFirstAccount({ accountId, email, password, token }: FirstAccount): string {
  return `This is the first start, so an account was made for you. Keep these: they are not shown again.

  Account   ${accountId}
  E-mail    ${email}
  Password  ${password}
  API key   ${token}
`
}

function sayReady(url: string, first: FirstAccount | undefined): string {
  const ready = `Muster is ready.\n\n  Console   ${url}/console\n  API       ${url}/public/v1\n`
  if (!first) return ready
  return `${ready}\nYour first call:\n\n  curl -H 'Authorization: Bearer ${first.token}' ${url}/public/v1/participants\n`
}
