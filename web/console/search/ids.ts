/** Finds what an ID belongs to. Each look-up reads few rows, by an index. */
import { resources } from '../../../generated/resources.ts'
import { findAccountKey } from '../../../records/api-keys.ts'
import { findBulkJob } from '../../../records/bulk-jobs.ts'
import { type Delivery, findDelivery, listDeliveriesOfEvent } from '../../../records/deliveries.ts'
import { findEventRow } from '../../../records/events.ts'
import { findByRequestId, findRequest } from '../../../records/request-log.ts'
import { findUser } from '../../../records/users.ts'
import { findWebhook, findWebhookNames, webhookName } from '../../../records/webhooks.ts'
import { absoluteTime, capital } from '../format.ts'
import { isOwner, isOwnerOrAdmin, type Visit } from '../page.ts'
import { noun } from '../records/labels.ts'
import { findViewable, recordName } from '../records/references.ts'
import { canViewResource, resourcePath } from '../records/resources.ts'
import { requestTitle } from '../requests/request.ts'
import { BULK_KINDS } from '../webhooks/bulk-kinds.ts'
import { DELIVERY_STATES, deliveryPath } from '../webhooks/delivery-rows.ts'
import type { Match } from './match.ts'
import { keyMatch } from './names.ts'

type LookUp = (visit: Visit, id: string) => Promise<(Match | false | undefined)[]>

/** All that the user may see and that has this ID, or this request ID. */
export async function findById(visit: Visit, id: string): Promise<Match[]> {
  const lookUps: LookUp[] = [findRecords]
  if (isOwnerOrAdmin(visit.user))
    lookUps.push(findRequests, findDeliveries, findWebhooks, findKeys, findJobs)
  if (isOwner(visit.user)) lookUps.push(findPeople)
  const found = await Promise.all(lookUps.map((lookUp) => lookUp(visit, id)))
  return found.flat().filter((match) => match !== false && match !== undefined)
}

const findRecords: LookUp = (visit, id) =>
  Promise.all(
    resources
      .filter((resource) => canViewResource(visit.user, resource))
      .map(async (resource) => {
        const item = await findViewable(visit, resource, id)
        const kind = capital(noun(resource))
        return (
          item && { to: resourcePath(resource, id), title: recordName(resource, item) ?? id, kind }
        )
      }),
  )

const findRequests: LookUp = async ({ scope }, id) => {
  const request = (await findRequest(scope, id)) ?? (await findByRequestId(scope, id))
  if (!request) return []
  const title = `${request.status} ${requestTitle(request)}`
  return [
    {
      to: `/requests/${request.id}`,
      title,
      detail: absoluteTime(request.createdAt),
      kind: 'Request',
    },
  ]
}

const MAX_DELIVERIES = 8

/** The delivery with this ID, or the event with this ID and its deliveries. */
const findDeliveries: LookUp = async ({ scope }, id) => {
  const delivery = await findDelivery(scope, id)
  const event = delivery ? undefined : await findEventRow(scope, id)
  const ofEvent = event ? await listDeliveriesOfEvent(scope, id, MAX_DELIVERIES) : []
  const deliveries = delivery ? [delivery] : ofEvent
  const names = await findWebhookNames(
    scope,
    deliveries.map(({ webhookId }) => webhookId),
  )
  return [
    ...deliveries.map((one) => deliveryMatch(one, names.get(one.webhookId))),
    event && { to: `/events/${id}`, title: event.event_type, kind: 'Event' },
  ]
}

function deliveryMatch(delivery: Delivery, webhook = 'a former webhook'): Match {
  const detail = `${DELIVERY_STATES[delivery.state].label}, to ${webhook}`
  return { to: deliveryPath(delivery), title: delivery.eventType, detail, kind: 'Delivery' }
}

const findWebhooks: LookUp = async ({ scope }, id) => {
  const webhook = await findWebhook(scope, id)
  return [webhook && { to: `/webhooks/${id}`, title: webhookName(webhook), kind: 'Webhook' }]
}

const findKeys: LookUp = async ({ scope, user }, id) => {
  const key = await findAccountKey(scope, id)
  return [key && keyMatch(user, key)]
}

const findJobs: LookUp = async ({ scope }, id) => {
  const job = await findBulkJob(scope, id)
  return [
    job && { to: `/webhooks/jobs/${id}`, title: BULK_KINDS[job.kind].title, kind: 'Bulk job' },
  ]
}

const findPeople: LookUp = async ({ scope }, id) => {
  const person = await findUser(scope, id)
  return [person && { to: `/people/${id}`, title: person.fullName, kind: 'User' }]
}
