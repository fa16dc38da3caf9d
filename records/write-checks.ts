import type { Db } from './database/open.ts'
import { transaction } from './database/transaction.ts'

/** Writes one small row, to find out whether the database accepts writes. Throws the database's
 *  error. */
export async function checkWrite(db: Db): Promise<void> {
  await transaction(db, async ({ sql }) => {
    await sql('write_checks').increment('checks')
  })
}
