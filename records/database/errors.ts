/** Classifies errors of the two databases. */

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** The violated unique index, or undefined for any other error. SQLite names the columns
 *  ("participants.account_id, participants.email_key"), PostgreSQL the index
 *  ("participants_email_key"). Search it for a text that both contain, such as `email_key`. */
export function uniqueViolation(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if (errorCode(error) === '23505')
    return String((error as Error & { constraint?: string }).constraint)
  return error.message.match(/UNIQUE constraint failed: (.*)$/)?.[1]
}

/** Codes of errors after which the same request may succeed later (503). PostgreSQL's are
 *  SQLSTATEs: see Appendix A of its manual. */
const UNAVAILABLE_CODES: [codes: RegExp, reason: string][] = [
  [/^08...$/, 'PostgreSQL: connection exception'],
  [/^53[0-4]00$/, 'PostgreSQL: out of memory, disk, connections or another limit'],
  [/^57P0[1-5]$/, 'PostgreSQL: shutting down, starting up, or a session that was ended'],
  [/^55000$/, 'PostgreSQL: the database accepts no connections'],
  [/^55P03$/, 'PostgreSQL: lock_timeout'],
  [/^57014$/, 'PostgreSQL: statement_timeout'],
  [/^25P03$/, 'PostgreSQL: idle_in_transaction_session_timeout'],
  [/^3D000$/, 'PostgreSQL: the database does not exist, for example during a restore'],
  [/^25006$/, 'PostgreSQL: read-only, for example a standby before its promotion'],
  [
    /^40P01$|^40001$/,
    'PostgreSQL: deadlock or serialization failure, even after the transaction was repeated',
  ],
  [/^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT)$/, 'network: no connection, or a lost one'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'DNS: no IP address for the host'],
  [/^SQLITE_(BUSY|LOCKED)/, 'SQLite: another process holds the write lock'],
  [/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/, 'SQLite: the disk is full, faulty or read-only'],
]

/** Messages of such errors that have no code. */
const UNAVAILABLE_MESSAGES: [messages: RegExp, reason: string][] = [
  [/Connection terminated|is not queryable/, 'pg: the connection was lost'],
  [/timeout expired|Query read timeout|timeout exceeded when trying to connect/, 'pg: timeouts'],
  [
    /Unable to acquire a connection|^aborted$/,
    'knex and its pool: closed, or no connection in time',
  ],
]

/** The connection or the disk failed during the commit: the transaction may have been committed. */
export class OutcomeUnknown extends Error {
  override name = 'OutcomeUnknown'
  constructor(cause: unknown) {
    super('The transaction may have been committed', { cause })
  }
}

/** Has PostgreSQL refused the user or the password? SQLSTATEs of the class 28 are authorization
 *  errors. */
export function isLoginRefused(error: unknown): boolean {
  return /^28...$/.test(errorCode(error))
}

/** Has TLS to PostgreSQL failed? The message is of pg. The codes are of Node.js, for certificates
 *  and TLS. */
export function isTlsFailure(error: unknown): boolean {
  return (
    /^(CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT|UNABLE_TO_|ERR_(TLS|SSL)_)/.test(
      errorCode(error),
    ) ||
    (error instanceof Error && /does not support SSL connections/.test(error.message))
  )
}

/** Does the user of PostgreSQL lack a right? 42501 is insufficient_privilege. */
export function isPermissionDenied(error: unknown): boolean {
  return errorCode(error) === '42501'
}

/** Codes of errors of the storage: no write succeeds until an operator acts. */
const STORAGE_CODES = /^(53100|58030|25006|SQLITE_(FULL|IOERR|CANTOPEN|READONLY).*)$/

/** Is the storage of the database full, faulty or read-only? */
export function isStorageFailure(error: unknown): boolean {
  return STORAGE_CODES.test(errorCode(error))
}

/** Does SQLite say that pages of its file are damaged? */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(error))
}

/** Was one statement too slow, or did it wait too long for others? The database itself may be well. */
export function isContention(error: unknown): boolean {
  return /^(57014|55P03|40P01|40001)$/.test(errorCode(error))
}

/** Is the database unable to serve the request now, while the same request may succeed later (503)?
 *  Includes the failures of the storage, except 58030 (io_error). */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = errorCode(error)
  return (
    error instanceof OutcomeUnknown ||
    error.name === 'KnexTimeoutError' ||
    UNAVAILABLE_CODES.some(([codes]) => codes.test(code)) ||
    UNAVAILABLE_MESSAGES.some(([messages]) => messages.test(error.message))
  )
}
