/** The request that caused an event. */
import { findCause } from '../../../records/event-search.ts'
import type { StoredEventRow } from '../../../records/events.ts'
import { html } from '../../shared/html.ts'
import { isOwner, type Visit } from '../page.ts'
import { statusLabel } from '../requests/request-row.ts'
import { copyableId, type Fact } from '../ui.ts'

/** Empty if no request caused the event. Only the Account Owner sees from which IP address. */
export async function causeFacts({ scope, user }: Visit, event: StoredEventRow): Promise<Fact[]> {
  const { requestId, ip, request } = await findCause(scope, event)
  if (requestId === null) return []
  // Only requests with an API key are in the log.
  const shown = request
    ? html`${statusLabel(request.status)}
        <a class="mono" href="/console/requests/${request.id}">
          ${request.method} ${request.path.replace(/\?.*/s, '')}
        </a>`
    : copyableId(requestId)
  return [
    ['Request', shown],
    isOwner(user) && ip !== null && ['IP address', html`<span class="mono">${ip}</span>`],
  ]
}
