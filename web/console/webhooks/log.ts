/** The page of a webhook: its health and its delivery log. */
import { hasSentMissedSince, listUnfinishedBulkJobs } from '../../../records/bulk-jobs.ts'
import type { WebhookHealth } from '../../../records/reports/webhook-health.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { formStatus } from '../form-fields.ts'
import { percentileDuration } from '../format.ts'
import { TROUBLED_WEBHOOKS_ID } from '../navigation.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  getFromStandby,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from '../page.ts'
import { withQuery } from '../query.ts'
import { readOnlyNote } from '../read-only-note.ts'
import { sharedPage } from '../shared-reads.ts'
import { buttonLink, card, stats, timeElement } from '../ui.ts'
import { jobProgress } from './bulk-jobs.ts'
import { deliveryList, findDeliveries } from './delivery-list.ts'
import { attemptResult } from './delivery-rows.ts'
import {
  attemptBars,
  HEALTH_ELEMENT_IDS,
  limitedCount,
  loadHealth,
  succeededShare,
} from './health.ts'
import { type LogQuery, logOfWebhook, readLogQuery } from './log-query.ts'
import { loadWebhook } from './webhook.ts'
import { webhookPage } from './webhook-page.ts'

export const webhookLogRoutes: Route[] = [
  getFromStandby('/webhooks/:webhook', isOwnerOrAdmin, (visit) =>
    sharedPage(visit, () => logPage(visit)),
  ),
]

const RELOADED_WITH_LOG = ['notices', TROUBLED_WEBHOOKS_ID, ...HEALTH_ELEMENT_IDS]
  .map((id) => `#${id}:outerMorph`)
  .join()

async function logPage(visit: Visit): Promise<ConsolePage> {
  const { user, now } = visit
  const webhook = await loadWebhook(visit)
  const canManage = canManageWebhooks(user)
  const log = logOfWebhook(webhook)
  const query = readLogQuery(log, visit.query)
  const [health, found] = await Promise.all([
    loadHealth(visit, webhook),
    findDeliveries(visit, query),
  ])
  const page = await webhookPage(visit, { webhook, health }, 'deliveries', [
    !canManage && (await readOnlyNote(visit, 'webhooks')),
    html`<div id="notices">
      ${await notices(visit, webhook)}
      ${healthStrip(webhook, health, now)}
    </div>`,
    await deliveryList(visit, log, query, {
      found,
      alsoReloaded: RELOADED_WITH_LOG,
      actions: canManage && webhook.enabled && retryLinks(webhook, query, health),
    }),
  ])
  return { ...page, status: formStatus(query.errors) }
}

/** Opens the retry forms with the event type of the log, and the one for failed deliveries also with
 *  its period. */
function retryLinks({ id }: Webhook, { input }: LogQuery, { undelivered }: WebhookHealth): Content {
  const { since, until, type } = input
  const { retrying, countedUpTo } = undelivered
  const waiting = limitedCount(retrying, countedUpTo)
  return [
    retrying > 0 &&
      buttonLink(withQuery(`/webhooks/${id}/retry-waiting`, { type }), `Retry ${waiting} waiting`),
    buttonLink(
      withQuery(`/webhooks/${id}/retry-failed`, { since, until, type }),
      'Retry failed deliveries',
    ),
  ]
}

/** The notices on the page of an enabled webhook: events that it may have missed while it was
 *  disabled, and its unfinished bulk jobs. */
async function notices({ scope, user, now }: Visit, webhook: Webhook): Promise<Content> {
  const { id, enabled, disabledAt } = webhook
  if (!enabled) return false
  const canManage = canManageWebhooks(user)
  const jobs = await listUnfinishedBulkJobs(scope, id)
  const mayHaveMissed =
    disabledAt !== null && canManage && !(await hasSentMissedSince(scope, id, disabledAt))
  return [
    mayHaveMissed &&
      html`<div class="note busy note-with-action">
        <span>
          Enabled again. It was disabled ${timeElement(disabledAt, now)} and may have missed events.
        </span>
        ${buttonLink(`/webhooks/${id}/send-missed`, 'Send missed events')}
      </div>`,
    jobs.map((job) => card('', jobProgress(job, { now, canManage, isLink: true }))),
  ]
}

function healthStrip({ id }: Webhook, health: WebhookHealth, now: Date): Html {
  const { lastDay, lastHour, lastAttempt, p95Ms, undelivered } = health
  const { retrying, pending, countedUpTo, oldestWaitingSince } = undelivered
  const oldest = html`oldest ${timeElement(oldestWaitingSince, now)}`
  return stats([
    {
      label: 'Attempts succeeded, 24 hours',
      value: succeededShare(lastDay),
      note: html`last hour ${succeededShare(lastHour)}`,
      chart: lastDay.succeeded + lastDay.failed > 0 && attemptBars(health),
    },
    {
      label: 'Last attempt',
      value: lastAttempt ? attemptResult(lastAttempt) : '–',
      note: lastAttempt && [
        timeElement(lastAttempt.at, now),
        p95Ms !== null && `, p95 duration ${percentileDuration(p95Ms)}`,
      ],
    },
    {
      label: 'Waiting',
      value: limitedCount(retrying + pending, countedUpTo),
      note: oldestWaitingSince === null ? 'pending or retrying' : oldest,
    },
    {
      label: 'Deliveries failed, 24 hours',
      value: limitedCount(undelivered.failed, countedUpTo),
      note:
        undelivered.failed > 0
          ? html`<a href="/console/webhooks/${id}?state=failed">Show</a>`
          : 'none',
    },
  ])
}
