/** Bounds the processes of PostgreSQL (backends) that serve one pool. A pool counts its open connections, but a
 *  backend may outlive its connection: one that waits for a lock or a standby does not notice that the client has
 *  gone. So a connection that was given up keeps its place until PostgreSQL says that the backend has ended. */
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { withConnection } from './connection.ts'

/** Less than the 5 s for which the pools wait for a connection. */
const PLACE_TIMEOUT_MS = 4_000
const ASK_TIMEOUT_MS = 2_000
const ASK_AGAIN_MS = 100
/** An idle connection that takes longer to close is given up. */
const CLOSE_TIMEOUT_MS = 5_000
const CANCEL_TIMEOUT_MS = 2_000
/** The code of a CancelRequest in PostgreSQL's protocol, version 3. */
const CANCEL_REQUEST = 80_877_102

/** Ends the backends that still run, and returns their process IDs. A process with the same ID that is younger than
 *  the connection, or that another program uses, is another backend: PostgreSQL has restarted, or another server has
 *  become the primary. */
const END_BACKENDS = `
  select pid, pg_terminate_backend(pid) from pg_stat_activity
  join unnest($1::integer[], $2::double precision[]) as lost (pid, seconds) using (pid)
  where backend_start <= now() - seconds * interval '1 second'
    and usename = current_user and application_name = current_setting('application_name')`

/** A connection that was given up. */
interface Lost {
  /** Of its backend. */
  processId: number
  openedAtMs: number
}

export class Backends {
  readonly #max: number
  readonly #config: pg.ClientConfig
  /** Open connections, and those given up whose backends may still run. */
  #count = 0
  readonly #waiting: (() => void)[] = []
  readonly #lost = new Set<Lost>()
  #isAsking = false

  /** `config`: how to reach PostgreSQL. While a connection waits for the place of one that was given up, the pool has
   *  one connection more than `max`, which ends the old backends. */
  constructor(max: number, config: pg.ClientConfig) {
    this.#max = max
    this.#config = {
      ...config,
      connectionTimeoutMillis: ASK_TIMEOUT_MS,
      query_timeout: ASK_TIMEOUT_MS,
    }
  }

  /** Waits for a place. */
  async enter(): Promise<void> {
    if (this.#count < this.#max) {
      this.#count++
      return
    }
    const place = Promise.withResolvers<void>()
    const timeout = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(place.resolve), 1)
      place.reject(new Error('timeout expired: PostgreSQL still runs earlier connections'))
    }, PLACE_TIMEOUT_MS)
    this.#waiting.push(place.resolve)
    if (!this.#isAsking) void this.#freePlaces()
    await place.promise.finally(() => clearTimeout(timeout))
  }

  /** The backend has ended. */
  leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#count--
  }

  /** The backend may still run. */
  lose(lost: Lost): void {
    this.#lost.add(lost)
  }

  /** Never throws. */
  async #freePlaces(): Promise<void> {
    this.#isAsking = true
    while (this.#waiting.length > 0) {
      const lost = [...this.#lost]
      const running =
        lost.length > 0 ? await this.#endBackends(lost).catch(() => undefined) : undefined
      for (const each of lost)
        if (running?.has(each.processId) === false && this.#lost.delete(each)) this.leave()
      await delay(ASK_AGAIN_MS, undefined, { ref: false })
    }
    this.#isAsking = false
  }

  /** Returns those that still ran. */
  #endBackends(lost: Lost[]): Promise<Set<number>> {
    const ids = lost.map(({ processId }) => processId)
    const seconds = lost.map(({ openedAtMs }) => (performance.now() - openedAtMs) / 1_000)
    return withConnection(this.#config, async (client) => {
      const { rows } = await client.query<{ pid: number }>(END_BACKENDS, [ids, seconds])
      return new Set(rows.map(({ pid }) => pid))
    })
  }
}

export interface BoundedConfig extends pg.ClientConfig {
  /** A function, because knex copies the objects of its configuration. */
  backends: () => Backends
  /** Asks PostgreSQL to cancel the statements of this connection after this time. Set `query_timeout` to a longer
   *  time: it closes the connection. */
  cancelAfterMs?: number
}

/** A connection that counts among the backends of its pool, and that cancels statements before it is given up. */
export class BoundedConnection extends pg.Client {
  /** Declared here, because pg's types lack these two. The server sends them at the start of a connection. */
  declare readonly processID: number
  declare readonly secretKey: number
  readonly #backends: Backends
  readonly #cancelAfterMs: number | undefined
  /** Is `processID` known to be that of the backend? */
  #isDirect = false
  #cancelTimer: NodeJS.Timeout | undefined
  /** Has a statement been sent that has no result yet? */
  #isBusy = false
  #isClosing = false
  #isStuck = false
  #cancelled: Error | undefined

