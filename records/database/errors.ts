/** What an error of the database means. */

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** The unique index that a write ran into, or undefined for any other error.
 *  SQLite names the columns ("participants.account_id, participants.email_key"), PostgreSQL the constraint: both hold the column's name. */
export function uniqueViolation(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (errorCode(error) === '23505')
    return String((error as Error & { constraint?: string }).constraint)
  return error.message.match(/UNIQUE constraint failed: (.*)$/)?.[1]
}

/** Is the database out of reach or overloaded, so that the same request may succeed later (503)? */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  return (
    error.name === 'KnexTimeoutError' ||
    // PostgreSQL: connection exceptions, too many connections, disk full, shutting down or starting up, closed to connections, locked, read-only.
    /^(08...|53[0-4]00|57P0[1-5]|55000|55P03|25P03|3D000|25006|40P01|40001)$/.test(code) ||
    /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/.test(code) ||
    /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY)/.test(code) ||
    /Connection terminated|is not queryable|timeout expired|Query read timeout|timeout exceeded when trying to connect|Unable to acquire a connection|^aborted$/.test(
      error.message,
    )
  )
}
