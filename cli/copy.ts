import { type Command, InvalidArgumentError } from 'commander'
import { Refused } from '../errors.ts'
import { assertNoOtherTables, type CopyProgress, copyRows } from '../records/database/copy.ts'
import { findUrlProblem } from '../records/database/hosts.ts'
import { migrate, withSetupLock } from '../records/database/migrate.ts'
import { type Db, openDatabase } from '../records/database/open.ts'
import { assertSchema } from '../records/database/schema-difference.ts'
import { countUndelivered } from '../records/reports/database-state.ts'
import type { Config } from '../server/config.ts'
import { checkRotated } from '../webhooks/rotate-secret-key.ts'
import { proveSecretKeys } from '../webhooks/secret-keys.ts'
import { secretKeysOf } from '../webhooks/transport/secret.ts'
import { acquireServeLock } from './serve-lock.ts'
import { examples, type Output, readSecret, type Shell } from './shell.ts'

const PROGRESS_MS = 1_000

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('copy')
    .description(
      'Copy the embedded database in DATA_DIR to an empty PostgreSQL database: all records, events, ' +
        'deliveries, users, keys and logs. Stop the service first. A copy that fails leaves no rows, so you can ' +
        'repeat it.',
    )
    .requiredOption(
      '--to <url>',
      'the URL of the PostgreSQL database, or - to read it from standard input',
      parseUrl,
    )
    .addHelpText(
      'after',
      `${examples('muster copy --to postgres://muster@127.0.0.1/muster')}
The signing secrets stay encrypted with the same key. Start the service on the copy with SECRET_KEY set to the
contents of DATA_DIR/secret.key, or to your present SECRET_KEY.
`,
    )
    .action(
      shell.action(async (options: { to: string; json?: boolean }): Promise<Output> => {
        const { database } = await shell.config()
        if (!('dataDir' in database))
          throw new Refused(
            'DATABASE_URL is set, so the records are in PostgreSQL already. Use pg_dump, or unset DATABASE_URL ' +
              'to copy the database in DATA_DIR.',
          )
        return shell.withDatabase(async ({ db, config }) => {
          const lock = await acquireServeLock(
            database.dataDir,
            'Stop it first: the copy would lack the changes that it makes meanwhile.',
          )
          return copy(shell, db, config, options).finally(() => lock.release())
        })
      }),
    )
}

function parseUrl(argument: string): string {
  const url = readSecret(argument).trim()
  const problem = findUrlProblem(url)
  if (problem !== undefined) throw new InvalidArgumentError(`The URL ${problem}.`)
  return url
}

async function copy(
  shell: Shell,
  source: Db,
  config: Config,
  { to, json = false }: { to: string; json?: boolean },
): Promise<Output> {
  await assertCopyable(source, config)
  const database = { databaseUrl: to }
  const target = openDatabase(database)
  try {
    // Locked until the end, so that no service starts on an unfinished copy.
    const counts = await withSetupLock(database, async () => {
      await assertNoOtherTables(target)
      await migrate(target)
      await assertSchema(target)
      return copyRows(source, target, json ? () => undefined : newProgress(shell))
    })
    // The service on the copy will have the newest key only.
    await proveSecretKeys(target, secretKeysOf(config.secretKeys.newest()))
    const { pending, retrying } = await countUndelivered(target)
    return {
      document: { rows: Object.fromEntries(counts), pending, retrying },
      text: formatResult(counts, pending + retrying, config),
    }
  } finally {
    await target.close()
  }
}

/** Prints at most one line a second. */
function newProgress(shell: Shell): (progress: CopyProgress) => void {
  let printedAtMs = Number.NEGATIVE_INFINITY
  return ({ table, rows }) => {
    if (performance.now() - printedAtMs < PROGRESS_MS) return
    printedAtMs = performance.now()
    shell.print(`Copying ${table}: ${rows} rows so far`)
  }
}

async function assertCopyable(source: Db, { secretKeys }: Config): Promise<void> {
  await assertSchema(source)
  if ((await source.read('accounts').first('id')) === undefined)
    throw new Refused(
      'The database in DATA_DIR has no accounts. Set DATA_DIR to the folder to copy.',
    )
  if (!(await checkRotated(source, secretKeys)))
    throw new Refused(
      'The rotation of the secret key has not finished. Run "muster secret-key rotate" first.',
    )
}

function formatResult(
  counts: Map<string, number>,
  unfinished: number,
  { secretKeys, secretKeyFiles }: Config,
): string {
  const rows = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return [
    `Copied ${rows} rows of ${counts.size} tables. ${unfinished} deliveries are pending or retrying.`,
    secretKeyFiles
      ? `Start the service with DATABASE_URL, and with SECRET_KEY set to the contents of ${secretKeys.place}.`
      : 'Start the service with DATABASE_URL and the same SECRET_KEY.',
    'Move DATA_DIR away: a service on it would make the pending attempts, too.',
  ].join('\n')
}
