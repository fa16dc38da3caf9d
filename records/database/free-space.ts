/** Returns the space of deleted rows to the file system: SQLite moves pages from the end of its
 *  file to free ones, and cuts the end off. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from './open.ts'
import { select } from './statements.ts'

/** Pages that one step returns: 1 MiB with SQLite's default page size. A step blocks other writers
 *  for some milliseconds. */
const STEP_PAGES = 256
/** Between two steps, so that other writers get their turn. */
const STEP_PAUSE_MS = 50
/** This share of the pages stays free for new rows. Otherwise the file would shrink and grow all
 *  the time. */
const FREE_SHARE = 0.1

interface Pages {
  pages: number
  free: number
}

async function readPages({ read }: Pick<Db, 'read'>): Promise<Pages> {
  const [row] = await select<Pages>(
    read,
    `select page_count as pages, freelist_count as free
     from pragma_page_count(), pragma_freelist_count()`,
    [],
  )
  if (row === undefined) throw new Error('The pragmas returned no row')
  return row
}

/** Returns free pages in small steps, until few are left or `signal` aborts. PostgreSQL reuses them
 *  itself. */
export async function returnFreeSpace(db: Db, signal: AbortSignal): Promise<void> {
  if (db.dialect === 'postgres') return
  const before = await readPages(db)
  let current = before
  while (!signal.aborted && current.free - STEP_PAGES > current.pages * FREE_SHARE) {
    await db.write.raw(`pragma incremental_vacuum(${STEP_PAGES})`)
    const next = await readPages(db)
    if (next.free >= current.free) break
    current = next
    await delay(STEP_PAUSE_MS, undefined, { signal }).catch(() => undefined)
  }
  // The file becomes smaller when SQLite copies the write-ahead log into it.
  if (current !== before) await db.write.raw('pragma wal_checkpoint(passive)')
}
