/** The database that embedded PostgreSQL starts from, with the tables of pg-boss and without jobs.
 *  It is stored, because creating one takes seconds and half a gigabyte of memory. */
import { PGlite } from '@electric-sql/pglite'

export const EMPTY_DATABASE = new URL('./empty-database.tar.gz', import.meta.url)

/** The database files are in memory too: a large cache would store the queue twice. Nothing is ever
 *  recovered from the WAL, so as little as possible is written to it, and PostgreSQL keeps no old
 *  WAL files for reuse. */
const SERVER_SETTINGS = {
  shared_buffers: '16MB',
  wal_level: 'minimal',
  wal_recycle: 'off',
  max_wal_senders: '0',
  full_page_writes: 'off',
}

export const START_OPTIONS = {
  // PostgreSQL needs no other database, and each one holds a copy of the system catalogs.
  database: 'template1',
  startParams: [
    ...PGlite.defaultStartParams,
    ...Object.entries(SERVER_SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ],
}
