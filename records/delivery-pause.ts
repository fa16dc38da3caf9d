/** The pause of all deliveries: while it is stored, no node makes an attempt. It ends only with
 *  `unpauseDeliveries`. Scheduled attempts keep their times. */
import type { Topic } from './database/announcements.ts'
import type { Db } from './database/open.ts'
import { type Sql, select } from './database/statements.ts'
import { transaction } from './database/transaction.ts'
import { excludePauseFromOutages } from './webhook-outages.ts'

/** Deliveries were paused, or the pause has ended. */
export const PAUSE_CHANGED: Topic = { name: 'pause' }

export const ARE_PAUSED = 'exists (select 1 from delivery_pauses)'

const ROW_ID = 1

/** When deliveries were paused, in epoch milliseconds. Undefined: they are not paused. */
export async function findPausedAt(sql: Sql): Promise<number | undefined> {
  const [row] = await select<{ paused_at: number }>(
    sql,
    'select paused_at from delivery_pauses',
    [],
  )
  return row?.paused_at
}

/** Returns since when deliveries are paused, in epoch milliseconds. An earlier pause continues. On
 *  PostgreSQL, no attempt starts after the commit. On SQLite, a running server may still start
 *  attempts for a few milliseconds. */
export function pauseDeliveries(db: Db, now: Date): Promise<number> {
  return transaction(db, async (trx) => {
    // The lock waits until the workers have started the attempts that they have loaded. Until the
    // commit, they cannot load others.
    if (trx.dialect === 'postgres') await trx.sql.raw('lock table webhooks in exclusive mode')
    await trx
      .sql('delivery_pauses')
      .insert({ id: ROW_ID, paused_at: now.getTime() })
      .onConflict('id')
      .ignore()
    trx.announce(PAUSE_CHANGED)
    return (await findPausedAt(trx.sql)) ?? now.getTime()
  })
}

/** Returns since when deliveries were paused, in epoch milliseconds. Undefined: they were not. */
export function unpauseDeliveries(db: Db, now: Date): Promise<number | undefined> {
  return transaction(db, async (trx) => {
    const pausedAt = await findPausedAt(trx.sql)
    await trx.sql('delivery_pauses').delete()
    if (pausedAt !== undefined) await excludePauseFromOutages(trx.sql, now)
    trx.announce(PAUSE_CHANGED)
    return pausedAt
  })
}
