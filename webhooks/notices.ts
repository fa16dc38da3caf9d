/** Notices: the operational events `muster.*`. They tell an account about its webhooks, jobs and
 *  quotas, and are delivered like other events, but not stored: `GET /events` has none. */
import type { OperationalType } from '../generated/asyncapi.ts'
import { operationalTypes } from '../generated/events.ts'
import type { BulkJob } from '../records/bulk-jobs.ts'
import type { Db } from '../records/database/open.ts'
import { accountTransaction, readScope, type WriteScope } from '../records/database/scope.ts'
import { insertDeliveries } from '../records/deliveries.ts'
import { newId } from '../records/ids.ts'
import {
  holdNotices,
  listDueChannels,
  listNotifiedAccounts,
  lockNotifiedQuotas,
  storeDigestAt,
  storeNotifiedQuotas,
  storeNotifiedState,
  takeHeldNotices,
} from '../records/notices.ts'
import { countUse, findQuotas, type QuotaName, type Quotas } from '../records/quotas.ts'
import { countNoun } from '../records/references.ts'
import {
  type ChangedState,
  type HealthState,
  listChangedStates,
} from '../records/reports/webhook-health.ts'
import { listSubscriptions } from '../records/subscriptions.ts'
import { findWebhookNames, lockWebhook, shareableName } from '../records/webhooks.ts'
import { assertPayload, newDelivery } from './emit.ts'
import { slackBody } from './slack.ts'

export interface Notice {
  type: OperationalType
  /** The ID of the webhook, the job or the account. */
  resourceId: string
  /** A sentence. */
  text: string
}

/** Schedules a delivery to each enabled webhook that is subscribed to the type, but none to the
 *  webhook that the notice is about. A Slack channel gets the notice with its next message. */
export async function notify(scope: WriteScope, notice: Notice, now: Date): Promise<void> {
  const { type, resourceId, text } = notice
  const webhooks = await listSubscriptions(scope.sql, scope.accountId)
  const resource = { type: operationalTypes[type].resourceType, id: resourceId }
  const payload = { id: newId(), event_type: type, resource, data: { text } }
  assertPayload(payload)
  const subscribed = webhooks.filter(
    ({ id, eventTypes }) => eventTypes.includes(type) && id !== resourceId,
  )
  const [channels, others] = [
    subscribed.filter(({ format }) => format === 'slack'),
    subscribed.filter(({ format }) => format === 'event'),
  ]
  await holdNotices(
    scope,
    channels.map(({ id }) => ({ webhookId: id, type, resourceId, text })),
  )
  const deliveries = others.map((webhook) => ({ ...newDelivery(webhook, payload), eventId: null }))
  await insertDeliveries(scope, deliveries, now)
}

/** Schedules one message for each Slack channel with held notices: the first at once, the next ones an
 *  hour after the previous one. `baseUrl`: of the console. */
export async function sendDigests(
  db: Db,
  baseUrl: string,
  now: Date,
  stopping: AbortSignal,
): Promise<void> {
  for (const { accountId, webhookId } of await listDueChannels(db, now)) {
    if (stopping.aborted) return
    await accountTransaction(db, accountId, async (scope) => {
      const webhook = await lockWebhook(scope, webhookId)
      // Another node may have sent a message meanwhile.
      if (!(await storeDigestAt(scope, webhookId, now))) return
      const notices = await takeHeldNotices(scope, webhookId)
      const [first] = notices
      // The notices of a disabled channel are dropped.
      if (!webhook?.enabled || !first) return
      const body = slackBody(
        notices.map(({ text, ...notice }) => ({ text, url: `${baseUrl}${pathOf(notice)}` })),
      )
      const delivery = { id: newId(), webhookId, eventId: null, eventType: first.type, body }
      await insertDeliveries(scope, [{ ...delivery, trigger: 'schedule' }], now)
    })
  }
}

/** The page of the console about a notice. */
function pathOf({ type, resourceId }: Omit<Notice, 'text'>): string {
  const paths = {
    webhook: `/webhooks/${resourceId}`,
    bulk_job: `/webhooks/jobs/${resourceId}`,
    import: `/records/imports/${resourceId}`,
    account: '/settings',
  }
  return `/console${paths[operationalTypes[type].resourceType as keyof typeof paths]}`
}

/** Tells the changes of the health of webhooks. The state is stored with the notice, so each change
 *  is told once, whatever dies. */
export async function notifyOfWebhooks(db: Db, now: Date, stopping: AbortSignal): Promise<void> {
  for (const change of await listChangedStates(db, now)) {
    if (stopping.aborted) return
    const notice = noticeOf(change)
    await accountTransaction(db, change.accountId, async (scope) => {
      // Another node may have told it meanwhile.
      const isStored = await storeNotifiedState(scope, change, notice ? now : undefined)
      if (isStored && notice) await notify(scope, notice, now)
    })
  }
}

