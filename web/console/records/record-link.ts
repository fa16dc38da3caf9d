/** Links to records from the pages of requests, events and deliveries. */
import { StatusError } from '../../../errors.ts'
import { type Resource, resources } from '../../../generated/resources.ts'
import { type Html, html } from '../../shared/html.ts'
import { capital } from '../format.ts'
import type { Visit } from '../page.ts'
import { shortId } from '../ui.ts'
import { label, noun } from './labels.ts'
import { findRecord, loadReferences, recordTitle } from './references.ts'
import { canViewResource, type Item, resourcePath } from './resources.ts'

/** A record as events name it, for example `job_application`. */
export interface RecordReference {
  type: string
  id: string
}

export const resourceOfType = (type: string): Resource | undefined =>
  resources.find((resource) => resource.type === type)

/** Names the record, and links to it and to its events. No name if the record was deleted, or if the
 *  user may not view it. */
export async function recordLink(visit: Visit, reference: RecordReference): Promise<Html> {
  const { type, id } = reference
  const resource = resourceOfType(type)
  const kind = resource ? capital(noun(resource)) : label(type)
  const events = html`<a href="/console/events?id=${id}">All its events</a>`
  if (!resource || !canViewResource(visit.user, resource))
    return html`${kind} <code title="${id}">${shortId(id)}</code> · ${events}`
  const item = await findViewable(visit, resource, id)
  if (!item) return html`${kind} <code title="${id}">${shortId(id)}</code>, deleted · ${events}`
  const title = recordTitle(resource, item, await loadReferences(visit, [item]))
  return html`${kind} <a href="/console${resourcePath(resource, id)}">${title}</a> · ${events}`
}

/** Undefined also for an export or import of payments, if the user may not view payments. */
export async function findViewable(
  visit: Visit,
  resource: Resource,
  id: string,
): Promise<Item | undefined> {
  try {
    return await findRecord(visit, resource, id)
  } catch (error) {
    if (error instanceof StatusError && error.status === 403) return undefined
    throw error
  }
}
