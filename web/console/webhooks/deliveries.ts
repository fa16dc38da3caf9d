/** The deliveries of all webhooks, the failed ones first. */
import { listWebhooks } from '../../../records/webhooks.ts'
import type { Html } from '../../shared/html.ts'
import { formStatus } from '../form-fields.ts'
import { TROUBLED_WEBHOOKS_ID } from '../navigation.ts'
import {
  type ConsolePage,
  canManageWebhooks,
  getFromStandby,
  isOwnerOrAdmin,
  type Route,
  type Visit,
} from '../page.ts'
import { readOnlyNote } from '../read-only-note.ts'
import { sharedPage } from '../shared-reads.ts'
import { buttonLink, card, empty } from '../ui.ts'
import { deliveryList, findDeliveries } from './delivery-list.ts'
import { type Log, readLogQuery } from './log-query.ts'

export const deliveriesRoutes: Route[] = [
  getFromStandby('/deliveries', isOwnerOrAdmin, (visit) =>
    sharedPage(visit, () => deliveriesPage(visit)),
  ),
]

async function deliveriesPage(visit: Visit): Promise<ConsolePage> {
  const canManage = canManageWebhooks(visit.user)
  const webhooks = await listWebhooks(visit.scope)
  const page = {
    title: 'Deliveries',
    lead: 'The deliveries of all webhooks. Each delivery is one event for one webhook.',
  }
  if (webhooks.length === 0) return { ...page, body: card('', noWebhooks(canManage)) }
  const log: Log = {
    path: '/deliveries',
    webhooks,
    tabs: ['failed', 'retrying', 'pending', 'delivered', 'all'],
    namesWebhooks: true,
  }
  const query = readLogQuery(log, visit.query)
  return {
    ...page,
    listId: 'log',
    status: formStatus(query.errors),
    body: [
      !canManage && (await readOnlyNote(visit, 'webhooks')),
      await deliveryList(visit, log, query, {
        found: await findDeliveries(visit, query),
        alsoReloaded: `#${TROUBLED_WEBHOOKS_ID}:outerMorph`,
      }),
    ],
  }
}

const noWebhooks = (canManage: boolean): Html =>
  empty(
    'No webhooks',
    'Create a webhook, and each change of your records is sent to your server.',
    canManage && buttonLink('/webhooks/new', 'Create webhook', 'primary'),
  )
