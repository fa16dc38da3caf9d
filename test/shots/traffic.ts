/** A day of sample requests, and of deliveries in the tables. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { type OperationId, operations } from '../../generated/operations.ts'
import { type CountedAttempt, countAttempts } from '../../records/attempt-counts.ts'
import type { Db } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import type { LoggedRequest } from '../../records/request-log.ts'

const MINUTE = 60_000
const MINUTES_OF_DAY = 24 * 60

/** Spreads copies of the deliveries over the last day, the fewest of them around 12 hours ago. */
export async function insertDeliveryHistory(db: Db, now: number): Promise<void> {
  const deliveries: { id: string }[] = await db.read('deliveries').orderBy('id')
  const attempts: { delivery_id: string }[] = await db.read('attempts')
  let minute = MINUTES_OF_DAY
  while (minute > 30) {
    const original = deliveries[(minute * 7) % deliveries.length]
    const at = now - minute * MINUTE
    const id = uuidv7({ msecs: at })
    await db.write('deliveries').insert({ ...original, id, created_at: at, updated_at: at })
    for (const attempt of attempts.filter(({ delivery_id }) => delivery_id === original?.id))
      await db.write('attempts').insert({ ...attempt, delivery_id: id, started_at: at })
    minute -= 4 + Math.round(20 * Math.sin((minute / MINUTES_OF_DAY) * Math.PI) ** 2)
  }
}

/** Counts all attempts again, with those of the history. */
export async function recountAttempts(db: Db): Promise<void> {
  const rows: (Pick<CountedAttempt, 'outcome' | 'status'> & {
    account_id: string
    webhook_id: string
    started_at: number
    duration_ms: number
  })[] = await db
    .read('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .orderBy('started_at')
    .select('attempts.account_id', 'webhook_id', 'started_at', 'duration_ms', 'outcome', 'status')
  await transaction(db, async (trx) => {
    for (const table of ['webhook_health', 'attempt_counts']) await trx.sql(table).delete()
    await countAttempts(
      trx,
      rows.map(({ account_id, webhook_id, started_at, duration_ms, outcome, status }) => ({
        accountId: account_id,
        webhookId: webhook_id,
        endedAt: started_at + duration_ms,
        durationMs: duration_ms,
        outcome,
        status,
      })),
    )
  })
}

export interface Traffic {
  accountId: string
  /** The IDs of API keys. The third one belongs to the second user, the others to the first. */
  keys: string[]
  /** The IDs of users. */
  users: string[]
  /** Epoch milliseconds. */
  now: number
}

/** Requests of the last day, most of them around 6 and 18 hours ago. Many of those from 33 to 26
 *  minutes ago fail. */
export function* dayOfRequests({ accountId, keys, users, now }: Traffic): Generator<LoggedRequest> {
  const operationIds = (Object.keys(operations) as OperationId[]).filter((id) =>
    ['get', 'post'].includes(operations[id].method),
  )
  let seed = 7
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  for (let minute = MINUTES_OF_DAY; minute > 0; minute--) {
    const load = 2 + 3 * Math.sin((minute / MINUTES_OF_DAY) * 2 * Math.PI) ** 2
    const isOutage = minute > 25 && minute < 34
    for (let index = 0; index < load + random() * 3; index++) {
      const operationId = operationIds[
        Math.floor(random() ** 2 * operationIds.length)
      ] as OperationId
      const { method, path, success } = operations[operationId]
      const status = statusFor(random(), isOutage, success)
      const keyIndex = Math.floor(random() * keys.length)
      const isSecondUser = keyIndex === 2
      yield {
        id: randomUUID(),
        accountId,
        userId: users[isSecondUser ? 1 : 0] ?? '',
        apiKeyId: keys[keyIndex] ?? '',
        requestId: randomUUID(),
        operationId,
        method: method.toUpperCase(),
        path: path.replace(/\{.*?\}/g, () => randomUUID()),
        status,
        durationMs: Math.round((3 + random() ** 4 * (isOutage ? 900 : 120)) * 100) / 100,
        ip: isSecondUser ? '2001:db8::7' : '203.0.113.40',
        requestBody:
          method === 'post'
            ? '{"full_name":"Ada Lovelace","email":"ada@example.com","tags":["vip"]}'
            : null,
        responseBody:
          status < 300
            ? '{"id":"0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11","full_name":"Ada Lovelace","status":"active"}'
            : (ERROR_BODIES[status] ?? null),
        requestHeaders: '[["Host","api.example.com"],["Authorization","…"]]',
        responseHeaders: '[["content-type","application/json; charset=utf-8"]]',
        omittedBytes: 0,
        at: now - minute * MINUTE + Math.floor(random() * MINUTE),
      }
    }
  }
}

const ERROR_BODIES: Record<number, string> = {
  404: '{"message":"There is no such record."}',
  422: '{"message":"The input is invalid.","errors":{"email":["must be an email address."]}}',
  429: '{"message":"Too many requests. Try again in 12 seconds."}',
  503: '{"message":"The service is unavailable at the moment."}',
}

/** `chance` is from 0 to 1. */
function statusFor(chance: number, isOutage: boolean, success: number): number {
  if (isOutage && chance < 0.4) return 503
  if (chance < 0.03) return 422
  if (chance < 0.05) return 404
  if (chance < 0.055) return 429
  return success
}
