/** The reasons why a node cannot serve requests, for /readyz. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../records/database/open.ts'
import { checkWrite } from '../records/write-checks.ts'
import type { Engine } from '../webhooks/engine/engine.ts'
import { findSecretKeyProblem } from '../webhooks/secret-keys.ts'
import type { Config } from './config.ts'
import type { SchemaCheck } from './schema-check.ts'

type UnreadyReason = 'draining' | 'database' | 'schema' | 'writes' | 'secret_key' | 'schedule'

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
  let isDraining = false
  return {
    startDraining() {
      isDraining = true
    },
    async findReasons() {
      if (isDraining) return ['draining']
      const reasons = await Promise.all([
        // This check fails when the database cannot be reached.
        inTime(checkSecretKey(), 'database'),
        inTime(checkSchema(), undefined),
        inTime(checkWrites(), undefined),
        inTime(checkSchedule(), 'schedule'),
      ])
      return reasons.filter((reason) => reason !== undefined)
    },
  }
}

/** How long after a failed write the node stays unready: the check writes so little that it may
 *  succeed on a full disk. */
const FAILED_WRITE_MS = 10_000
const CHECK_EVERY_MS = 2_000

/** Checks whether the storage of the database accepts writes: it may be full, faulty or
 *  read-only. */
function newWriteCheck(db: Db): () => Promise<UnreadyReason | undefined> {
  let checkedAtMs = Number.NEGATIVE_INFINITY
  let running = Promise.resolve()
  return async () => {
    if (performance.now() - checkedAtMs >= CHECK_EVERY_MS) {
      checkedAtMs = performance.now()
      // `transaction` notes a refused write in `db.storage`. Other errors concern the database,
      // which has its own check.
      running = running.then(() => checkWrite(db)).catch(() => undefined)
    }
    await running
    return performance.now() - db.storage.refusedAtMs < FAILED_WRITE_MS ? 'writes' : undefined
  }
}

/** `failure` is the result of a check that fails or takes too long. */
async function inTime<T>(check: Promise<T>, failure: T): Promise<T> {
  const timeout = delay(CHECK_TIMEOUT_MS, failure, { ref: false })
  return Promise.race([check.catch(() => failure), timeout])
}
