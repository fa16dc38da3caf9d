/** The check of the standbys and of the failover manager for `muster doctor`. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../records/database/open.ts'
import { countWaitingCommits } from '../records/reports/database-state.ts'
import {
  countStandbys,
  findPatroniHost,
  findPostgresState,
} from '../records/reports/installation.ts'
import type { Installation } from './doctor-checks.ts'
import { type Finding, type Findings, ok, warning } from './doctor-findings.ts'

/** As in deploy/cluster/patroni.yaml. Earlier versions lost changes with a 2xx response. */
const FIRST_SAFE_PATRONI = '4.1.5'
/** The default of Patroni. */
const PATRONI_PORT = 8008
const PATRONI_TIMEOUT_MS = 2_000
const CHECK_AGAIN_MS = 500

export async function checkStandbys({ db }: Installation): Promise<Findings> {
  if (db.dialect === 'sqlite') return []
  const { settings } = await findPostgresState(db)
  const { streaming, asynchronous } = await countStandbys(db)
  const waiting = await countWaitingCommits(db)
  const patroni = await findPatroniVersion(db)
  const findings: Finding[] = []
  const waitsForNone = settings.synchronous_standby_names === '' || asynchronous === streaming
  if (streaming > 0 && waitsForNone)
    findings.push(
      warning(
        `Standbys that stream: ${streaming}, but none is synchronous. A failover loses the latest changes.`,
        'Set synchronous_standby_names, or synchronous_mode of Patroni: see "High availability" in docs/operations.md.',
      ),
    )
  if (waiting > 0)
    findings.push(
      warning(
        `Commits that wait for a standby: ${waiting}.`,
        'Start the standbys: see "Commits that wait for a standby" in docs/operations.md.',
      ),
    )
  if (patroni !== undefined && isOlder(patroni, FIRST_SAFE_PATRONI))
    findings.push(
      warning(
        `Patroni ${patroni} may lose changes when a former primary returns.`,
        `Install Patroni ${FIRST_SAFE_PATRONI} or newer: see "High availability" in docs/operations.md.`,
      ),
    )
  return findings.length === 0 && streaming > 0
    ? ok(`Standbys that stream: ${streaming}.`)
    : findings
}

/** Warns when the standby does not catch up with the primary within the longest lag. */
export async function checkReadStandby({
  db: { standby },
  config,
}: Installation): Promise<Findings> {
  if (!standby) return []
  const deadline = performance.now() + (config.standby?.maxLagMs ?? 0)
  await standby.check()
  while (standby.problem !== undefined && performance.now() < deadline) {
    await delay(CHECK_AGAIN_MS)
    await standby.check()
  }
  return standby.problem === undefined
    ? ok('The console and exports can read the standby of DATABASE_READ_URL.')
    : warning(
        `The standby of DATABASE_READ_URL is not read: ${standby.problem}.`,
        'Check the standby and its replication. Meanwhile, the console and exports read the primary.',
      )
}

/** Undefined: Patroni does not manage this server, or does not respond. */
async function findPatroniVersion(db: Db): Promise<string | undefined> {
  const host = await findPatroniHost(db)
  if (host === undefined) return undefined
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${PATRONI_PORT}/patroni`
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATRONI_TIMEOUT_MS) })
    const { patroni } = (await response.json()) as { patroni?: { version?: unknown } }
    return typeof patroni?.version === 'string' ? patroni.version : undefined
  } catch {
    return undefined
  }
}

function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0
}
