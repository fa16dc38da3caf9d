/** Compares the schema of the database with the one that this version needs: at the start, and
 *  while the node runs. */
import type { Logger } from 'pino'
import type { Db } from '../records/database/open.ts'
import {
  assertSchema,
  describeSchemaProblem,
  findSchemaDifference,
  hasComparableCatalogue,
} from '../records/database/schema-difference.ts'
import type { Config } from './config.ts'

const RECHECK_MS = 10_000

export interface SchemaWatch {
  /** Whether this version can use the schema. Reads the catalogue at most every 10 s. */
  isIntact(): Promise<boolean>
}

/** Throws `Refused` when this version cannot use the schema. Warns of additional tables, columns,
 *  keys and indexes. */
export async function startSchemaWatch(
  db: Db,
  { database }: Pick<Config, 'database'>,
  log: Logger,
): Promise<SchemaWatch> {
  const additional = await assertSchema(db, database)
  if (additional.length > 0)
    log.warn(
      { additional },
      'The database has tables, columns, keys or indexes that this version of Muster ' +
        'does not use. Remove them, unless a newer version or you added them on purpose.',
    )
  let reported: string | undefined
  const check = async (): Promise<boolean> => {
    const problem = describeSchemaProblem(await findSchemaDifference(db), db.dialect)
    if (problem !== undefined && problem !== reported) log.error(problem)
    if (problem === undefined && reported !== undefined)
      log.info('The schema of the database is the one that this version of Muster needs again.')
    reported = problem
    return problem === undefined
  }
  let checkedAt = performance.now()
  let result = Promise.resolve(true)
  return {
    isIntact() {
      if (hasComparableCatalogue(database) && performance.now() - checkedAt >= RECHECK_MS) {
        checkedAt = performance.now()
        // The catalogue cannot be read while the database is unavailable: another check says so.
        result = check().catch(() => true)
      }
      return result
    },
  }
}