const TYPES: Partial<Record<HealthState, OperationalType>> = {
  failing: 'muster.webhook_failing',
  degraded: 'muster.webhook_degraded',
  disabled: 'muster.webhook_disabled',
  healthy: 'muster.webhook_recovered',
}

/** Undefined: the first state of a webhook, unless it has trouble, or a webhook gets traffic. */
function noticeOf(change: ChangedState): Notice | undefined {
  const { id, state, before } = change
  const isTold = before === null ? state === 'failing' || state === 'degraded' : true
  const isRecovery = state === 'healthy' && before !== 'no_traffic'
  const type = TYPES[state]
  if (!type || !isTold || (state === 'healthy' && !isRecovery)) return undefined
  return {
    type,
    resourceId: id,
    text: `The webhook “${shareableName(change)}” ${stateText(change)}`,
  }
}

function stateText({ state, failures, lastHour, isDisabledByService }: ChangedState): string {
  const { succeeded, failed } = lastHour
  if (state === 'failing') return `is failing: ${countNoun(failures, 'attempt')} in a row failed.`
  if (state === 'degraded')
    return `is degraded: ${failed} of ${countNoun(succeeded + failed, 'attempt')} failed in the last hour.`
  if (state === 'healthy') return 'has recovered.'
  return isDisabledByService
    ? 'was disabled automatically: no attempt had succeeded for days.'
    : 'was disabled by a user.'
}

const JOBS: Record<BulkJob['kind'], string> = {
  send_missed: 'The job that sends missed events',
  retry_failed: 'The retry of failed deliveries',
  retry_waiting: 'The retry of waiting deliveries',
}

/** Tells the end of a bulk job, in its transaction. */
export async function notifyOfBulkJob(
  scope: WriteScope,
  { id, kind, webhookId }: BulkJob,
  end: { done: number } | 'webhook_deleted',
  now: Date,
): Promise<void> {
  const names = await findWebhookNames(scope, webhookId === null ? [] : [webhookId], shareableName)
  const subject = `${JOBS[kind]} of ${webhookId === null ? 'all webhooks' : `“${names.get(webhookId)}”`}`
  const text =
    end === 'webhook_deleted'
      ? `${subject} was cancelled, because the webhook was deleted.`
      : `${subject} has ended: it scheduled ${end.done === 1 ? '1 delivery' : `${end.done} deliveries`}.`
  await notify(scope, { type: 'muster.bulk_job_ended', resourceId: id, text }, now)
}

/** The quotas whose use is told. Those of unfinished jobs free themselves. */
const QUOTAS = {
  records: 'records',
  events_per_day: 'events of today (UTC)',
  webhooks: 'webhooks',
  users: 'users',
  keys_per_user: 'API keys of a user',
  export_mib: 'MiB of files of exports and imports',
} satisfies Partial<Record<QuotaName, string>>
const QUOTA_NAMES = Object.keys(QUOTAS) as (keyof typeof QUOTAS)[]
const TOLD_SHARE = 0.8
/** Below this share, the use is told again when it reaches `TOLD_SHARE`. */
const FORGOTTEN_SHARE = 0.7

/** Tells accounts with operational events which of their quotas are nearly used up. */
export async function notifyOfQuotas(
  db: Db,
  defaults: Quotas,
  now: Date,
  stopping: AbortSignal,
): Promise<void> {
  for (const accountId of await listNotifiedAccounts(db)) {
    if (stopping.aborted) return
    const scope = readScope(db, accountId)
    const [use, limits] = await Promise.all([countUse(scope, now), findQuotas(scope, defaults)])
    const above = (share: number) =>
      QUOTA_NAMES.filter((name) => use[name] > 0 && use[name] >= share * limits[name])
    const [reached, kept] = [above(TOLD_SHARE), above(FORGOTTEN_SHARE)]
    await accountTransaction(db, accountId, async (write) => {
      const before = await lockNotifiedQuotas(write)
      const told = QUOTA_NAMES.filter(
        (name) => reached.includes(name) || (kept.includes(name) && before.includes(name)),
      )
      if (told.join() === before.join()) return
      await storeNotifiedQuotas(write, told)
      for (const name of told.filter((each) => !before.includes(each)))
        await notify(write, quotaNotice(accountId, name, use[name], limits[name]), now)
    })
  }
}

function quotaNotice(
  accountId: string,
  name: keyof typeof QUOTAS,
  use: number,
  limit: number,
): Notice {
  const share = limit === 0 ? 100 : Math.floor((use / limit) * 100)
  const text = `The account uses ${share} % of a quota: ${use} of ${limit} ${QUOTAS[name]}.`
  return { type: 'muster.quota_reached', resourceId: accountId, text }
}
