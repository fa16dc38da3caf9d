/** The page of a delivery, and the actions on it: retry, resend, attempt now, cancel. */
import { Refused } from '../../../errors.ts'
import { type Delivery, findDelivery } from '../../../records/deliveries.ts'
import { readableUrl, type Webhook } from '../../../records/webhooks.ts'
import { commandDelivery, type DeliveryCommand } from '../../../webhooks/webhook-changes.ts'
import { type Html, html } from '../../shared/html.ts'
import { parseRowView, type RowView } from '../expandable-row.ts'
import { commandOnce } from '../idempotent-form.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  get,
  isOwnerOrAdmin,
  type PageResult,
  post,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { card } from '../ui.ts'
import { deliveryCards, deliveryDetail } from './delivery-detail.ts'
import { deliveriesTable, deliveryPath, withAttempts } from './delivery-rows.ts'
import { loadWebhook, webhookCrumbs } from './webhook.ts'

const PATH = '/webhooks/:webhook/deliveries/:delivery'

export const deliveryRoutes: Route[] = [
  get(PATH, isOwnerOrAdmin, deliveryPage),
  post(`${PATH}/retry`, canManageWebhooks, (visit) => changeDelivery(visit, 'retry')),
  post(`${PATH}/resend`, canManageWebhooks, (visit) => changeDelivery(visit, 'resend')),
  post(`${PATH}/attempt`, canManageWebhooks, (visit) => changeDelivery(visit, 'attempt')),
  post(`${PATH}/cancel`, canManageWebhooks, (visit) => changeDelivery(visit, 'cancel')),
]

/** The delivery in the page's URL. Throws 404 if the webhook has no such delivery. */
async function loadDelivery({ scope, params, ctx }: Visit, webhook: Webhook): Promise<Delivery> {
  const delivery = await findDelivery(scope, params.delivery ?? '')
  return delivery?.webhookId === webhook.id ? delivery : ctx.throw(404)
}

/** With `?row=`, a page with a single row of the log: when a row opens or closes, or a button changes
 *  its delivery, htmx replaces the row by the one of this page. */
async function deliveryPage(visit: Visit): Promise<ConsolePage> {
  const webhook = await loadWebhook(visit)
  const delivery = await loadDelivery(visit, webhook)
  const view = parseRowView(visit.query.get('row'))
  return {
    title: delivery.eventType,
    lead: html`To <bdi class="mono">${readableUrl(webhook.url)}</bdi>`,
    crumbs: webhookCrumbs(webhook),
    body:
      view === 'alone'
        ? await deliveryCards(visit, webhook, delivery)
        : await rowOfLog(visit, webhook, delivery, view),
  }
}

async function rowOfLog(
  visit: Visit,
  webhook: Webhook,
  delivery: Delivery,
  view: RowView,
): Promise<Html> {
  const [row] = await withAttempts(visit, [delivery])
  const detail = view === 'open' ? await deliveryDetail(visit, webhook, delivery) : undefined
  return card('', row && deliveriesTable(visit, [{ ...row, webhook, view, detail }]))
}

const NOTICES: Record<DeliveryCommand, string> = {
  retry: 'Retrying now.',
  resend: 'Resending now. The delivery stays delivered whatever the response.',
  attempt: 'Retrying now.',
  cancel: 'Delivery cancelled. No more attempts will be made.',
}

async function changeDelivery(visit: Visit, command: DeliveryCommand): Promise<PageResult> {
  const webhook = await loadWebhook(visit)
  const delivery = await loadDelivery(visit, webhook)
  const view = parseRowView(visit.form.get('row'))
  // With JavaScript the row changes in place. Without it, the delivery's own page shows the result.
  const isInPlace = visit.ctx.get('HX-Request') !== '' && view !== 'alone'
  const path = deliveryPath(delivery)
  const to = isInPlace ? `${path}?row=${view}` : path
  try {
    await commandOnce(
      visit,
      async (scope) =>
        (await commandDelivery({ ...visit, scope }, delivery, command)) ?? visit.ctx.throw(404),
    )
  } catch (error) {
    // The delivery changed after the row was rendered. Render it again with the reason.
    if (error instanceof Refused) return redirect(to, error.message, 'bad')
    throw error
  }
  return redirect(to, NOTICES[command])
}
