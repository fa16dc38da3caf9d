/** Links to records from the pages of requests, events, deliveries and changes. */
import { type Resource, resources } from '../../../generated/resources.ts'
import { type Html, html } from '../../shared/html.ts'
import { capital } from '../format.ts'
import type { Visit } from '../page.ts'
import { shortId } from '../ui.ts'
import { label, noun } from './labels.ts'
import { findRecords, loadReferences, recordTitle } from './references.ts'
import { canViewResource, recordLink } from './resources.ts'

/** A record as events name it, for example `job_application`. */
export interface RecordReference {
  type: string
  id: string
}

export const resourceOfType = (type: string): Resource | undefined =>
  resources.find((resource) => resource.type === type)

/** Links with the current titles of records, by ID. */
export type RecordLinks = Map<string, Html>

/** Links to those of the records that still exist and that the user may view. */
export async function loadRecordLinks(
  visit: Visit,
  references: RecordReference[],
): Promise<RecordLinks> {
  const byType = Map.groupBy(references, ({ type }) => type)
  const links = await Promise.all(
    [...byType].map(async ([type, some]): Promise<[string, Html][]> => {
      const resource = resourceOfType(type)
      if (!resource || !canViewResource(visit.user, resource)) return []
      const items = await findRecords(visit, resource, new Set(some.map(({ id }) => id)))
      const known = await loadReferences(visit, items)
      return items.map((item) => [
        item.id,
        recordLink(resource, item.id, recordTitle(resource, item, known)),
      ])
    }),
  )
  return new Map(links.flat())
}

/** For example `Job application`. */
export function kindOf(type: string): string {
  const resource = resourceOfType(type)
  return resource ? capital(noun(resource)) : label(type)
}

/** Names the record, and links to it and to its events. No name if the record was deleted, or if the
 *  user may not view it. */
export async function recordFact(visit: Visit, reference: RecordReference): Promise<Html> {
  const { type, id } = reference
  const resource = resourceOfType(type)
  const link = (await loadRecordLinks(visit, [reference])).get(id)
  const isDeleted = !link && resource && canViewResource(visit.user, resource)
  const name = link ?? html`<code title="${id}">${shortId(id)}</code>`
  return html`${kindOf(type)} ${name}${isDeleted && ', deleted'} ·
    <a href="/console/events?id=${id}">All its events</a>`
}
