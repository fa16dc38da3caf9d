/** The session of a worker in PostgreSQL. It ends with the process, so that other workers see at
 *  once that the process has died. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import type { Db as BossDb } from 'pg-boss'
import type { Logger } from 'pino'
import {
  deleteOwnSession,
  type LeasedJob,
  lockSession,
  moveLeasedJobs,
  storeLeasedJobs,
} from '../../records/worker-sessions.ts'

const RECONNECT_MS = 100

interface OpenSession {
  id: string
  client: Client
}

/** With the code of PostgreSQL for a connection that does not exist. */
class SessionLost extends Error {
  readonly code = '08003'
  override message = 'The session of this worker in PostgreSQL is lost'
}

export class WorkerSession {
  readonly #newClient: () => Client
  readonly #log: Logger
  #session: OpenSession | undefined
  #isStopped = false
  #reconnection: Promise<void> | undefined

  /** `newClient` returns a client that is not connected, and that sends statements without waiting
   *  for earlier ones. */
  constructor(newClient: () => Client, log: Logger) {
    this.#newClient = newClient
    this.#log = log
  }

  /** Undefined while the connection is lost. Each connection has an ID of its own. */
  get id(): string | undefined {
    return this.#session?.id
  }

  async start(): Promise<void> {
    await this.#connect()
  }

  /** Calls `fetch`, which leases jobs. If it returns some, stores them and those in flight as the
   *  leased jobs of this session, in the same transaction. Throws while the connection is lost. */
  async lease<Job extends LeasedJob>(
    inFlight: LeasedJob[],
    fetch: (db: BossDb) => Promise<Job[]>,
  ): Promise<Job[]> {
    if (!this.#session) throw new SessionLost()
    const { id, client } = this.#session
    const begun = client.query('begin')
    // `begun` is awaited only after `fetch`, which saves a round trip. Until then its rejection
    // must not end the process.
    begun.catch(() => undefined)
    try {
      const jobs = await fetch({ executeSql: (text, values) => client.query(text, values) })
      await begun
      const stored =
        jobs.length > 0 ? storeLeasedJobs(client, id, [...inFlight, ...jobs.map(toKey)]) : undefined
      await Promise.all([stored, client.query('commit')])
      return jobs
    } catch (error) {
      // A connection that cannot roll back is useless. Its end leads to a new one.
      client.query('rollback').catch(() => client.end())
      throw error
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#reconnection
    const session = this.#session
    this.#session = undefined
    if (!session) return
    await deleteOwnSession(session.client, session.id).catch(() => undefined)
    await session.client.end()
  }

  async #connect(previousId?: string): Promise<void> {
    const session = { id: randomUUID(), client: this.#newClient() }
    const { id, client } = session
    client.on('error', () => undefined)
    client.once('end', () => this.#onEnd(session))
    try {
      await client.connect()
      await lockSession(client, id)
      if (previousId !== undefined) await moveLeasedJobs(client, previousId, id)
    } catch (error) {
      await client.end().catch(() => undefined)
      throw error
    }
    this.#session = session
  }

  #onEnd(session: OpenSession): void {
    if (this.#session !== session) return
    this.#session = undefined
    this.#log.warn(
      'The session of this worker in PostgreSQL is lost. ' +
        'The worker leases no attempts until it has another one.',
    )
    this.#reconnection = this.#reconnect(session.id)
  }

  async #reconnect(previousId: string): Promise<void> {
    while (!this.#isStopped) {
      const isOpen = await this.#connect(previousId).then(
        () => true,
        () => false,
      )
      if (isOpen) return
      await delay(RECONNECT_MS)
    }
  }
}

const toKey = ({ id, retryCount }: LeasedJob): LeasedJob => ({ id, retryCount })
