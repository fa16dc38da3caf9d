/** Reads that open pages repeat, as long as they are open. */
import { currentZone } from '../shared/zone.ts'
import type { Visit } from './page.ts'

/** The pause after a read is this many times as long as the read, so that all open pages together
 *  use less than a thirtieth of a core for it. */
const PAUSE_FACTOR = 30
/** A read can be slow once, for example while it waits for a lock. Pages do not show old figures for
 *  half an hour because of that. */
const MAX_PAUSE_MS = 60_000

interface SharedRead {
  result: Promise<unknown>
  /** A time of `performance.now()`. */
  endsAt: number
}

const reads = new Map<string, SharedRead>()

/** Whether the page reloads itself. Such a reload needs only the parts of the page that it replaces. */
export function isReload({ ctx }: Visit): boolean {
  return ctx.get('Muster-Poll') !== ''
}

/** A page that reloads itself gets the result of the last reload of any page, if that was a short
 *  while ago. A page that a user opens always reads, so that users see their own changes, and its
 *  result replaces an older one: otherwise the next reload would take these changes back. `key` must
 *  contain everything besides the account and the time zone on which the result depends, such as the
 *  permissions of the user. */
export function sharedRead<T>(visit: Visit, key: unknown, read: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  for (const [name, { endsAt }] of reads) if (endsAt <= startedAt) reads.delete(name)
  const name = JSON.stringify([visit.account.id, currentZone(), key])
  const shared = reads.get(name)
  if (isReload(visit) && shared) return shared.result as Promise<T>
  if (!isReload(visit) && !shared) return read()
  const started: SharedRead = { result: read(), endsAt: Number.POSITIVE_INFINITY }
  reads.set(name, started)
  started.result.then(
    () => {
      const endedAt = performance.now()
      started.endsAt = endedAt + Math.min(PAUSE_FACTOR * (endedAt - startedAt), MAX_PAUSE_MS)
    },
    () => {
      started.endsAt = Number.NEGATIVE_INFINITY
    },
  )
  return started.result as Promise<T>
}
