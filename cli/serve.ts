import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import type { Logger } from 'pino'
import { createFirstAccount, type FirstAccount } from '../auth/first-account.ts'
import { Refused } from '../errors.ts'
import { Clock } from '../records/database/clock.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { openDatabase, withoutPooler } from '../records/database/open.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { useClockForIds } from '../records/ids.ts'
import { assertGenerated } from '../scripts/model/source-hashes.ts'
import type { Config } from '../server/config.ts'
import { newLogger } from '../server/log.ts'
import type { Running } from '../server/main.ts'
import { startThread } from '../webhooks/queue/pglite.ts'
import { acquireServeLock } from './serve-lock.ts'
import { examples, type Shell } from './shell.ts'
import { ALLOW_STALE_OPTION, describeAllowStale } from './stale.ts'
import { listenForStop, type StopSignals } from './stop-signals.ts'
import { type WaitOptions, waitForPostgres } from './wait-for-postgres.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SECOND = 1_000
/** The server stops within this time after the drain. */
const STOP_TIMEOUT_MS = 20 * SECOND
/** Even if the server hangs, the process exits at most `drainMs` plus this time after the stop
 *  begins. */
const EXIT_TIMEOUT_MS = STOP_TIMEOUT_MS + 5 * SECOND

const EXAMPLES = examples(
  'muster serve',
  'PORT=8080 DATA_DIR=/var/lib/muster muster serve',
  'DATABASE_URL=postgres://muster@127.0.0.1/muster SECRET_KEY=… ROLE=api muster serve',
)

interface ServeOptions {
  json?: boolean
  allowStale?: boolean
}

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('serve')
    .description(
      'Run the service: the API, the console and webhook deliveries. The first start creates an account, and ' +
        'shows its password and an API key once.',
    )
    .option(ALLOW_STALE_OPTION, describeAllowStale('start'))
    .addHelpText(
      'after',
      `${EXAMPLES}
The log goes to standard error, as JSON lines.
SIGTERM starts a drain: /readyz responds with 503, and the service serves requests for another DRAIN_MS. Then it stops
within ${STOP_TIMEOUT_MS / SECOND} seconds. Ctrl-C or a second SIGTERM skips the drain. A further signal ends the process
at once.
With --json, the command prints one document {"url", "first_account"} when the service is ready.
`,
    )
    .action(
      shell.action(async (options: ServeOptions): Promise<undefined> => {
        const { json = false, allowStale = false } = options
        if (!allowStale) await assertGenerated(ROOT)
        const config = await shell.config({ createsFiles: true })
        const { database } = config
        // Two servers on one SQLite database would each attempt every delivery.
        const lock =
          'dataDir' in database
            ? await acquireServeLock(
                database.dataDir,
                'Stop it, choose another DATA_DIR, or set DATABASE_URL to run several nodes on PostgreSQL.',
              )
            : undefined
        try {
          await serve(shell, config, json)
        } finally {
          await lock?.release()
        }
      }),
    )
}

async function serve(shell: Shell, config: Config, json: boolean): Promise<void> {
  // The thread of the queue starts while the modules load. Both take about the same time.
  const queueThread = 'dataDir' in config.database ? startThread() : undefined
  // If the thread fails, `startPglite` (webhooks/queue/pglite.ts) throws its error later. Without
  // this line, the error would end the process before that.
  queueThread?.catch(() => undefined)
  // Imported here, because the help must not wait for the modules of the server.
  const { start } = await import('../server/main.ts')
  const log = newLogger(config.logLevel)
  exitOnUnexpectedError(log)
  const tries: FirstAccount[] = []
  const first = await whenReachable(config, { log }, () =>
    migrateAndCreateFirstAccount(config, tries),
  )
  // Printed before the start, which can fail: the password and the key cannot be shown again.
  if (first && !json) shell.print(formatFirstAccount(first))

  const signals = listenForStop()
  const { stopping } = signals
  const server = await whenReachable(config, { log, stopping }, () =>
    start(config, { log, queueThread }),
  ).catch((error: unknown) => {
    // With --json, nothing was printed before the start, because the command prints only one
    // document.
    if (first && json) shell.print(JSON.stringify(readyDocument(null, first)))
    if (stopping.aborted) return undefined
    throw toListenError(error, config) ?? error
  })
  if (!server) return
  const url = config.port === 0 ? server.url : config.baseUrl
  shell.print(json ? JSON.stringify(readyDocument(url, first)) : formatReady(url, first))
  // Node itself writes the compile cache only at the exit, which a killed process does not reach.
  flushCompileCache()
  if (!stopping.aborted) await once(stopping, 'abort')
  await stopServer(server, signals, config.drainMs, log)
}

