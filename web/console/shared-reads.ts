/** Reads that open pages repeat, as long as they are open. */
import { currentZone } from '../shared/zone.ts'
import type { ConsolePage, Visit } from './page.ts'
import { readPosition } from './position.ts'

/** The pause after a read is this many times as long as the read, so that all open pages together
 *  use less than a thirtieth of a core for it. */
const PAUSE_FACTOR = 30
/** A read can be slow once, for example while it waits for a lock. Pages do not show old figures for
 *  half an hour because of that. */
const MAX_PAUSE_MS = 60_000
/** Shared pages reload every 3 to 15 seconds, so users do not notice that a reload is this old. */
const PAGE_PAUSE_MS = 1_000

interface SharedRead {
  accountId: string
  result: Promise<unknown>
  /** A time of `performance.now()`. */
  endsAt: number
}

const reads = new Map<string, SharedRead>()

/** Whether the page reloads itself. Such a reload needs only the parts of the page that it replaces. */
export function isReload({ ctx }: Pick<Visit, 'ctx'>): boolean {
  return ctx.get('Muster-Poll') !== ''
}

/** A page that reloads itself gets the result of the last reload of any page, if that was a short
 *  while ago. A page that a user opens always reads, so that users see their own changes, and its
 *  result replaces an older one: otherwise the next reload would take these changes back. `key` must
 *  contain everything besides the account and the time zone on which the result depends, such as the
 *  permissions of the user. */
export function sharedRead<T>(
  visit: Visit,
  key: unknown,
  read: () => Promise<T>,
  pauseAfter = (readMs: number): number => Math.min(PAUSE_FACTOR * readMs, MAX_PAUSE_MS),
): Promise<T> {
  const startedAt = performance.now()
  for (const [name, { endsAt }] of reads) if (endsAt <= startedAt) reads.delete(name)
  const accountId = visit.account.id
  const name = JSON.stringify([accountId, currentZone(), key])
  const shared = reads.get(name)
  if (isReload(visit) && shared) return shared.result as Promise<T>
  if (!isReload(visit) && !shared) return read()
  const started = { accountId, result: read(), endsAt: Number.POSITIVE_INFINITY }
  reads.set(name, started)
  started.result.then(
    () => {
      const endedAt = performance.now()
      started.endsAt = endedAt + pauseAfter(endedAt - startedAt)
    },
    () => {
      started.endsAt = Number.NEGATIVE_INFINITY
    },
  )
  return started.result as Promise<T>
}

/** A page that many users keep open. Reloads within a second share one result, if their users have the
 *  same permissions, and need the same changes of a standby. Only for content that does not depend on the user
 *  otherwise. */
export function sharedPage(visit: Visit, render: () => Promise<ConsolePage>): Promise<ConsolePage> {
  const { role, grants, permissions } = visit.user
  const key = [visit.ctx.url, role, grants, permissions, readPosition(visit.ctx)]
  return sharedRead(visit, key, render, () => PAGE_PAUSE_MS)
}

/** Call it after a change by a user of the account: the next reload of a page shows the change. */
export function forgetSharedReads(accountId: string): void {
  for (const [name, shared] of reads) if (shared.accountId === accountId) reads.delete(name)
}
