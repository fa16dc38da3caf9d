import type { components } from '../generated/openapi.ts'
import type { Outcome, Phases, SendResult, Trigger } from './attempt.ts'
import type { Scope } from './database/scope.ts'
import { toTimestamp } from './list.ts'

export interface RecordedAttempt extends SendResult {
  deliveryId: string
  /** 1-based. */
  number: number
  trigger: Trigger
}

interface AttemptRow {
  delivery_id: string
  number: number
  trigger: Trigger
  started_at: number
  duration_ms: number
  outcome: Outcome
  status: number | null
  response_headers: string | null
  response_body: string | null
  error: string | null
  address: string | null
  phases: string | null
}

function attemptFromRow(row: AttemptRow): RecordedAttempt {
  return {
    deliveryId: row.delivery_id,
    number: row.number,
    trigger: row.trigger,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    responseHeaders:
      row.response_headers === null
        ? null
        : (JSON.parse(row.response_headers) as Record<string, string>),
    responseBody: row.response_body,
    error: row.error,
    address: row.address,
    phases: row.phases === null ? null : (JSON.parse(row.phases) as Phases),
  }
}

/** An attempt as the public API shows it. */
export function toPublicAttempt(attempt: RecordedAttempt): components['schemas']['Attempt'] {
  return {
    number: attempt.number,
    trigger: attempt.trigger,
    started_at: toTimestamp(attempt.startedAt),
    duration_ms: attempt.durationMs,
    outcome: attempt.outcome,
    status: attempt.status,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody,
    error: attempt.error,
    ip_address: attempt.address,
  }
}

/** Oldest first. */
export async function listAttempts(scope: Scope, deliveryId: string): Promise<RecordedAttempt[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .where({ delivery_id: deliveryId })
    .orderBy('number')
  return rows.map(attemptFromRow)
}

/** The last `limit` attempts, newest first. Manual retries are unlimited, so a delivery may have
 *  many attempts. */
export async function listLastAttempts(
  scope: Scope,
  deliveryId: string,
  limit: number,
): Promise<RecordedAttempt[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .where({ delivery_id: deliveryId })
    .orderBy('number', 'desc')
    .limit(limit)
  return rows.map(attemptFromRow)
}

export type AttemptSummary = Pick<
  RecordedAttempt,
  'deliveryId' | 'number' | 'trigger' | 'startedAt' | 'durationMs' | 'outcome' | 'status' | 'error'
>

/** The last `limit` attempts of each delivery, sorted by delivery and number. */
export async function listAttemptSummaries(
  scope: Scope,
  deliveryIds: string[],
  limit: number,
): Promise<AttemptSummary[]> {
  const rows: AttemptRow[] = await scope
    .rows('attempts')
    .join('deliveries', (join) =>
      join
        .on('deliveries.account_id', 'attempts.account_id')
        .on('deliveries.id', 'attempts.delivery_id'),
    )
    .whereIn('attempts.delivery_id', deliveryIds)
    .whereRaw('attempts.number > deliveries.attempts - ?', [limit])
    .orderBy(['attempts.delivery_id', 'attempts.number'])
    .select(
      [
        'delivery_id',
        'number',
        'trigger',
        'started_at',
        'duration_ms',
        'outcome',
        'status',
        'error',
      ].map((column) => `attempts.${column}`),
    )
  return rows.map((row) => ({
    deliveryId: row.delivery_id,
    number: row.number,
    trigger: row.trigger,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
  }))
}
