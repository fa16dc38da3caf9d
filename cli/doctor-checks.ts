/** The checks of the settings, the database and the machine for `muster doctor`. An error that a
 *  check throws is reported as a problem. */
import { constants, existsSync } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { Clock } from '../records/database/clock.ts'
import { findChecksumFailures } from '../records/database/damage.ts'
import { findLastBackup } from '../records/database/last-backup.ts'
import { DEFAULT_LIMITS } from '../records/database/limits.ts'
import { listPendingMigrations } from '../records/database/migrate.ts'
import { type Db, sqliteFile } from '../records/database/open.ts'
import {
  describeSchemaProblem,
  findSchemaDifference,
} from '../records/database/schema-difference.ts'
import { assertSupported } from '../records/database/version.ts'
import { doubtLeftMs, listClockSpans } from '../records/deletion-time.ts'
import { findConnections, findDatabaseBytes } from '../records/reports/database-state.ts'
import {
  canIndexAllScripts,
  findDamage,
  findPostgresState,
  findSqliteVersion,
} from '../records/reports/installation.ts'
import { findSecretKeyState } from '../records/secret-keys.ts'
import type { Config } from '../server/config.ts'
import { findSecretKeyProblem } from '../webhooks/secret-keys.ts'
import { readClientCertificate } from '../webhooks/transport/client-certificate.ts'
import { type Finding, type Findings, ok, problem, warning } from './doctor-findings.ts'
import { formatBytes, formatTime, GIGABYTE, MEGABYTE } from './shell.ts'

export interface Installation {
  db: Db
  config: Config
}

/** To look for damage in a larger file takes minutes. */
const MAX_CHECKED_BYTES = 2 * GIGABYTE
const LOW_DISK_BYTES = 2 * GIGABYTE
const FULL_DISK_BYTES = 200 * MEGABYTE
const MAX_OFFSET_MS = 1_000
const HOUR_MS = 3_600_000
/** Two days, as in the alert MusterBackupOld. */
const MAX_BACKUP_AGE_MS = 48 * HOUR_MS

export function checkConfiguration(config: Config): Findings {
  const { database, role, baseUrl, isProduction, metricsPort, webhookAllowedRanges } = config
  if (config.webhookCertificateFiles) readClientCertificate(config.webhookCertificateFiles)
  const mode = 'dataDir' in database ? `Embedded mode in ${database.dataDir}` : 'PostgreSQL mode'
  const findings = [ok(`${mode}, ROLE ${role}, BASE_URL ${baseUrl}.`)]
  if (isProduction && !baseUrl.startsWith('https:'))
    findings.push(
      warning('BASE_URL is not https, so cookies are sent without encryption.', 'Set BASE_URL.'),
    )
  if (isProduction && metricsPort === undefined)
    findings.push(
      warning('There are no metrics, because METRICS_PORT is not set.', 'Set METRICS_PORT.'),
    )
  if (isProduction && webhookAllowedRanges.length > 0)
    findings.push(
      warning(
        'WEBHOOK_ALLOW_ADDRESSES permits webhooks to reach private IP addresses.',
        'Remove the setting, unless your receivers have private IP addresses.',
      ),
    )
  return findings
}

export async function checkDatabase({ db, config }: Installation): Promise<Findings> {
  const { database } = config
  if ('dataDir' in database) return checkSqlite(db)
  await assertSupported(async (text) => (await db.read.raw(text)).rows)
  const { settings } = await findPostgresState(db)
  return ok(`PostgreSQL ${settings.server_version}.`)
}

async function checkSqlite(db: Db): Promise<Findings> {
  const bytes = (await findDatabaseBytes(db)) ?? 0
  const isChecked = bytes <= MAX_CHECKED_BYTES
  const damage = isChecked ? await findDamage(db) : undefined
  if (damage !== undefined)
    return problem(
      `The database file is damaged: ${damage}.`,
      'Stop the service and restore a backup: see "muster backup --help".',
    )
  const result = isChecked ? 'without damage' : 'too large to look for damage here'
  return ok(`SQLite ${await findSqliteVersion(db)}, ${formatBytes(bytes)}, ${result}.`)
}

/** Finds settings of PostgreSQL that lose data or refuse writes. */
export async function checkPostgresSettings({ db }: Installation): Promise<Findings> {
  if (db.dialect === 'sqlite') return []
  const { settings, isStandby } = await findPostgresState(db)
  const findings: Finding[] = []
  if (isStandby || settings.transaction_read_only === 'on')
    findings.push(
      problem(
        'PostgreSQL accepts no writes: it is a standby or read-only.',
        'Set DATABASE_URL to the primary server.',
      ),
    )
  for (const name of ['fsync', 'full_page_writes'])
    if (settings[name] === 'off')
      findings.push(
        problem(
          `${name} is off: a crash of the server can damage the database.`,
          `Set ${name} = on.`,
        ),
      )
  const { count: failures } = await findChecksumFailures(db)
  if (failures > 0)
    findings.push(
      warning(
        `PostgreSQL has found ${failures} wrong checksums since its statistics were last reset.`,
        'See "MusterDatabaseDamaged" in docs/operations.md.',
      ),
    )
  if (settings.synchronous_commit === 'off')
    findings.push(
      warning(
        'synchronous_commit is off: a crash of the server loses the changes of the last moments.',
        'Set synchronous_commit = on.',
      ),
    )
  if (settings.server_encoding !== undefined && settings.server_encoding !== 'UTF8')
    findings.push(
      problem(
        `The encoding of the database is ${settings.server_encoding}, which cannot store all text.`,
        'Create a database with the encoding UTF8, and move the data there with pg_dump.',
      ),
    )
  return findings
}

