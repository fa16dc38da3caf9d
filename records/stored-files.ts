/** The quotas of exports and imports, and of the files that they store. */
import { InvalidInput, StatusError } from '../errors.ts'
import type { Scope } from './database/scope.ts'
import { countFound, select } from './database/statements.ts'
import type { FileJobTable } from './file-jobs.ts'
import { UNFINISHED_FILE_JOBS } from './index-predicates.ts'
import { MIB, type Quotas, STORED_BYTES } from './quotas.ts'
import { countNoun } from './references.ts'

const UNFINISHED_RETRY_SECONDS = 10

/** Throws 429 when the account has too many unfinished jobs, and InvalidInput when its files take too
 *  much space. On PostgreSQL, other transactions that call this for the same account wait until this
 *  one ends. */
export async function assertFileQuotas(
  scope: Scope,
  table: FileJobTable,
  quotas: Quotas,
): Promise<void> {
  await scope.sql('accounts').where({ id: scope.accountId }).forNoKeyUpdate().select('id')
  const most = quotas[`unfinished_${table}`]
  const unfinished = await countFound(scope.rows(table).whereRaw(UNFINISHED_FILE_JOBS))
  if (unfinished >= most)
    throw new StatusError(
      429,
      `Your account has ${countNoun(most, `unfinished ${table.slice(0, -1)}`)}, which is the limit. ` +
        'Wait until one of them has ended, or delete one.',
      { 'Retry-After': String(UNFINISHED_RETRY_SECONDS) },
    )
  if ((await findStoredBytes(scope)) >= quotas.export_mib * MIB)
    throw new InvalidInput({ [table]: [describeFullStorage(quotas.export_mib, table)] })
}

export function describeFullStorage(maxMib: number, table: FileJobTable): string {
  const most = `${maxMib.toLocaleString('en')} MiB`
  return (
    `The files of an account may take ${most} together. ` +
    `Delete exports or imports that you no longer need, then create a new ${table.slice(0, -1)}.`
  )
}

/** The bytes of all files of the account. */
export async function findStoredBytes({ sql, accountId }: Scope): Promise<number> {
  const [row] = await select<{ bytes: number }>(sql, `select ${STORED_BYTES} as bytes`, [
    accountId,
    accountId,
  ])
  return Number(row?.bytes)
}
