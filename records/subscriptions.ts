import { type Sql, select } from './database/statements.ts'

/** `by_resource`: the events of one record are delivered one after the other. A failing delivery
 *  delays only later ones of the same record. */
export const orderings = ['none', 'by_resource'] as const
export type Ordering = (typeof orderings)[number]

/** An enabled webhook, as `emit` (webhooks/emit.ts) needs it. */
export interface Subscription {
  id: string
  /** `['*']`: all types, including future ones. */
  eventTypes: string[]
  ordering: Ordering
}

/** The enabled webhooks. Runs for every emitted event. */
export async function listSubscriptions(sql: Sql, accountId: string): Promise<Subscription[]> {
  const text =
    'select id, event_types, ordering from webhooks where account_id = ? and deleted_at is null and enabled'
  const rows = await select<{ id: string; event_types: string; ordering: Ordering }>(
    sql,
    text,
    [accountId],
    'list_subscriptions',
  )
  return rows.map((row) => ({
    id: row.id,
    eventTypes: JSON.parse(row.event_types) as string[],
    ordering: row.ordering,
  }))
}
