import { v7 as uuidv7 } from 'uuid'
import type { WebhookAdmin } from './hooks.ts'

const HOUR_MS = 3_600_000

export interface StoredDelivery {
  hoursAgo: number
  /** `delivered` by default. */
  state?: string
  /** `task.created` by default. */
  type?: string
  eventId?: string
}

/** Stores deliveries without attempts. Returns their IDs in the same order. */
export async function storeDeliveries(
  admin: WebhookAdmin,
  webhookId: string,
  deliveries: StoredDelivery[],
): Promise<string[]> {
  const rows = deliveries.map(
    ({ hoursAgo, state = 'delivered', type = 'task.created', eventId = null }) => {
      const at = Math.round(Date.now() - hoursAgo * HOUR_MS)
      return {
        id: uuidv7({ msecs: at }),
        webhook_id: webhookId,
        event_id: eventId,
        event_type: type,
        body: Buffer.from('{}'),
        state,
        attempts: 0,
        created_at: at,
        updated_at: at,
      }
    },
  )
  await admin.write((scope) => scope.insert('deliveries', rows))
  return rows.map(({ id }) => id)
}