/** Runs `work`. In PostgreSQL mode, runs it again while the database cannot be reached. */
function whenReachable<T>(
  { database }: Config,
  options: WaitOptions,
  work: () => Promise<T>,
): Promise<T> {
  return 'databaseUrl' in database ? waitForPostgres(work, options) : work()
}

function exitOnUnexpectedError(log: Logger): void {
  process.on('uncaughtException', (error) => {
    log.fatal(
      { err: error },
      'An unexpected error ends the process. Deliveries continue at the next start.',
    )
    process.exit(1)
  })
}

async function stopServer(
  server: Running,
  { stopping, skipDrain, endDrain }: StopSignals,
  drainMs: number,
  log: Logger,
): Promise<void> {
  log.info({ signal: stopping.reason, drain_ms: skipDrain.aborted ? 0 : drainMs }, 'Stopping')
  const deadline = setTimeout(() => {
    log.error(
      'The server did not stop in time. Exiting. Interrupted deliveries continue at the next start.',
    )
    process.exit(1)
  }, drainMs + EXIT_TIMEOUT_MS)
  await server.drain(skipDrain)
  endDrain()
  await server.stop()
  clearTimeout(deadline)
}

async function migrateAndCreateFirstAccount(
  { database }: Config,
  tries: FirstAccount[],
): Promise<FirstAccount | undefined> {
  const db = openDatabase(withoutPooler(database))
  try {
    return await withSetupLock(database, async () => {
      await migrate(db)
      await assertSchema(db)
      const { now } = await Clock.open(db)
      useClockForIds(now)
      return createFirstAccount(db, now(), tries)
    })
  } finally {
    await db.close()
  }
}

/** Returns undefined unless HOST, PORT or METRICS_PORT caused the error. */
function toListenError(error: unknown, { host, port, metricsPort }: Config): Refused | undefined {
  if (!(error instanceof Error) || !('syscall' in error) || !('code' in error)) return undefined
  const isMetricsPort = 'port' in error && error.port === metricsPort
  const [used, setting] = isMetricsPort ? [metricsPort, 'METRICS_PORT'] : [port, 'PORT']
  if (error.code === 'EADDRINUSE')
    return new Refused(
      `Port ${used} of ${host} is already in use. Set ${setting} to another port.`,
      { cause: error },
    )
  if (error.syscall !== 'listen' && error.syscall !== 'getaddrinfo') return undefined
  return new Refused(
    `Cannot listen on HOST ${host} and ${setting} ${used}: ${error.message}. Change HOST or ${setting}.`,
    { cause: error },
  )
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

function formatFirstAccount({ accountId, email, password, token }: FirstAccount): string {
  return `This is the first start, so Muster created an account for you.
Save these values: they are shown only once.

  Email     ${email}
  Password  ${password}

The account and its API key, to paste into each terminal that you use:

  export ACCOUNT=${accountId}
  export MUSTER_API_KEY=${token}
`
}

function formatReady(url: string, first: FirstAccount | undefined): string {
  const ready = `Muster is ready.\n\n  Console   ${url}/console\n  API       ${url}/public/v1\n`
  if (!first) return ready
  const call = 'curl $MUSTER_URL/public/v1/me -H "Authorization: Bearer $MUSTER_API_KEY"'
  return `${ready}\nYour first call, in a terminal with MUSTER_API_KEY:\n\n  export MUSTER_URL=${url}\n  ${call}\n`
}
