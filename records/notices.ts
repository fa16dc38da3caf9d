/** What operational events told last, and notices for Slack channels: see webhooks/notices.ts. */
import type { OperationalType } from '../generated/asyncapi.ts'
import type { Db } from './database/open.ts'
import type { WriteScope } from './database/scope.ts'
import { select } from './database/statements.ts'
import { newId } from './ids.ts'
import type { ChangedState } from './reports/webhook-health.ts'
import { NOTIFIED_ACCOUNTS } from './subscriptions.ts'
import { HOUR_MS } from './time-units.ts'

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

/** A notice that waits for the next message to a Slack channel. */
export interface HeldNotice {
  webhookId: string
  type: OperationalType
  resourceId: string
  text: string
}

interface HeldRow {
  id: string
  webhook_id: string
  event_type: OperationalType
  resource_id: string
  text: string
}

export async function holdNotices(scope: WriteScope, notices: HeldNotice[]): Promise<void> {
  const rows = notices.map(
    ({ webhookId, type, resourceId, text }): HeldRow => ({
      id: newId(),
      webhook_id: webhookId,
      event_type: type,
      resource_id: resourceId,
      text,
    }),
  )
  if (rows.length > 0) await scope.insert('held_notices', rows)
}

/** The channels with held notices that got no message in the last hour. None of suspended accounts. */
export async function listDueChannels(
  { read }: Db,
  now: Date,
): Promise<{ accountId: string; webhookId: string }[]> {
  const rows = await select<{ id: string; account_id: string }>(
    read,
    `select id, account_id from webhooks
     where id in (select webhook_id from held_notices) and suspended_at is null and ${HAS_NO_RECENT_DIGEST}`,
    lastHour(now),
  )
  return rows.map((row) => ({ accountId: row.account_id, webhookId: row.id }))
}

const MAX_TAKEN = 1_000

/** Removes the oldest held notices of a channel, at most `MAX_TAKEN`, and returns them in order. */
export async function takeHeldNotices(scope: WriteScope, webhookId: string): Promise<HeldNotice[]> {
  const rows: HeldRow[] = await scope
    .rows('held_notices')
    .where({ webhook_id: webhookId })
    .orderBy('id')
    .limit(MAX_TAKEN)
  const ids = rows.map(({ id }) => id)
  await scope.rows('held_notices').whereIn('id', ids).delete()
  return rows.map((row) => ({
    webhookId: row.webhook_id,
    type: row.event_type,
    resourceId: row.resource_id,
    text: row.text,
  }))
}

/** Returns false and changes nothing if the channel got a message in the last hour. */
export async function storeDigestAt(scope: WriteScope, id: string, now: Date): Promise<boolean> {
  const updated = await scope
    .rows('webhooks')
    .where({ id })
    .whereRaw(HAS_NO_RECENT_DIGEST, lastHour(now))
    .update({ digest_at: now.getTime() })
  return updated > 0
}

const HAS_NO_RECENT_DIGEST = '(digest_at is null or digest_at not between ? and ?)'
const lastHour = (now: Date): number[] => [now.getTime() - HOUR_MS + 1, now.getTime()]
