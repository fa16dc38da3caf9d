/** Makes attempts: load, sign, send, and hand the result to the store. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Agent } from 'undici'
import type { AttemptWith, SendResult } from '../../records/attempt.ts'
import {
  type AttemptRequest,
  type AttemptWebhook,
  loadRequests,
} from '../../records/attempt-requests.ts'
import type { Db } from '../../records/database/open.ts'
import { withLockedRows } from '../../records/database/transaction.ts'
import { TEST_EVENT } from '../../records/deliveries.ts'
import { inClientSpan, type Span, SpanStatusCode } from '../../runtime/tracing.ts'
import { type AttemptJobs, hasJob } from '../queue/attempt-jobs.ts'
import type { HeadersOpener } from '../transport/custom-headers.ts'
import { type SecretOpener, SecretUnreadable, type SigningKeys } from '../transport/secret.ts'
import { send } from '../transport/send.ts'
import { deliveryHeaders } from '../transport/sign.ts'
import { newChildTraceparent, traceparentOfDelivery } from '../transport/traceparent.ts'
import type { InFlight } from './in-flight.ts'
import type { Leader } from './leader.ts'
import type { PauseWatch } from './pause-watch.ts'
import type { ResultStore } from './store.ts'

export interface DeliverOptions {
  db: Db
  jobs: AttemptJobs
  inFlight: InFlight
  leader: Leader
  pause: PauseWatch
  store: ResultStore
  agent: Agent
  openSecret: SecretOpener
  openHeaders: HeadersOpener
  /** Throws `SecretUnreadable`. */
  openUrl(webhookId: string, sealed: string): string
  timeoutMs: number
  now: () => Date
  /** Reads the clock behind `now` again. */
  readClock: () => Promise<void>
  log: Logger
  onAttempt: AttemptListener
}

/** Is called when a request of this process has ended. */
export type AttemptListener = (attempt: AttemptWith<'result'>, sent: SendResult) => void

const RELOAD_DELAY_MS = 500
/** The queue leases attempts by its own clock. When an attempt is leased more than this before its
 *  time, one of the clocks has jumped. */
const MAX_EARLY_MS = 1_000
/** The attempts start after this long even if the clock is not read yet. Shorter than a lease. */
const MAX_CLOCK_READ_MS = 2_000

/** Makes the attempts and resolves when they have ended. Calls `onStarted` each time that requests
 *  have been loaded and started. Loads no more requests once `stopping` aborts. */
export async function deliver(
  options: DeliverOptions,
  attempts: AttemptWith<'lease'>[],
  onStarted: () => void,
  stopping: AbortSignal,
): Promise<void> {
  const running: Promise<void>[] = []
  let waiting = await readClockIfEarly(options, attempts, stopping)
  while (waiting.length > 0 && !stopping.aborted) {
    const { started, remaining, mustWait } = await startAttempts(options, waiting, onStarted)
    running.push(...started, release(options, mustWait))
    waiting = remaining
    if (waiting.length === 0) break
    await delay(RELOAD_DELAY_MS, undefined, { signal: stopping }).catch(() => undefined)
    if (!stopping.aborted) waiting = await keepLeased(options, waiting)
  }
  // After a stop, other processes make these attempts, or this one makes them after a restart.
  await release(options, waiting)
  await Promise.all(running)
}

/** While `now` is behind the clock of the queue, the next attempt of a delivery would be leased as
 *  soon as it is scheduled: a delivery could use up its attempts within seconds. Returns the
 *  attempts whose lease this process still has. */
async function readClockIfEarly(
  options: DeliverOptions,
  attempts: AttemptWith<'lease'>[],
  stopping: AbortSignal,
): Promise<AttemptWith<'lease'>[]> {
  const { now, readClock } = options
  const latest = now().getTime() + MAX_EARLY_MS
  if (!attempts.some(({ scheduledAt }) => scheduledAt > latest)) return attempts
  const limit = delay(MAX_CLOCK_READ_MS, undefined, { signal: stopping }).catch(() => undefined)
  await Promise.race([readClock(), limit])
  return stopping.aborted ? attempts : keepLeased(options, attempts)
}

