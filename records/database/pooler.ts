/** PostgreSQL behind a pooler such as PgBouncer. In transaction mode a pooler may run each
 *  transaction in another session, so nothing may stay in a session: settings, prepared statements,
 *  locks, LISTEN. */
import type pg from 'pg'
import { Refused } from '../../errors.ts'
import { BoundedConnection, findBackendId } from './backends.ts'
import { withConnection } from './connection.ts'
import { connectionTo } from './hosts.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** How many times `assertOwnSessions` looks for a shared session. With a pooler in transaction
 *  mode, nearly every look finds one. */
const LOOKS = 10

/** Settings of a session of PostgreSQL, by name. */
export type Settings = Record<string, number | string>

/** Behind a pooler, leaves nothing in a session: statements get no names, and settings belong to a
 *  transaction. */
export class PoolerTolerantConnection extends BoundedConnection {
  /** Statements to send with BEGIN. Undefined without a pooler. */
  #localSettings: string | undefined
  #isCorked = false

  /** Sets `settings` for the session. Through a pooler they are set for each transaction. */
  async applySettings(settings: Settings): Promise<void> {
    const statements = (command: string): string =>
      Object.entries(settings)
        .map(([name, value]) => `${command} ${name}=${value};`)
        .join('')
    if (await this.isDirect()) await this.query(statements('set'))
    else this.#localSettings = statements('set local')
  }

  // biome-ignore lint/suspicious/noExplicitAny: `query` has many signatures.
  override query(...input: any[]): any {
    this.#cork()
    const query = super.query as (...args: unknown[]) => unknown
    const [statement, ...others] = input
    if (this.#localSettings === undefined || typeof statement?.text !== 'string')
      return query.apply(this, input)
    const text = statement.text.replace(/^BEGIN;/, `BEGIN;${this.#localSettings}`)
    return query.call(this, { ...statement, name: undefined, text }, ...others)
  }

  /** Collects the statements of one tick of the event loop, and sends them together: half of the
   *  CPU time of a small statement is the system call that writes to the socket. */
  #cork(): void {
    if (this.#isCorked) return
    const { stream } = this.connection
    stream.cork()
    this.#isCorked = true
    process.nextTick(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }
}

/** Throws `Refused` when connections to the URL share sessions: its pooler is in transaction
 *  mode. */
export async function assertOwnSessions(databaseUrl: string): Promise<void> {
  const config = {
    ...connectionTo(databaseUrl),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  }
  const areShared = await withConnection(config, (first) =>
    withConnection(config, async (second) => {
      for (let look = 0; look < LOOKS; look++)
        if (await haveSharedSession(first, second)) return true
      return false
    }),
  )
  if (areShared)
    throw new Refused(
      'Workers need a session of PostgreSQL for each connection, but a pooler in transaction mode shares ' +
        'them. Set DATABASE_DIRECT_URL to the URL of PostgreSQL itself.',
    )
}

/** Does the second connection run in the session of the first one, or does the first one change its
 *  session? */
async function haveSharedSession(first: pg.Client, second: pg.Client): Promise<boolean> {
  const id = await findBackendId(first)
  await second.query('begin')
  const isShared = (await findBackendId(second)) === id || (await findBackendId(first)) !== id
  await second.query('rollback')
  return isShared
}