export async function checkClock({ db }: Installation): Promise<Findings> {
  const clock = await Clock.open(db)
  const findings: Finding[] = []
  const offsetMs = db.dialect === 'postgres' ? clock.offsetMs() : 0
  if (Math.abs(offsetMs) > MAX_OFFSET_MS)
    findings.push(
      warning(
        `The clock of this machine is ${Math.round(Math.abs(offsetMs) / 1_000)} s ` +
          `${offsetMs > 0 ? 'ahead of' : 'behind'} the time of PostgreSQL, which Muster uses.`,
        'Synchronise both with NTP.',
      ),
    )
  const doubtMs = doubtLeftMs(await listClockSpans(db.read))
  if (doubtMs > 0)
    findings.push(
      warning(
        `The clock is in doubt for another ${Math.ceil(doubtMs / HOUR_MS)} h: no row is deleted by its age.`,
        'If the time is right, run:  muster doctor --confirm-clock',
      ),
    )
  const whose = db.dialect === 'postgres' ? 'PostgreSQL' : 'this machine'
  return findings.length > 0
    ? findings
    : ok(`The time of ${whose} is ${clock.now().toISOString()}.`)
}

export async function checkSchema({ db }: Installation): Promise<Findings> {
  const pending = await listPendingMigrations(db)
  if (pending.length > 0)
    return warning(
      `Migrations that have not run: ${pending.length}.`,
      'The next start runs them. To run them now:  muster migrate',
    )
  const difference = await findSchemaDifference(db)
  const found = describeSchemaProblem(difference, db.dialect)
  if (found !== undefined) return problem(found)
  const { additional, missingSearches } = difference
  const findings: Finding[] = []
  if (additional.length > 0)
    findings.push(
      warning(`Muster does not know these parts of the schema: ${additional.join(', ')}.`),
    )
  if (missingSearches.length > 0)
    findings.push(
      warning(
        `Searches read all records of an account, because PostgreSQL lacks ${missingSearches.join(', ')}.`,
        'Create it: see "Search" in docs/operations.md.',
      ),
    )
  if (db.dialect === 'postgres' && missingSearches.length === 0 && !(await canIndexAllScripts(db)))
    findings.push(
      warning(
        'The database has the locale C: searches for letters other than a to z read all records of an account.',
        'Choose another locale: see "Search" in docs/operations.md.',
      ),
    )
  return findings.length > 0
    ? findings
    : ok('All migrations have run, and the schema is the expected one.')
}

export async function checkSecretKey({ db, config }: Installation): Promise<Findings> {
  const { secretKeys } = config
  // Throws if there is no key, also on a database without secrets.
  secretKeys.newest()
  const found = await findSecretKeyProblem(db, secretKeys)
  if (found !== undefined) return problem(found)
  if ((await findSecretKeyState(db.read))?.previous !== undefined)
    return warning('The rotation of the key has not finished.', 'Run:  muster secret-key rotate')
  return ok(`${secretKeys.place} fits the database.`)
}

/** Warns if PostgreSQL has too few free connections for one more node. */
export async function checkConnections({ db, config }: Installation): Promise<Findings> {
  const { database, role } = config
  if ('dataDir' in database) {
    const pools = Object.entries(db.pools()).map(
      ([name, { max }]) => `${max} in the pool "${name}"`,
    )
    return ok(`Up to ${pools.join(' and ')}.`)
  }
  const { poolSize, queuePoolSize } = { ...DEFAULT_LIMITS, ...database }
  // A worker needs one more connection for LISTEN, and one for its session.
  const needed = poolSize + (role === 'api' ? 0 : queuePoolSize + 2)
  const { used, max } = await findConnections(db)
  if (max === undefined) return ok(`A node uses up to ${needed} connections.`)
  const free = max - used
  const text = `${free} of ${max} connections are free, and a node with these settings uses up to ${needed}`
  return free < needed
    ? warning(`${text}.`, 'Raise max_connections, or lower DATABASE_POOL_SIZE.')
    : ok(`${text}.`)
}

/** Only `muster backup` records its backups, so nothing is known about those of PostgreSQL. */
export async function checkBackup({ config: { database } }: Installation): Promise<Findings> {
  if (!('dataDir' in database)) return []
  const last = await findLastBackup(database.dataDir)
  const remedy = 'Back up every day: see "Back up" in docs/operations.md.'
  if (last === undefined) return warning('There is no backup.', remedy)
  const text = `The last backup is of ${formatTime(last.takenAt)}: ${last.file}.`
  return Date.now() - last.takenAt > MAX_BACKUP_AGE_MS ? warning(text, remedy) : ok(text)
}

export async function checkDisk({ db, config: { database } }: Installation): Promise<Findings> {
  if (!('dataDir' in database)) {
    const bytes = await findDatabaseBytes(db)
    return ok(`The database has ${formatBytes(bytes ?? 0)}. Watch the disk of PostgreSQL.`)
  }
  const { dataDir } = database
  for (const path of [dataDir, sqliteFile(dataDir)])
    if (existsSync(path)) await access(path, constants.W_OK)
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const text = `${formatBytes(free)} are free on the disk of DATA_DIR ${dataDir}.`
  const remedy = 'Make room: a full disk refuses every change.'
  if (free < FULL_DISK_BYTES) return problem(text, remedy)
  return free < LOW_DISK_BYTES ? warning(text, remedy) : ok(text)
}
