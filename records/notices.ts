/** What operational events told last: see webhooks/notices.ts. */
import type { Db } from './database/open.ts'
import type { WriteScope } from './database/scope.ts'
import { select } from './database/statements.ts'
import type { ChangedState } from './reports/webhook-health.ts'
import { NOTIFIED_ACCOUNTS } from './subscriptions.ts'

/** Without suspended accounts. */
export async function listNotifiedAccounts({ read }: Db): Promise<string[]> {
  const rows = await select<{ account_id: string }>(
    read,
    `select distinct account_id from (${NOTIFIED_ACCOUNTS} and suspended_at is null) as notified`,
    [],
  )
  return rows.map((row) => row.account_id)
}

/** `toldAt` undefined: the state is stored, and not told. Returns false and changes nothing if
 *  another state was stored meanwhile. */
export async function storeNotifiedState(
  scope: WriteScope,
  { id, before, state }: ChangedState,
  toldAt: Date | undefined,
): Promise<boolean> {
  const updated = await scope
    .rows('webhooks')
    .where({ id, notified_state: before })
    .update({ notified_state: state, ...(toldAt && { notified_at: toldAt.getTime() }) })
  return updated > 0
}

/** On PostgreSQL, the account stays locked until the transaction ends. */
export async function lockNotifiedQuotas({ sql, accountId }: WriteScope): Promise<string[]> {
  const row: { notified_quotas: string | null } | undefined = await sql('accounts')
    .where({ id: accountId })
    .forNoKeyUpdate()
    .first('notified_quotas')
  return JSON.parse(row?.notified_quotas ?? '[]')
}

export async function storeNotifiedQuotas(
  { sql, accountId }: WriteScope,
  names: string[],
): Promise<void> {
  await sql('accounts')
    .where({ id: accountId })
    .update({ notified_quotas: JSON.stringify(names) })
}
