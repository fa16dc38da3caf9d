export type Outcome =
  | 'success'
  | 'http_error'
  | 'timeout'
  | 'unreachable'
  /** The endpoint responded, but not with valid HTTP. */
  | 'invalid_response'
  | 'blocked'

/** Why an attempt is made. 'schedule': it is the first attempt of a delivery, or an automatic
 *  retry. The others: a person asked for this one attempt. */
export type Trigger = 'schedule' | 'retry' | 'resend' | 'test'

/** One HTTP request of a delivery, on its way through the delivery engine. Delivery ID and
 *  `scheduledAt` identify it: no two attempts of a delivery are scheduled at the same time. */
export interface Attempt {
  deliveryId: string
  /** Never changes for a delivery. */
  webhookId: string
  /** The account of the webhook. */
  accountId: string
  /** Expected attempt number, 1-based; the final number is assigned when the result is stored. */
  number: number
  /** Epoch milliseconds. */
  scheduledAt: number
  /** Set when a process has leased the attempt. */
  lease?: Lease
  /** Set when the attempt has ended. Stays unset if the delivery was cancelled, rescheduled or
   *  deleted before the request, which is then not sent. */
  result?: AttemptResult
}

/** An attempt in which `lease` or `result` is set. */
export type AttemptWith<Part extends 'lease' | 'result'> = Attempt & Required<Pick<Attempt, Part>>

/** The `retryCount` of a lease without a job of pg-boss: the leader can start an attempt as soon as
 *  it is scheduled, without the queue. */
export const NO_JOB = -1

/** Temporary ownership of an attempt by one process. */
export interface Lease {
  /** The ID that the job of this attempt has, or would have. */
  jobId: string
  /** pg-boss counts each lease of a job after the first as a retry. A lease with a lower count
   *  than its job is void. `NO_JOB`: the attempt has no job. */
  retryCount: number
}

/** A request and its outcome, or nothing sent because the webhook is disabled or deleted. */
type AttemptResult = {
  trigger: Trigger
  /** Null: the webhook does not ask for order. */
  orderingKey: string | null
  /** The event is a test event, whatever the trigger. Such events do not count for the health of
   *  the webhook. */
  isTest: boolean
  /** Epoch milliseconds. */
  endedAt: number
} & ({ sent: SendResult } | { skipped: 'webhook_disabled' | 'webhook_deleted' })

/** One request and its response. */
export interface SendResult {
  outcome: Outcome
  /** The HTTP status. Null: no response. */
  status: number | null
  /** Null: no response, or only its status line is valid. */
  responseHeaders: Record<string, string> | null
  /** The first 16 KiB. Null like the headers. */
  responseBody: string | null
  /** A sentence for the reader of the delivery log. Null: success. */
  error: string | null
  /** Epoch milliseconds. */
  startedAt: number
  durationMs: number
  /** The IP address of the connection. Null: there was none. */
  address: string | null
  /** They add up to the duration: the last phase that was reached lasts until the end of the
   *  attempt. Null: the attempt ended before it asked for a connection. */
  phases: Phases | null
}

/** Durations in milliseconds. Null: the attempt did not reach the phase, or reused an open
 *  connection. */
export interface Phases {
  dns: number | null
  connect: number | null
  tls: number | null
  /** Sending the request, and waiting for the first byte of the response. */
  first_byte: number | null
  body: number | null
}
