/** The deletions of accounts. The rows are never removed, and contain no personal data. */
import type { Scope, WriteScope } from './database/scope.ts'
import type { Sql } from './database/statements.ts'
import { JOBS_DUE } from './due-work.ts'

export interface AccountDeletion {
  /** The ID of the account, even after the account is removed. */
  id: string
  /** Epoch milliseconds, like all times of records. */
  requestedAt: number
  removedRows: number
  /** Null: rows are still being removed. */
  completedAt: number | null
}

interface DeletionRow {
  id: string
  requested_at: number
  removed_rows: number
  completed_at: number | null
}

function fromRow(row: DeletionRow): AccountDeletion {
  return {
    id: row.id,
    requestedAt: row.requested_at,
    removedRows: row.removed_rows,
    completedAt: row.completed_at,
  }
}

/** Requests the deletion, which workers then carry out. An earlier request stays. */
export async function insertAccountDeletion(scope: WriteScope, now: Date): Promise<void> {
  await scope
    .sql('account_deletions')
    .insert({ id: scope.accountId, requested_at: now.getTime() })
    .onConflict('id')
    .ignore()
  scope.trx.announce(JOBS_DUE)
}

export async function findAccountDeletion(
  sql: Sql,
  id: string,
): Promise<AccountDeletion | undefined> {
  const row: DeletionRow | undefined = await sql('account_deletions').where({ id }).first()
  return row && fromRow(row)
}

export async function isBeingDeleted({ sql, accountId }: Scope): Promise<boolean> {
  return (await findAccountDeletion(sql, accountId)) !== undefined
}

/** Oldest first. */
export async function listAccountDeletions(sql: Sql): Promise<AccountDeletion[]> {
  const rows: DeletionRow[] = await sql('account_deletions').orderBy(['requested_at', 'id'])
  return rows.map(fromRow)
}

export async function listUnfinishedDeletionIds(sql: Sql): Promise<string[]> {
  return sql('account_deletions').whereNull('completed_at').orderBy('id').pluck('id')
}

/** Call it in the transaction that removes the rows. */
export async function addRemovedRows(sql: Sql, id: string, rows: number): Promise<void> {
  await sql('account_deletions').where({ id }).increment('removed_rows', rows)
}

export async function completeAccountDeletion(sql: Sql, id: string, now: Date): Promise<void> {
  await sql('account_deletions')
    .where({ id })
    .whereNull('completed_at')
    .update({ completed_at: now.getTime() })
}
