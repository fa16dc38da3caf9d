/** The reasons why a node cannot serve requests, for /readyz. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../records/database/open.ts'
import { checkWrite } from '../records/write-checks.ts'
import type { Engine } from '../webhooks/engine/engine.ts'
import { findSecretKeyProblem } from '../webhooks/secret-keys.ts'
import type { Config } from './config.ts'
import type { SchemaCheck } from './schema-check.ts'

export const UNREADY_REASONS = [
  'draining',
  'database',
  'schema',
  'writes',
  'secret_key',
  'schedule',
  'damage',
] as const

type UnreadyReason = (typeof UNREADY_REASONS)[number]

const CHECK_TIMEOUT_MS = 3_000

export interface Readiness {
  /** Why the node is not ready. Empty: it is ready. Never throws. */
  findReasons(): Promise<UnreadyReason[]>
  /** From now on, the only reason is `draining`: the node is about to stop. */
  startDraining(): void
}

/** `engine` returns undefined until it has started. */
export function newReadiness(
  db: Db,
  { role, secretKeys }: Pick<Config, 'role' | 'secretKeys'>,
  schema: SchemaCheck,
  engine: () => Engine | undefined,
): Readiness {
  const checkSecretKey = async (): Promise<UnreadyReason | undefined> =>
    (await findSecretKeyProblem(db, secretKeys)) === undefined ? undefined : 'secret_key'
  const checkSchema = async (): Promise<UnreadyReason | undefined> =>
    (await schema.isIntact()) ? undefined : 'schema'
  const checkSchedule = async (): Promise<UnreadyReason | undefined> => {
    const isReady = role === 'api' || (await engine()?.ready())
    return isReady ? undefined : 'schedule'
  }
  const checkWrites = newWriteCheck(db)
  async function runChecks(): Promise<UnreadyReason[]> {
    const reasons = await Promise.all([
      // This check fails when the database cannot be reached.
      inTime(checkSecretKey(), 'database'),
      inTime(checkSchema(), 'schema'),
      checkWrites(),
      inTime(checkSchedule(), 'schedule'),
      // server/damage.ts looks for damage.
      db.storage.damage === undefined ? undefined : ('damage' as const),
    ])
    const found = reasons.filter((reason) => reason !== undefined)
    // Without the database, these two checks fail as well.
    const isAway = found.includes('database')
    return isAway ? found.filter((reason) => reason !== 'schema' && reason !== 'writes') : found
  }
  /** A scrape of the metrics asks twice at the same time. */
  let running: Promise<UnreadyReason[]> | undefined
  let isDraining = false
  return {
    startDraining() {
      isDraining = true
    },
    async findReasons() {
      if (isDraining) return ['draining']
      running ??= runChecks().finally(() => {
        running = undefined
      })
      return running
    },
  }
}

/** How long after a failed write the node stays unready: the check writes so little that it may
 *  succeed on a full disk. */
const FAILED_WRITE_MS = 10_000
const CHECK_EVERY_MS = 2_000

/** Checks whether a write succeeds: the storage of the database may be full, faulty or read-only, and
 *  a commit may wait for a standby. A check that takes too long is a failure until one succeeds. */
function newWriteCheck(db: Db): () => Promise<UnreadyReason | undefined> {
  let startedAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  let hasFailed = false
  const start = (): void => {
    startedAtMs = performance.now()
    running = checkWrite(db)
      .then(
        () => false,
        () => true,
      )
      .then((failed) => {
        hasFailed = failed
        running = undefined
      })
  }
  return async () => {
    const isDue = hasFailed || performance.now() - startedAtMs >= CHECK_EVERY_MS
    if (running === undefined && isDue) start()
    const leftMs = Math.max(0, startedAtMs + CHECK_TIMEOUT_MS - performance.now())
    await Promise.race([running, delay(leftMs, undefined, { ref: false })])
    if (running !== undefined) hasFailed = true
    // `transaction` notes a write that the storage refused.
    const isRefused = performance.now() - db.storage.refusedAtMs < FAILED_WRITE_MS
    return hasFailed || isRefused ? 'writes' : undefined
  }
}

/** `failure` is the result of a check that fails or takes too long. */
async function inTime<T>(check: Promise<T>, failure: T): Promise<T> {
  const timeout = delay(CHECK_TIMEOUT_MS, failure, { ref: false })
  return Promise.race([check.catch(() => failure), timeout])
}