  constructor({ backends, cancelAfterMs, ...config }: BoundedConfig) {
    super(config)
    this.#backends = backends()
    this.#cancelAfterMs = cancelAfterMs
    this.on('drain', () => this.#becomeIdle())
    // A pool listens for errors only from the callback of `connect` on, which is too late when PostgreSQL ends the
    // session in the message that opens it. Without a listener, the error would end the process.
    this.on('error', () => undefined)
  }

  /** A late cancel request could cancel the next statement, so the connection must be closed after one. */
  get isUsable(): boolean {
    return this.#cancelled === undefined
  }

  /** False: a pooler has invented `processID`. The pooler bounds the backends itself. */
  async isDirect(): Promise<boolean> {
    this.#isDirect = (await findBackendId(this)) === this.processID
    return this.#isDirect
  }

  override connect(): Promise<this>
  override connect(callback: (error?: Error | null) => void): void
  override connect(callback?: (error?: Error | null) => void): Promise<this> | undefined {
    const connected = this.#connect()
    if (!callback) return connected
    connected.then(() => callback(null), callback)
    return undefined
  }

  // biome-ignore lint/suspicious/noExplicitAny: `query` has many signatures.
  override query(...input: any[]): any {
    this.#becomeBusy(input[0]?.query_timeout ?? 0)
    const done = input.at(-1)
    const send = super.query as (...args: unknown[]) => unknown
    if (typeof done === 'function') {
      const finish = (error: unknown, result: unknown) => done(error ?? this.#cancelled, result)
      return send.apply(this, [...input.slice(0, -1), finish])
    }
    return (send.apply(this, input) as Promise<unknown>).then((result) => {
      if (this.#cancelled) throw this.#cancelled
      return result
    })
  }

  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    this.#isClosing = true
    const stuck = setTimeout(() => {
      this.#isStuck = true
      this.connection.stream.destroy()
    }, CLOSE_TIMEOUT_MS)
    stuck.unref()
    this.once('end', () => clearTimeout(stuck))
    if (!callback) return super.end()
    super.end(callback)
    return undefined
  }

  async #connect(): Promise<this> {
    await this.#backends.enter()
    try {
      await super.connect()
    } catch (error) {
      this.#backends.leave()
      throw error
    }
    const openedAtMs = performance.now()
    this.once('end', () => {
      clearTimeout(this.#cancelTimer)
      const isClosed = this.#isClosing && !this.#isBusy && !this.#isStuck
      if (isClosed || !this.#isDirect) this.#backends.leave()
      else this.#backends.lose({ processId: this.processID, openedAtMs })
    })
    return this
  }

  /** `timeoutMs`: the limit of the statement, if it has one of its own. */
  #becomeBusy(timeoutMs: number): void {
    const isLonger = timeoutMs > (this.#cancelAfterMs ?? 0)
    if (this.#isBusy && !isLonger) return
    this.#isBusy = true
    if (this.#cancelAfterMs === undefined) return
    clearTimeout(this.#cancelTimer)
    const cancelAfterMs = Math.max(this.#cancelAfterMs, timeoutMs)
    this.#cancelTimer = setTimeout(() => this.#cancel(), cancelAfterMs)
    this.#cancelTimer.unref()
  }

  #becomeIdle(): void {
    this.#isBusy = false
    clearTimeout(this.#cancelTimer)
  }

  /** A COMMIT that waits for a standby ends with success. So the statements that wait now fail in `query`: whether
   *  they have taken effect is unknown. */
  #cancel(): void {
    this.#cancelled = new Error('Query read timeout: PostgreSQL was asked to cancel the statement')
    const { remoteAddress, remotePort } = this.connection.stream as net.Socket
    const socket =
      remoteAddress === undefined || remotePort === undefined
        ? net.connect(`${this.host}/.s.PGSQL.${this.port}`)
        : net.connect(remotePort, remoteAddress)
    const request = Buffer.alloc(16)
    request.writeInt32BE(request.length, 0)
    request.writeInt32BE(CANCEL_REQUEST, 4)
    request.writeInt32BE(this.processID, 8)
    request.writeInt32BE(this.secretKey, 12)
    // Without a response of PostgreSQL, `query_timeout` closes the connection.
    socket.on('error', () => undefined)
    socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy())
    // PgBouncer ignores a request whose connection the client has closed. The server closes it.
    socket.write(request)
  }
}

/** The process ID of the session in which PostgreSQL runs the statement. */
export async function findBackendId(connection: Pick<pg.Client, 'query'>): Promise<number> {
  const { rows } = await connection.query('select pg_backend_pid() as id')
  return rows[0].id
}
