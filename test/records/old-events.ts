/** Events that are as old as a test needs. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../webhooks/harness.ts'

interface StoredEvent {
  deliveredAt?: number
  state?: string
  nextAttemptAt?: number
  attemptedAt?: number
}

/** Stores an event of the time `createdAt` with a delivery and an attempt. Returns the ID of the delivery. */
export async function insertEvent(
  tenant: Tenant,
  createdAt: number,
  {
    deliveredAt = createdAt,
    state = 'delivered',
    nextAttemptAt,
    attemptedAt = deliveredAt,
  }: StoredEvent = {},
): Promise<string> {
  const [known] = await tenant.scope.rows('webhooks').pluck('id')
  const webhook_id = known ?? (await tenant.subscribe('http://127.0.0.1:1/'))
  const event_id = uuidv7({ msecs: createdAt })
  const id = uuidv7({ msecs: deliveredAt })
  await tenant.write(async (scope) => {
    await scope.insert('events', {
      id: event_id,
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: randomUUID(),
      data: '[]',
      created_at: createdAt,
    })
    await scope.insert('deliveries', {
      id,
      webhook_id,
      event_id,
      event_type: 'task.created',
      body: Buffer.from('{}'),
      state,
      attempts: 1,
      next_attempt_at: nextAttemptAt ?? null,
      created_at: deliveredAt,
      updated_at: deliveredAt,
    })
    await scope.insert('attempts', {
      delivery_id: id,
      number: 1,
      trigger: 'schedule',
      started_at: attemptedAt,
      duration_ms: 1,
      outcome: 'http_error',
    })
  })
  return id
}
