/** Compares the schema of the database with the one that this version needs: at the start, and when
 *  /readyz asks, at most every 10 s. */
import type { Logger } from 'pino'
import { isUnavailable } from '../records/database/errors.ts'
import type { Db } from '../records/database/open.ts'
import {
  assertSchema,
  describeSchemaProblem,
  findSchemaDifference,
} from '../records/database/schema-difference.ts'

const RECHECK_MS = 10_000

export interface SchemaCheck {
  /** False: the last comparison has found that this version cannot use the schema. */
  isIntact(): Promise<boolean>
}

/** Throws `Refused` when this version cannot use the schema. Warns of additional tables, columns,
 *  keys and indexes. `nowMs`: the monotonic clock. */
export async function checkSchema(
  db: Db,
  log: Logger,
  nowMs = () => performance.now(),
): Promise<SchemaCheck> {
  const additional = await assertSchema(db)
  if (additional.length > 0)
    log.warn(
      { additional },
      'The database has tables, columns, keys or indexes that this version of Muster ' +
        'does not use. Remove them, unless a newer version or you added them on purpose.',
    )
  let problem: string | undefined
  const compare = async (): Promise<void> => {
    const found = describeSchemaProblem(await findSchemaDifference(db), db.dialect)
    if (found !== undefined && found !== problem) log.error(found)
    if (found === undefined && problem !== undefined)
      log.info('The schema of the database is again the one that this version of Muster needs.')
    problem = found
  }
  // After a failure, the last result counts until the catalogue can be read again.
  const logFailure = (error: unknown): void => {
    // `checkSecretKey` in readiness.ts reports that the database is unavailable.
    if (!isUnavailable(error))
      log.warn({ err: error }, 'The schema of the database could not be compared')
  }
  let comparedAtMs = nowMs()
  let comparison = Promise.resolve()
  return {
    async isIntact() {
      if (nowMs() - comparedAtMs >= RECHECK_MS) {
        comparedAtMs = nowMs()
        comparison = compare().catch(logFailure)
      }
      await comparison
      return problem === undefined
    },
  }
}
