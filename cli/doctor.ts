import { type Command, Option } from 'commander'
import type { CountRepair } from '../records/count-repairs.ts'
import type { Db } from '../records/database/open.ts'
import type { Config } from '../server/config.ts'
import { type Findings, type NamedFinding, runCheck, warning } from './doctor-findings.ts'
import { examples, formatTable, type Output, type Shell } from './shell.ts'

/** PostgreSQL cancels a statement of a check after this time. */
const STATEMENT_TIMEOUT_MS = 10_000

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('doctor')
    .description(
      'Check the installation: configuration, database, clock, schema, secret key, connections, disk and ' +
        'pending work. Each warning and problem says what to do. The service may run meanwhile. Only ' +
        '--confirm-clock and --counts change anything. The exit status is 1 if there is a problem.',
    )
    .option(
      '--confirm-clock',
      'confirm that the time is right, so that the service deletes outdated rows again',
    )
    .addOption(
      new Option(
        '--counts',
        'count the records of all accounts, and correct the totals that lists show',
      ).conflicts('confirmClock'),
    )
    .addHelpText(
      'after',
      examples(
        'muster doctor',
        'muster doctor --json',
        'muster doctor --confirm-clock',
        'muster doctor --counts',
      ),
    )
    .action(
      shell.action(({ confirmClock, counts }: { confirmClock?: boolean; counts?: boolean }) => {
        if (confirmClock) return confirmTime(shell)
        return counts ? correctCounts(shell) : checkInstallation(shell)
      }),
    )
}

function confirmTime(shell: Shell): Promise<Output> {
  return shell.withDatabase(async ({ db, now }): Promise<Output> => {
    const { confirmClock } = await import('../records/deletion-time.ts')
    const time = now()
    await confirmClock(db, time)
    return {
      document: { time: time.toISOString(), in_doubt: false },
      text:
        `The time ${time.toISOString()} is confirmed. ` +
        'Running nodes delete outdated rows again within an hour.',
    }
  })
}

function correctCounts(shell: Shell): Promise<Output> {
  return shell.withDatabase(async ({ db }): Promise<Output> => {
    const { listAccountIds } = await import('../records/accounts.ts')
    const { repairCounts } = await import('../records/count-repairs.ts')
    const { countNoun } = await import('../records/references.ts')
    const accountIds = await listAccountIds(db.read)
    const corrected: CountRepair[] = []
    for (const id of accountIds) corrected.push(...(await repairCounts(db, id)))
    const counted = `Counted the records of ${countNoun(accountIds.length, 'account')}. `
    const rows = corrected.map((repair) => Object.values(repair).map(String))
    return {
      document: { accounts: accountIds.length, corrected },
      text:
        rows.length === 0
          ? `${counted}All totals are right.`
          : `${counted}Corrected:\n${formatTable(['ACCOUNT', 'TABLE', 'VALUE', 'DIFFERENCE'], rows)}`,
    }
  })
}

async function checkInstallation(shell: Shell): Promise<Output> {
  const findings = await listFindings(shell)
  const hasProblem = findings.some(({ level }) => level === 'problem')
  return {
    document: { healthy: !hasProblem, findings },
    text: toTable(findings),
    failed: hasProblem,
  }
}

async function listFindings({ environment }: Shell): Promise<NamedFinding[]> {
  const { checkConfiguration } = await import('./doctor-checks.ts')
  const { readConfig } = await import('../server/config.ts')
  let config: Config | undefined
  const findings = await runCheck('configuration', environment, () => {
    config = readConfig(environment, { createsFiles: false })
    return checkConfiguration(config)
  })
  // Without valid settings, no database can be opened.
  if (config === undefined) return findings
  return [...findings, ...(await openAndCheckDatabase(config, environment))]
}

async function openAndCheckDatabase(
  config: Config,
  environment: Shell['environment'],
): Promise<NamedFinding[]> {
  const { openDatabase, withoutPooler } = await import('../records/database/open.ts')
  const { hasSqliteDatabase } = await import('./installation.ts')
  const { database, standby } = config
  if ('dataDir' in database && !hasSqliteDatabase(database.dataDir))
    return runCheck('database', environment, () =>
      warning(
        `There is no database in ${database.dataDir} yet.`,
        'The first start creates it:  muster serve',
      ),
    )
  const use = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, standby }
  const db = openDatabase(withoutPooler(database), use)
  try {
    return await runDatabaseChecks(db, config, environment)
  } finally {
    await db.close()
  }
}

async function runDatabaseChecks(
  db: Db,
  config: Config,
  environment: Shell['environment'],
): Promise<NamedFinding[]> {
  const checks = await import('./doctor-checks.ts')
  const { checkReadStandby, checkStandbys } = await import('./doctor-standbys.ts')
  const work = await import('./doctor-work.ts')
  const { listPendingMigrations } = await import('../records/database/migrate.ts')
  const installation = { db, config }
  const run = (name: string, check: (input: typeof installation) => Promise<Findings>) =>
    runCheck(name, environment, () => check(installation))
  const findings = await run('database', checks.checkDatabase)
  // A database that cannot be used makes all other checks fail.
  if (findings.some(({ level }) => level === 'problem')) return findings
  findings.push(...(await run('database', checks.checkPostgresSettings)))
  findings.push(...(await run('standbys', checkStandbys)))
  findings.push(...(await run('standbys', checkReadStandby)))
  findings.push(...(await run('connections', checks.checkConnections)))
  findings.push(...(await run('disk', checks.checkDisk)))
  findings.push(...(await run('backup', checks.checkBackup)))
  const schema = await run('schema', checks.checkSchema)
  findings.push(...schema)
  // The checks below need the tables of this version. `checkSchema` only warns of pending
  // migrations.
  const lacksTables =
    schema.some(({ level }) => level === 'problem') || (await listPendingMigrations(db)).length > 0
  if (lacksTables) return findings
  for (const [name, check] of [
    ['clock', checks.checkClock],
    ['secret key', checks.checkSecretKey],
    ['accounts', work.checkAccounts],
    ['webhooks', work.checkWebhooks],
    ['deliveries', work.checkDeliveries],
    ['bulk jobs', work.checkBulkJobs],
  ] as const)
    findings.push(...(await run(name, check)))
  return findings
}

function toTable(findings: NamedFinding[]): string {
  const rows = findings.flatMap(({ check, level, text, remedy }) => [
    [level, check, text],
    ...(remedy === null ? [] : [['', '', `→ ${remedy}`]]),
  ])
  return formatTable(['LEVEL', 'CHECK', 'FINDING'], rows)
}
