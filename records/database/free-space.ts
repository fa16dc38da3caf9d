/** Returns the space of deleted rows to the file system: SQLite moves pages from the end of its
 *  file to free ones, and cuts the end off. A file that an earlier version of Muster created must
 *  first be converted once (`convertFile`). */
import { stat, statfs } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { type Db, sqliteFile } from './open.ts'
import { select } from './statements.ts'

/** Pages that one step returns: 1 MiB with SQLite's default page size. A step blocks other writers
 *  for some milliseconds. */
const STEP_PAGES = 256
/** Between two steps, so that other writers get their turn. */
const STEP_PAUSE_MS = 50
/** This share of the pages stays free for new rows. Otherwise the file would shrink and grow all
 *  the time. */
const FREE_SHARE = 0.1
/** The number of this mode of `auto_vacuum`: sqlite.org/pragma.html#pragma_auto_vacuum */
const INCREMENTAL = 2

interface Pages {
  mode: number
  pages: number
  free: number
  pageBytes: number
}

async function readPages({ read }: Pick<Db, 'read'>): Promise<Pages> {
  const [row] = await select<Pages>(
    read,
    `select auto_vacuum as mode, page_count as pages, freelist_count as free, page_size as "pageBytes"
     from pragma_auto_vacuum(), pragma_page_count(), pragma_freelist_count(), pragma_page_size()`,
    [],
  )
  if (row === undefined) throw new Error('The pragmas returned no row')
  return row
}

/** Whether `returnFreeSpace` can return the space of deleted rows. True on PostgreSQL too, which
 *  reuses that space itself. */
export async function isSpaceReturned(db: Pick<Db, 'dialect' | 'read'>): Promise<boolean> {
  return db.dialect === 'postgres' || (await readPages(db)).mode === INCREMENTAL
}

/** Returns free pages in small steps, until few are left or `signal` aborts. */
export async function returnFreeSpace(db: Db, signal: AbortSignal): Promise<void> {
  if (db.dialect === 'postgres') return
  const before = await readPages(db)
  if (before.mode !== INCREMENTAL) return
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

export interface ConversionSpace {
  fileBytes: number
  /** Free space that the conversion needs on the disk of the file. */
  neededBytes: number
  freeBytes: number
}

export async function findFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

export async function findConversionSpace(db: Db, dataDir: string): Promise<ConversionSpace> {
  const { pages, free, pageBytes } = await readPages(db)
  return {
    fileBytes: (await stat(sqliteFile(dataDir))).size,
    // The temporary copy and the write-ahead log each hold the contents once. A tenth is for their
    // overhead.
    neededBytes: Math.ceil(2.1 * (pages - free) * pageBytes),
    freeBytes: await findFreeBytes(dataDir),
  }
}

/** Writes the file anew, so that `returnFreeSpace` works from then on. An interruption leaves the
 *  file unchanged. Writers wait meanwhile, so no service may run. */
export async function convertFile({ write }: Db, dataDir: string): Promise<void> {
  // By default, SQLite writes the temporary copy to a folder that all users share, perhaps on
  // another disk that is too small for the copy.
  await write.raw(`pragma temp_store_directory = '${dataDir.replaceAll("'", "''")}'`)
  // `db.write` has one connection, so `vacuum` runs with the setting of the statement before it.
  await write.raw('pragma auto_vacuum = incremental')
  await write.raw('vacuum')
  await write.raw('pragma wal_checkpoint(truncate)')
}
