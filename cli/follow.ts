/** Follows the events of a remote service. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Muster } from '../client/src/client.ts'
import type { components } from '../generated/openapi.ts'

export type Event = components['schemas']['Event']

/** Uses a fifth of the default rate limit. */
const POLL_MS = 5_000
/** An event can become visible after later ones, so each poll looks back by this time. */
const OVERLAP_MS = 60_000

/** Yields each event of the account that is created from now on, until the signal aborts. All times
 *  are those of the service. */
export async function* followEvents(muster: Muster, signal: AbortSignal): AsyncGenerator<Event> {
  const query = { sort: ['-created_at' as const], 'page[size]': 1 }
  const { data: newestPage } = await muster.GET('/public/v1/events', { params: { query }, signal })
  let newest = Date.parse(newestPage.data[0]?.created_at ?? new Date(0).toISOString())
  /** The time of each event that the next poll can see again, by ID. */
  const seen = new Map<string, number>()
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const since = new Date(Math.max(0, newest - OVERLAP_MS)).toISOString()
    const query = { 'filter[created_after]': since }
    for await (const event of muster.records('/public/v1/events', query, { signal })) {
      if (seen.has(event.id)) continue
      const createdAt = Date.parse(event.created_at)
      seen.set(event.id, createdAt)
      if (isFirst && createdAt <= newest) continue
      newest = Math.max(newest, createdAt)
      yield event
    }
    for (const [id, createdAt] of seen) if (createdAt < newest - OVERLAP_MS) seen.delete(id)
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}
