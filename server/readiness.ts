/** What keeps a node from serving requests, for /readyz. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../records/database/open.ts'
import type { Engine } from '../webhooks/engine/engine.ts'
import { findSecretKeyProblem } from '../webhooks/secret-keys.ts'
import type { Config } from './config.ts'
import type { SchemaWatch } from './schema-watch.ts'

export type UnreadyReason = 'database' | 'schema' | 'secret_key' | 'schedule'

const PROBE_MS = 3_000

export interface Readiness {
  /** Why the node is not ready. Empty: it is ready. Never throws. */
  findReasons(): Promise<UnreadyReason[]>
}

/** `engine` returns undefined until it has started. */
export function newReadiness(
  db: Db,
  { role, secretKeys }: Pick<Config, 'role' | 'secretKeys'>,
  schema: SchemaWatch,
  engine: () => Engine | undefined,
): Readiness {
  const checkDatabase = async (): Promise<UnreadyReason | undefined> =>
    (await findSecretKeyProblem(db, secretKeys)) === undefined ? undefined : 'secret_key'
  const checkSchema = async (): Promise<UnreadyReason | undefined> =>
    (await schema.isIntact()) ? undefined : 'schema'
  const checkSchedule = async (): Promise<UnreadyReason | undefined> =>
    role === 'api' || (await engine()?.ready()) ? undefined : 'schedule'
  return {
    async findReasons() {
      const reasons = await Promise.all([
        within(PROBE_MS, checkDatabase(), 'database'),
        within(PROBE_MS, checkSchema(), undefined),
        within(PROBE_MS, checkSchedule(), 'schedule'),
      ])
      return reasons.filter((reason) => reason !== undefined)
    },
  }
}

/** `otherwise` is the result of a check that fails or takes too long. */
async function within<T>(timeoutMs: number, check: Promise<T>, otherwise: T): Promise<T> {
  const timeout = delay(timeoutMs, otherwise, { ref: false })
  return Promise.race([check.catch(() => otherwise), timeout])
}
