/** The checks of accounts and of pending work for `muster doctor`: webhooks, deliveries and bulk
 *  jobs. */
import { Clock } from '../records/database/clock.ts'
import { findPausedAt } from '../records/delivery-pause.ts'
import { countPausedBulkJobs, countUndelivered } from '../records/reports/database-state.ts'
import { countAccounts, hasLeader } from '../records/reports/installation.ts'
import { countQueued, findEarliestScheduledAt } from '../records/scheduled-attempts.ts'
import { listSealedSecrets } from '../records/webhook-secrets.ts'
import { openSecret, SecretUnreadable } from '../webhooks/transport/secret.ts'
import type { Installation } from './doctor-checks.ts'
import { type Findings, ok, problem, warning } from './doctor-findings.ts'
import { isServing } from './serve-lock.ts'
import { formatTime } from './shell.ts'

const LATE_MS = 60_000
const TOO_LATE_MS = 10 * LATE_MS
const MAX_NAMED_WEBHOOKS = 5
const WEBHOOKS_PER_QUERY = 500

export async function checkAccounts({ db }: Installation): Promise<Findings> {
  const { accounts, suspended, deleting } = await countAccounts(db.read)
  return ok(`Accounts: ${accounts}, suspended: ${suspended}, being deleted: ${deleting}.`)
}

/** Finds enabled webhooks whose current signing secret, or a header, no key can read. */
export async function checkWebhooks({ db, config }: Installation): Promise<Findings> {
  const unreadable: string[] = []
  let count = 0
  let afterId: string | undefined
  do {
    const webhooks = await listSealedSecrets(db.read, { afterId, limit: WEBHOOKS_PER_QUERY })
    for (const { id, url, current, headers } of webhooks.filter(({ enabled }) => enabled)) {
      count++
      const secrets = [current, url ?? [], Object.values(headers)].flat()
      if (!secrets.every((sealed) => canOpen(config, id, sealed))) unreadable.push(id)
    }
    afterId = webhooks.at(-1)?.id
  } while (afterId !== undefined)
  if (unreadable.length === 0)
    return ok(`Enabled webhooks: ${count}. All signing secrets can be read.`)
  const names = unreadable.slice(0, MAX_NAMED_WEBHOOKS).join(', ')
  const others = unreadable.length - MAX_NAMED_WEBHOOKS
  return problem(
    'The signing secrets or headers of these webhooks cannot be read, so their deliveries are paused: ' +
      `${names}${others > 0 ? ` and ${others} more` : ''}.`,
    'Restore the key. Or rotate each secret: "muster webhook rotate ID", then the same with --activate. ' +
      'Then set the headers again: "muster webhook update ID --header".',
  )
}

function canOpen({ secretKeys }: Installation['config'], id: string, sealed: string): boolean {
  try {
    openSecret(secretKeys, id, sealed)
    return true
  } catch (error) {
    if (error instanceof SecretUnreadable) return false
    throw error
  }
}

export async function checkDeliveries(installation: Installation): Promise<Findings> {
  const { db } = installation
  const now = (await Clock.open(db)).now()
  const { pending, retrying, failed } = await countUndelivered(db)
  const queued = (await countQueued(db, now)).reduce((sum, { count }) => sum + count, 0)
  const earliest = await findEarliestScheduledAt(db)
  const lateMs = earliest === undefined ? 0 : Math.max(0, now.getTime() - earliest)
  const counts = `${pending} pending, ${retrying} retrying, ${failed} failed, ${queued} due in the queue`
  const pausedAt = await findPausedAt(db.read)
  if (pausedAt !== undefined)
    return warning(
      `All deliveries have been paused since ${formatTime(pausedAt)}: ${counts}.`,
      'To continue:  muster deliveries unpause',
    )
  const lateness = describeLateness(lateMs)
  if (!(await hasWorker(installation))) {
    const report = lateMs > LATE_MS ? problem : warning
    return report(`No worker is running: ${counts}. ${lateness}`, 'Start one:  muster serve')
  }
  if (lateMs <= LATE_MS) return ok(`A worker is running: ${counts}. ${lateness}`)
  const report = lateMs > TOO_LATE_MS ? problem : warning
  return report(`${lateness} ${counts}.`, 'See "MusterDeliveriesLate" in docs/operations.md.')
}

const describeLateness = (lateMs: number): string =>
  lateMs === 0 ? 'None is late.' : `The oldest has been due for ${Math.ceil(lateMs / 1_000)} s.`

/** In embedded mode the service itself is the worker. */
async function hasWorker({ db, config: { database } }: Installation): Promise<boolean> {
  return 'dataDir' in database ? isServing(database.dataDir) : hasLeader(db)
}

export async function checkBulkJobs({ db }: Installation): Promise<Findings> {
  const paused = await countPausedBulkJobs(db)
  return paused === 0
    ? ok('None is paused.')
    : warning(`Paused bulk jobs: ${paused}.`, 'See why:  muster bulk list --account ID')
}
