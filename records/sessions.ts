/** The sessions of users who have signed in to the console. */
import type { Db } from './database/open.ts'
import type { Scope, WriteScope } from './database/scope.ts'
import { type Sql, select } from './database/statements.ts'
import { relaxedTransaction } from './database/transaction.ts'
import { newId } from './ids.ts'
import { type RemovalRun, removeRows } from './removal-run.ts'
import { DAY_MS } from './time-units.ts'
import { type User, type UserRow, userColumns, userFromRow } from './users.ts'

/** A session expires after this long without a request, and at the end of its lifetime. */
const IDLE_DAYS = 14
const LIFETIME_DAYS = 30
const LAST_SEEN_PRECISION_MS = 60_000

/** A message on the next page about the last action. */
export interface Notice {
  kind: 'ok' | 'bad'
  text: string
}

export interface Session {
  id: string
  ip: string
  userAgent: string
  /** Epoch milliseconds, like all times of records. */
  lastSeenAt: number
  createdAt: number
}

interface SessionRow {
  id: string
  ip: string
  user_agent: string
  last_seen_at: number
  created_at: number
}

interface SignedInRow
  extends Omit<UserRow, 'password_hash'>,
    Omit<SessionRow, 'id' | 'created_at'> {
  session_id: string
  started_at: number
  notice: string | null
  account_name: string
}

function fromRow(row: SessionRow): Session {
  return {
    id: row.id,
    ip: row.ip,
    userAgent: row.user_agent,
    lastSeenAt: row.last_seen_at,
    createdAt: row.created_at,
  }
}

export interface NewSession {
  userId: string
  tokenHash: string
  ip: string
  userAgent: string
}

const MAX_USER_AGENT_CHARACTERS = 300

/** Returns the session's ID. */
export async function insertSession(
  scope: WriteScope,
  session: NewSession,
  now: Date,
): Promise<string> {
  const id = newId()
  await scope.insert('sessions', {
    id,
    user_id: session.userId,
    token_hash: session.tokenHash,
    ip: session.ip,
    user_agent: session.userAgent.slice(0, MAX_USER_AGENT_CHARACTERS).toWellFormed(),
    last_seen_at: now.getTime(),
    expires_at: now.getTime() + LIFETIME_DAYS * DAY_MS,
    created_at: now.getTime(),
  })
  return id
}

export interface SignedIn {
  session: Session
  user: User
  account: { id: string; name: string }
  notice: Notice | null
}

/** Undefined: the session does not exist or has expired, its user is deactivated, or its account is
 *  suspended. Never cached: a revocation takes effect with the next request, on every node. */
export async function findSignedIn(
  sql: Sql,
  tokenHash: string,
  now: Date,
): Promise<SignedIn | undefined> {
  const [row] = await select<SignedInRow>(
    sql,
    `select ${userColumns.join(', ')}, sessions.id as session_id, sessions.ip, user_agent, notice, last_seen_at,
       sessions.created_at as started_at, accounts.name as account_name
     from sessions
     join users on users.account_id = sessions.account_id and users.id = sessions.user_id
     join accounts on accounts.id = sessions.account_id
     where token_hash = ? and expires_at > ? and last_seen_at > ?
       and users.status = 'active' and suspended_at is null`,
    [tokenHash, now.getTime(), now.getTime() - IDLE_DAYS * DAY_MS],
    'find_signed_in',
  )
  return (
    row && {
      session: fromRow({ ...row, id: row.session_id, created_at: row.started_at }),
      user: userFromRow(row),
      account: { id: row.account_id, name: row.account_name },
      notice: row.notice === null ? null : JSON.parse(row.notice),
    }
  )
}

/** Updates the time of the last request, at most once a minute. */
export async function updateLastSeen(db: Db, session: Session, now: Date): Promise<void> {
  if (now.getTime() - session.lastSeenAt < LAST_SEEN_PRECISION_MS) return
  await relaxedTransaction(db, async ({ sql }) => {
    await sql('sessions').where({ id: session.id }).update({ last_seen_at: now.getTime() })
  })
}

/** Null clears the notice. */
export async function storeNotice(db: Db, sessionId: string, notice: Notice | null): Promise<void> {
  await relaxedTransaction(db, async ({ sql }) => {
    await sql('sessions')
      .where({ id: sessionId })
      .update({ notice: notice && JSON.stringify(notice) })
  })
}

/** The sessions that have not expired, most recently used first. */
export async function listSessions(scope: Scope, userId: string, now: Date): Promise<Session[]> {
  const rows: SessionRow[] = await scope
    .rows('sessions')
    .where({ user_id: userId })
    .where('expires_at', '>', now.getTime())
    .where('last_seen_at', '>', now.getTime() - IDLE_DAYS * DAY_MS)
    .orderBy([{ column: 'last_seen_at', order: 'desc' }, 'id'])
  return rows.map(fromRow)
}

/** False: the user has no such session. */
export async function deleteSession(scope: Scope, userId: string, id: string): Promise<boolean> {
  return (await scope.rows('sessions').where({ id, user_id: userId }).delete()) > 0
}

/** Deletes all sessions of a user, except `exceptId`. Returns how many. */
export async function deleteSessions(
  scope: Scope,
  userId: string,
  exceptId?: string,
): Promise<number> {
  const sessions = scope.rows('sessions').where({ user_id: userId })
  return exceptId === undefined ? sessions.delete() : sessions.whereNot({ id: exceptId }).delete()
}

/** Signs out all users of the account. */
export async function deleteAccountSessions(scope: Scope): Promise<void> {
  await scope.rows('sessions').delete()
}

export function removeExpiredSessions(run: RemovalRun): Promise<void> {
  return removeRows(run, {
    table: 'sessions',
    key: ['id'],
    condition: (rows) =>
      rows.where('expires_at', '<=', run.time.expiredUntil(LIFETIME_DAYS * DAY_MS)),
  })
}
