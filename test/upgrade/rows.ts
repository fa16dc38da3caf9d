/** The rows of a database, for a comparison with another database that was filled in the same
 *  way. */
import type { Db } from '../../records/database/open.ts'
import type { DatabaseSchema } from '../../records/database/schema.ts'

export type Rows = Record<string, Record<string, unknown>[]>

/** Tables whose rows are random, or depend on the clock or on which node or release did what. */
const NOT_COMPARED = [
  ...['attempt_counts', 'clock_spans', 'leases', 'migrations'],
  ...['rate_limits', 'record_counts', 'request_counts', 'request_minutes', 'webhook_health'],
]

/** Columns whose values are random or measured. */
const MASKED = new Set([
  'check_value',
  'duration_ms',
  'phases',
  // Null until the next attempt is in the queue.
  'queued_at',
  'request_id',
  'response_headers',
  'secret_encrypted',
  'sha256',
  'token_hash',
  'token_prefix',
])

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
const SHA256 = /\b[0-9a-f]{64}\b/g
const ETAG = /(?<=ETag":"\\")[\w-]+/g
const PORT = /127\.0\.0\.1:\d+/g
/** Names of columns that together identify a row of a table without an `id`. */
const KEY_PART = /_id$|^(number|name|tag|position)$/
/** Epoch milliseconds are above this, and no other number is. */
const MIN_TIME_MS = 1e12

/** All rows by table. IDs are replaced by their numbers in the order of tables and rows. Times and
 *  random values are masked. */
export async function readRows({ read }: Db, schema: DatabaseSchema): Promise<Rows> {
  const mask = newMask()
  const rows: Rows = {}
  const tables = Object.keys(schema).filter((name) => !NOT_COMPARED.includes(name))
  for (const table of tables.sort()) {
    const columns = Object.keys(schema[table]?.columns ?? {}).sort()
    const order = columns.includes('id') ? ['id'] : columns.filter((name) => KEY_PART.test(name))
    const found: Record<string, unknown>[] = await read(table).select(columns).orderBy(order)
    rows[table] = found.map((row) =>
      Object.fromEntries(columns.map((column) => [column, mask(column, row[column])])),
    )
  }
  return rows
}

/** Masks one value after the other. An ID has the same number wherever it occurs. */
function newMask(): (column: string, value: unknown) => unknown {
  const numbers = new Map<string, string>()
  const numberOf = (id: string): string => {
    const number = numbers.get(id) ?? `#${numbers.size + 1}`
    numbers.set(id, number)
    return number
  }
  const maskText = (text: string): string =>
    text
      .replace(UUID, numberOf)
      .replace(TIME, '<time>')
      .replace(SHA256, '<hash>')
      .replace(ETAG, '<etag>')
      .replace(PORT, '<port>')
  return (column, value) => {
    if (MASKED.has(column)) return '<masked>'
    if (value === null) return null
    if (typeof value === 'number') return value >= MIN_TIME_MS ? '<time>' : value
    return typeof value === 'string' || Buffer.isBuffer(value) ? maskText(value.toString()) : value
  }
}
