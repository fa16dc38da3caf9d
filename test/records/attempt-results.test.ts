/** The rule for results that count stands twice: in the SQL that stores successes, and in the code
 *  that stores all others. */
import { describe, expect, inject, test } from 'vitest'
import type { AttemptWith } from '../../records/attempt.ts'
import {
  type DeliveryProgress,
  storeResults,
  storeSuccesses,
} from '../../records/attempt-results.ts'
import type { NamedStatement } from '../../records/database/inserts.ts'
import type { Sql } from '../../records/database/statements.ts'
import { transaction } from '../../records/database/transaction.ts'
import { newTenant, sharedInstallation } from '../webhooks/harness.ts'

const installation = sharedInstallation()

interface Row {
  what: string
  delivery: { attempts: number; next_attempt_at: number | null }
  attempt: { number: number; scheduledAt: number }
  counts: boolean
}

const TABLE: Row[] = [
  {
    what: 'of the scheduled attempt',
    delivery: { attempts: 0, next_attempt_at: 100 },
    attempt: { number: 1, scheduledAt: 100 },
    counts: true,
  },
  {
    what: 'of the scheduled attempt, whose number is used meanwhile',
    delivery: { attempts: 3, next_attempt_at: 100 },
    attempt: { number: 2, scheduledAt: 100 },
    counts: true,
  },
  {
    what: 'of an attempt that was cancelled in flight',
    delivery: { attempts: 1, next_attempt_at: null },
    attempt: { number: 2, scheduledAt: 100 },
    counts: true,
  },
  {
    what: 'of an attempt in flight while another was scheduled',
    delivery: { attempts: 1, next_attempt_at: 200 },
    attempt: { number: 2, scheduledAt: 100 },
    counts: true,
  },
  {
    what: 'that was stored before',
    delivery: { attempts: 1, next_attempt_at: null },
    attempt: { number: 1, scheduledAt: 100 },
    counts: false,
  },
  {
    what: 'that was stored before, while a retry is scheduled',
    delivery: { attempts: 1, next_attempt_at: 200 },
    attempt: { number: 1, scheduledAt: 100 },
    counts: false,
  },
  {
    what: 'of an attempt that was cancelled in flight, before an attempt that has no result',
    delivery: { attempts: 0, next_attempt_at: null },
    attempt: { number: 2, scheduledAt: 100 },
    counts: false,
  },
]

const SENT = {
  status: 200,
  responseHeaders: null,
  responseBody: null,
  error: null,
  startedAt: 100,
  durationMs: 1,
  address: null,
  phases: null,
}
const RESULTS = {
  success: { sent: { ...SENT, outcome: 'success' } },
  failure: { sent: { ...SENT, outcome: 'http_error' } },
  skip: { skipped: 'webhook_disabled' },
} as const
const AFTER_FAILURE: DeliveryProgress = {
  state: 'failed',
  failureReason: null,
  nextAttemptAt: null,
  nextTrigger: null,
}

describe.each(Object.entries(RESULTS))('a %s', (kind, outcome) => {
  test.each(TABLE)('$what counts: $counts', async ({ delivery, attempt, counts }) => {
    const { db } = installation
    const tenant = await newTenant(installation)
    const webhookId = await tenant.subscribe('http://127.0.0.1:1')
    const { id } = await tenant.emitOne()
    await db.write('deliveries').where({ id }).update(delivery)
    const ended: AttemptWith<'result'> = {
      ...{ ...attempt, deliveryId: id, webhookId, accountId: tenant.accountId },
      result: { trigger: 'schedule', orderingKey: null, isTest: false, endedAt: 101, ...outcome },
    }
    const stored = await transaction(db, (trx) => storeResults(trx, [ended], () => AFTER_FAILURE))
    expect(stored).toHaveLength(counts ? 1 : 0)
    const { state, next_attempt_at, attempts } = await db.read('deliveries').where({ id }).first()
    const isCounted = counts && kind !== 'skip'
    expect({ state, next_attempt_at, attempts }).toEqual({
      state: counts ? (kind === 'success' ? 'delivered' : 'failed') : 'pending',
      next_attempt_at: counts ? null : delivery.next_attempt_at,
      attempts: delivery.attempts + (isCounted ? 1 : 0),
    })
    const numbers = await db.read('attempts').where({ delivery_id: id }).pluck('number')
    expect(numbers).toEqual(isCounted ? [delivery.attempts + 1] : [])
  })
})

test.runIf(inject('database') === 'postgres')(
  'finds the deliveries by index, also with a plan from when the table was small',
  async () => {
    const texts: string[] = []
    const direct = async ({ text }: NamedStatement) => {
      texts.push(text)
      return { rows: [] }
    }
    await storeSuccesses({ dialect: 'postgres', sql: Object.assign({ direct }) as Sql }, [])
    const { rows } = await installation.db.write.raw(`explain (generic_plan) ${texts[0]}`)
    expect(JSON.stringify(rows)).toMatch(/Index Cond: \([^"]*\bid = ANY/)
  },
)