interface StartedAttempts {
  started: Promise<void>[]
  /** To load again: a transaction locks the webhook, another attempt of the delivery is in flight,
   *  or loading failed. */
  remaining: AttemptWith<'lease'>[]
  /** To put back into the queue: all deliveries are paused, the account is suspended, this process
   *  cannot read the secrets, a slow endpoint has too many attempts in flight, or the host has no
   *  free slot. */
  mustWait: AttemptWith<'lease'>[]
}

/** Loads the requests and starts the attempts. On PostgreSQL this locks the webhooks until the
 *  requests have started: no request starts after somebody has disabled, deleted or suspended its
 *  webhook, or paused all deliveries. */
async function startAttempts(
  options: DeliverOptions,
  attempts: AttemptWith<'lease'>[],
  onStarted: () => void,
): Promise<StartedAttempts> {
  const { db, inFlight, pause, store, log } = options
  const batch: StartedAttempts = { started: [], remaining: attempts, mustWait: [] }
  const start = (requests: Map<string, AttemptRequest>): void => {
    batch.remaining = []
    for (const attempt of attempts) {
      const request = requests.get(attempt.deliveryId)
      // If the delivery no longer waits for this attempt, the store only completes the job, because
      // the attempt has no result.
      if (request?.nextAttemptAt !== attempt.scheduledAt) store.add(attempt)
      else if (!request.webhook || inFlight.isSending(attempt.deliveryId))
        batch.remaining.push(attempt)
      else if (request.webhook.paused) batch.mustWait.push(attempt)
      else if (!request.webhook.enabled) skip(options, attempt, request, request.webhook)
      else {
        const secrets = openUnlessSuspended(options, request.webhook)
        if (secrets && inFlight.askToStart(attempt, request.webhook.host))
          batch.started.push(makeAttempt(options, attempt, request, secrets))
        else batch.mustWait.push(attempt)
      }
    }
    if ([...requests.values()].some(({ webhook }) => webhook?.paused)) pause.onPaused()
    onStarted()
  }
  try {
    if (db.dialect === 'sqlite')
      start(await loadRequests({ dialect: db.dialect, sql: db.read }, attempts))
    else await withLockedRows(db, (source) => loadRequests(source, attempts), start)
  } catch (error) {
    // If `start` has run, only the end of the transaction failed: the requests continue.
    if (batch.remaining === attempts)
      log.warn({ err: error }, 'Deliveries could not be loaded: the worker tries again in 500 ms')
  }
  return batch
}

/** Renews the leases, and returns the attempts whose lease this process still has, or all attempts
 *  if the renewal fails. An attempt without a job is kept only while this process is the leader. */
async function keepLeased(
  { jobs, inFlight, leader }: DeliverOptions,
  attempts: AttemptWith<'lease'>[],
): Promise<AttemptWith<'lease'>[]> {
  try {
    const owned = await jobs.renew(attempts)
    const isKept = (attempt: AttemptWith<'lease'>): boolean =>
      owned.has(attempt.lease.jobId) && (hasJob(attempt) || leader.isLeader)
    for (const attempt of attempts) if (!isKept(attempt)) inFlight.remove(attempt)
    return attempts.filter(isKept)
  } catch {
    return attempts
  }
}

interface OpenedSecrets {
  url: string
  keys: SigningKeys
  /** The headers that users added. */
  customHeaders: Record<string, string>
}

/** Undefined: the account is suspended, or this process cannot read the secrets. Then no attempt is
 *  made, and the webhook is paused in this process. */
function openUnlessSuspended(
  options: DeliverOptions,
  webhook: AttemptWebhook,
): OpenedSecrets | undefined {
  const { suspended } = options.inFlight
  if (webhook.suspended) suspended.add(webhook.id)
  else suspended.remove(webhook.id)
  return webhook.suspended ? undefined : openSecrets(options, webhook)
}

/** Undefined: this process cannot read the secrets, and has paused the webhook. Another process may
 *  have the key. */
