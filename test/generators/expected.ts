/** The reports that the programs of the clients must print. */
import assert from 'node:assert/strict'
import type { Generator } from './generators.ts'
import { NEW_EVENT_TYPE, NEW_STATUS } from './service.ts'
import { screening_questions } from './typescript/report.ts'

export interface Report {
  /** The active and inactive participants, read from pages of one. */
  names: string[]
  /** The message of the 404. */
  not_found: string
  /** The errors of the 422 for an email that is taken. */
  invalid: Record<string, string[]>
  /** An amount above 2^31. */
  amount_minor: number
  event_types: string[]
  /** The screening questions of a new job, as the client read them. */
  questions: object[]
  /** The status that the proxy returns, as the client reads it, or the error of the client. */
  new_status: string | { error: string }
  /** The event type that the proxy returns for the oldest event, as the client reads it, or the
   *  error of the client. */
  new_event_type: string | { error: string }
  /** The message of the 429. */
  too_many_requests: string
  /** The headers of the 429, with the types that the client gives them. */
  headers: Record<string, string | number>
}

const NUMERIC_HEADERS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'Retry-After',
]

/** The report of a program that reads the delivery for a new participant. */
export interface DeliveryReport {
  event_type: string
  resource_type: string
  /** The number of values in `data`. */
  data: number
}

export function assertDelivery(report: DeliveryReport): void {
  assert.deepEqual(report, {
    event_type: 'participant.created',
    resource_type: 'participant',
    data: 0,
  })
}

/** Throws if the report of a client differs from what the service sent, or if the guide lacks the
 *  error of the client for a new value. */
export function assertReport(
  report: Report,
  { name, newStatus = NEW_STATUS, newEventType = NEW_EVENT_TYPE }: Generator,
  guide: string,
): void {
  const { headers, new_status, new_event_type, too_many_requests, ...others } = report
  assert.deepEqual(
    { ...others, event_types: new Set(report.event_types) },
    {
      names: ['Ada', 'Grace'],
      not_found: 'There is no such participant.',
      invalid: { email: ['is used by another participant.'] },
      amount_minor: 3_000_000_000,
      event_types: new Set(['participant.created', 'payment.created', 'job.created']),
      questions: screening_questions,
    },
  )
  assert.match(too_many_requests, /^Too many requests/)
  for (const header of NUMERIC_HEADERS) assert.match(String(headers[header]), /^\d+$/, header)
  assert.equal(Number(headers['X-RateLimit-Limit']), 60)
  assert.equal(Number(headers['X-RateLimit-Remaining']), 0)
  assert.match(String(headers.RateLimit), /^"default";r=0;t=\d+$/)
  assert.equal(headers['RateLimit-Policy'], '"default";q=60;w=60')

  assertNewValue('a new status', new_status, newStatus, { name, guide })
  assertNewValue('a new event type', new_event_type, newEventType, { name, guide })
}

/** `expected` is the value that the client must report, or a part of its error. */
function assertNewValue(
  what: string,
  actual: string | { error: string },
  expected: string | { error: string },
  { name, guide }: { name: string; guide: string },
): void {
  if (typeof expected === 'string') {
    assert.equal(actual, expected)
    return
  }
  assert(typeof actual === 'object', `${name} accepts ${what}: update the guide`)
  assert(actual.error.includes(expected.error), actual.error)
  assert(guide.includes(expected.error), `The guide lacks the error of ${name} for ${what}`)
}
