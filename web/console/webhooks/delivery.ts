/** The page of a delivery, and the actions on it: retry, resend, attempt now, cancel. */
import { Refused } from '../../../errors.ts'
import type { WriteScope } from '../../../records/database/scope.ts'
import { type Delivery, findDelivery } from '../../../records/deliveries.ts'
import {
  attemptNow,
  cancelDelivery,
  resendDelivery,
  retryDelivery,
} from '../../../records/delivery-commands.ts'
import type { Webhook } from '../../../records/webhooks.ts'
import { html } from '../../shared/html.ts'
import { parseRowView } from '../expandable-row.ts'
import {
  type ConsolePage,
  get,
  isAdmin,
  type PageResult,
  post,
  type Route,
  type Visit,
} from '../page.ts'
import { card } from '../ui.ts'
import { loadWebhook, mayManage, webhookCrumbs, webhookTarget } from './access.ts'
import { deliveryDetail } from './delivery-detail.ts'
import { deliveriesTable, deliveryPath, withAttempts } from './delivery-rows.ts'

const PATH = '/webhooks/:webhook/deliveries/:delivery'

export const deliveryRoutes: Route[] = [
  get(PATH, isAdmin, deliveryPage),
  post(`${PATH}/retry`, mayManage, (visit) => changeDelivery(visit, RETRY)),
  post(`${PATH}/resend`, mayManage, (visit) => changeDelivery(visit, RESEND)),
  post(`${PATH}/attempt`, mayManage, (visit) => changeDelivery(visit, ATTEMPT)),
  post(`${PATH}/cancel`, mayManage, (visit) => changeDelivery(visit, CANCEL)),
]

/** The delivery in the page's URL. Throws 404. */
async function loadDelivery({ scope, params, ctx }: Visit, webhook: Webhook): Promise<Delivery> {
  const delivery = await findDelivery(scope, params.delivery?.toLowerCase() ?? '')
  return delivery?.webhookId === webhook.id ? delivery : ctx.throw(404)
}

/** A page with a single row of the log. The delivery log fetches this page to replace a row that was opened, closed or changed. */
async function deliveryPage(visit: Visit): Promise<ConsolePage> {
  const webhook = await loadWebhook(visit)
  const delivery = await loadDelivery(visit, webhook)
  const view = parseRowView(visit.query.get('row'))
  const [row] = await withAttempts(visit, [delivery])
  const detail =
    view === 'closed' ? undefined : await deliveryDetail(visit, webhook, delivery, view)
  return {
    title: delivery.eventType,
    lead: html`To <bdi class="mono">${webhook.url}</bdi>`,
    crumbs: webhookCrumbs(webhook),
    body: card('', row && deliveriesTable(visit, webhook, [{ ...row, view, detail }])),
  }
}

interface DeliveryChange {
  change: (scope: WriteScope, id: string, now: Date) => Promise<Delivery | undefined>
  auditAction: string
  notice: string
}

const RETRY: DeliveryChange = {
  change: retryDelivery,
  auditAction: 'webhook.delivery_retried',
  notice: 'Retrying now.',
}
const RESEND: DeliveryChange = {
  change: resendDelivery,
  auditAction: 'webhook.delivery_resent',
  notice: 'Resending now. The delivery stays delivered whatever the response.',
}
const ATTEMPT: DeliveryChange = {
  change: attemptNow,
  auditAction: 'webhook.delivery_attempted',
  notice: 'Making the next attempt now.',
}
const CANCEL: DeliveryChange = {
  change: cancelDelivery,
  auditAction: 'webhook.delivery_cancelled',
  notice: 'Delivery cancelled. No more attempts will be made.',
}

async function changeDelivery(
  visit: Visit,
  { change, auditAction, notice }: DeliveryChange,
): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const { id, eventType } = await loadDelivery(visit, webhook)
  const view = parseRowView(visit.form.get('row'))
  // With JavaScript the row changes in place. Without it, the delivery's own page shows the result.
  const isInPlace = visit.ctx.get('HX-Request') !== '' && view !== 'alone'
  const to = `${deliveryPath({ webhookId: webhook.id, id })}${isInPlace ? `?row=${view}` : ''}`
  try {
    await visit.change(async (scope) => {
      if (!(await change(scope, id, visit.now))) visit.ctx.throw(404)
      await visit.audit(scope, {
        action: auditAction,
        target: webhookTarget(webhook),
        details: { delivery_id: id, event_type: eventType },
      })
    })
  } catch (error) {
    // The delivery changed after the row was rendered. Render it again with the reason.
    if (error instanceof Refused) return { to, notice: { kind: 'bad', text: error.message } }
    throw error
  }
  return { to, notice: { kind: 'ok', text: notice } }
}