function openSecrets(
  { openSecret, openHeaders, openUrl, inFlight, log }: DeliverOptions,
  { id, url: readableUrl, sealedUrl, sealedSecret, sealedHeaders }: AttemptWebhook,
): OpenedSecrets | undefined {
  try {
    const keys = openSecret(id, sealedSecret)
    const customHeaders = openHeaders(id, sealedHeaders)
    const url = sealedUrl === null ? readableUrl : openUrl(id, sealedUrl)
    inFlight.unreadable.remove(id)
    return { url, keys, customHeaders }
  } catch (error) {
    if (!(error instanceof SecretUnreadable)) throw error
    if (inFlight.unreadable.add(id))
      log.error(
        { webhook: id },
        'Deliveries of a webhook are paused: its signing secret or its headers cannot be read. ' +
          'Restore SECRET_KEY, or rotate the signing secret and set the headers again.',
      )
    return undefined
  }
}

/** Puts attempts back into the queue. If that fails, their leases expire. */
async function release(
  { inFlight, jobs, log }: DeliverOptions,
  attempts: AttemptWith<'lease'>[],
): Promise<void> {
  for (const attempt of attempts) inFlight.remove(attempt)
  await jobs
    .release(attempts)
    .catch((error: unknown) => log.warn({ err: error }, 'Leases could not be released'))
}

/** Starts the request synchronously, while `startAttempts` has the webhook locked. */
async function makeAttempt(
  options: DeliverOptions,
  attempt: AttemptWith<'lease'>,
  request: AttemptRequest,
  { url, keys, customHeaders }: OpenedSecrets,
): Promise<void> {
  const { inFlight, store, now } = options
  const { deliveryId, eventId, eventType, orderingKey, trigger } = request
  inFlight.startSending(attempt)
  const startedAt = now()
  const ids = { id: deliveryId, eventId }
  const parent = traceparentOfDelivery(ids, request.traceparent)
  const ended = await inClientSpan('webhook attempt', parent, async (span, traceparent) => {
    const headers = {
      ...customHeaders,
      ...deliveryHeaders(keys, ids, request.body, startedAt),
      traceparent: traceparent ?? newChildTraceparent(parent),
    }
    const { agent, timeoutMs } = options
    const { accountId } = attempt
    const result = await send(agent, { accountId, url, headers, body: request.body, timeoutMs })
    if (span.isRecording()) describeSpan(span, attempt, result)
    return result
  })
  // `send` uses the clock of this machine, `now` the one that all processes share.
  const sent = { ...ended, startedAt: startedAt.getTime() }
  logResult(options.log, attempt, sent)
  const isTest = eventType === TEST_EVENT
  const result = { trigger, orderingKey, isTest, endedAt: now().getTime(), sent }
  options.onAttempt(Object.assign(attempt, { result }), sent)
  store.add(attempt)
}

/** Without the URL, which may contain secrets. */
function describeSpan(
  span: Span,
  { deliveryId, webhookId, number }: AttemptWith<'lease'>,
  { outcome, status }: Pick<SendResult, 'outcome' | 'status'>,
): void {
  span.setAttributes({
    'http.request.method': 'POST',
    'http.response.status_code': status ?? undefined,
    'muster.delivery.id': deliveryId,
    'muster.webhook.id': webhookId,
    'muster.attempt.number': number,
    'muster.attempt.outcome': outcome,
  })
  if (outcome !== 'success') span.setStatus({ code: SpanStatusCode.ERROR, message: outcome })
}

function skip(
  { store, now }: DeliverOptions,
  attempt: AttemptWith<'lease'>,
  { trigger, orderingKey, eventType }: AttemptRequest,
  { deleted }: AttemptWebhook,
): void {
  const skipped = deleted ? 'webhook_deleted' : 'webhook_disabled'
  const isTest = eventType === TEST_EVENT
  attempt.result = { trigger, orderingKey, isTest, endedAt: now().getTime(), skipped }
  store.add(attempt)
}

function logResult(log: Logger, attempt: AttemptWith<'lease'>, result: SendResult): void {
  const fields = {
    delivery: attempt.deliveryId,
    webhook: attempt.webhookId,
    attempt: attempt.number,
    outcome: result.outcome,
    status: result.status,
    duration_ms: result.durationMs,
  }
  if (result.outcome === 'success') log.debug(fields, 'Attempt succeeded')
  else log.info({ ...fields, error: result.error }, 'Attempt failed')
}
