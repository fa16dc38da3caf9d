/** URLs of PostgreSQL with several hosts, as libpq reads them: each new connection goes to the host
 *  that accepts writes. See "34.1.1.3. Specifying Multiple Hosts" in the manual of PostgreSQL. */
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { checkServerIdentity } from 'node:tls'
import pg from 'pg'
import { withConnection } from './connection.ts'
import { errorCode, isLoginRefused, isTlsFailure } from './errors.ts'

/** Shorter than the time limits of the connections that wait for a host. */
const HOST_TIMEOUT_MS = 3_000
/** While a host does not respond, the others may be promoted. */
const ASK_AGAIN_MS = 250
const EXAMPLE = 'postgres://muster@a:5432,b:5432/muster?target_session_attrs=read-write'

interface Host {
  /** The URL with this host only. */
  url: string
  host: string
  port: number
}

/** Returns the end of a sentence that says why the URL is refused. Undefined: the URL is valid. */
export function findUrlProblem(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return 'must begin with postgres:// or postgresql://'
  const { urls, target } = splitHosts(url)
  if (!urls.every((each) => URL.canParse(each) && (urls.length === 1 || new URL(each).hostname)))
    return `must name hosts and ports as in ${EXAMPLE}`
  if (target === undefined && urls.length > 1)
    return 'has several hosts, so it needs target_session_attrs=read-write'
  if (target !== undefined && target !== 'read-write')
    return `allows only read-write as target_session_attrs, not "${target}"`
  return undefined
}

/** `findUrlProblem` for a URL of standbys. */
export function findStandbyUrlProblem(url: string): string | undefined {
  const { urls, target } = splitHosts(url)
  return urls.length > 1 || target !== undefined
    ? 'must name one host without target_session_attrs: a standby, or a proxy in front of several'
    : findUrlProblem(url)
}

/** The URL of each host, without `target_session_attrs`. */
function splitHosts(url: string): { urls: string[]; target: string | undefined } {
  const [, start = '', hosts = '', path = '', query = ''] =
    /^(\w+:\/\/(?:[^/?]*@)?)([^/?]*)([^?]*)\??(.*)$/.exec(url) ?? []
  const parameters = query.split('&').filter(Boolean)
  const isTarget = (parameter: string): boolean => parameter.startsWith('target_session_attrs=')
  const others = parameters.filter((parameter) => !isTarget(parameter)).join('&')
  const end = others === '' ? path : `${path}?${others}`
  return {
    urls: hosts.split(',').map((host) => `${start}${host}${end}`),
    target: parameters.find(isTarget)?.split('=')[1],
  }
}

/** How pg connects to a valid URL. Without `target_session_attrs`, the host is not asked. */
export function connectionTo(databaseUrl: string): {
  connectionString: string
  stream?: (config?: { ssl?: unknown }) => Socket
} {
  const { urls, target } = splitHosts(databaseUrl)
  const [connectionString = databaseUrl] = urls
  if (target === undefined) return { connectionString: databaseUrl }
  const primary = new Primary(urls)
  return { connectionString, stream: (config) => new PrimarySocket(primary, config?.ssl) }
}

/** Closes the connection when its host refuses a write because it is read-only: another host may be
 *  the primary now. */
export function closeWhenReadOnly(client: pg.Client): void {
  client.connection.on('errorMessage', ({ code }: { code?: string }) => {
    if (code === '25006') client.end().catch(() => undefined)
  })
}

class Primary {
  readonly #hosts: Host[]
  /** Connections that begin at the same time share one search. */
  #search: Promise<Host> | undefined

  constructor(urls: string[]) {
    this.#hosts = urls.map((url) => {
      const { host, port } = new pg.Client({ connectionString: url })
      return { url, host, port }
    })
  }

  find(): Promise<Host> {
    this.#search ??= this.#askAll().finally(() => {
      this.#search = undefined
    })
    return this.#search
  }

  /** Asks all hosts at once. Repeats the question while a host has not responded. */
  async #askAll(): Promise<Host> {
    const failures = new Map<Host, Error>()
    let isOver = false
    const ask = async (host: Host): Promise<Host> => {
      while (!isOver) {
        const failure = await findRefusal(host)
        if (!failure) return host
        failures.set(host, failure)
        isOver ||= failures.size === this.#hosts.length
        if (!isOver) await delay(ASK_AGAIN_MS)
      }
      throw failures.get(host)
    }
    try {
      return await Promise.any(this.#hosts.map(ask))
    } catch {
      throw describeFailures(failures)
    } finally {
      isOver = true
    }
  }
}

/** Why the host accepts no writes. Undefined: it accepts them. */
async function findRefusal({ url }: Host): Promise<Error | undefined> {
  const config = {
    connectionString: url,
    application_name: 'muster-host',
    connectionTimeoutMillis: HOST_TIMEOUT_MS,
    query_timeout: HOST_TIMEOUT_MS,
  }
  try {
    const { rows } = await withConnection(config, (client) =>
      client.query('show transaction_read_only'),
    )
    if (rows[0].transaction_read_only === 'off') return undefined
    return Object.assign(new Error('a standby, or read-only'), { code: '57P03' })
  } catch (error) {
    return error as Error
  }
}

/** The error of the most telling code, with the failures of all hosts. */
function describeFailures(failures: Map<Host, Error>): Error {
  const errors = [...failures.values()]
  const error = errors.find((each) => isLoginRefused(each) || isTlsFailure(each)) ?? errors[0]
  const reasons = [...failures].map(
    ([{ host, port }, each]) => `${host}:${port} ${each.message || errorCode(each)}`,
  )
  const code = errorCode(error)
  return Object.assign(new Error(`no host accepts writes: ${reasons.join('; ')}`), { code })
}

/** Connects to the primary, whatever host pg names. */
class PrimarySocket extends Socket {
  readonly #primary: Primary
  #host = ''

  /** `ssl`: pg's settings of this connection. pg would compare the certificate with the first
   *  host. */
  constructor(primary: Primary, ssl: unknown) {
    super()
    this.#primary = primary
    if (typeof ssl === 'object' && ssl !== null && !('checkServerIdentity' in ssl))
      Object.assign(ssl, {
        checkServerIdentity: (_: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
          checkServerIdentity(this.#host, certificate),
      })
  }

  override connect(): this {
    this.#primary.find().then(
      ({ host, port }) => {
        this.#host = host
        // A connection may be given up while the search lasts.
        if (!this.destroyed) super.connect(port, host)
      },
      (error: Error) => this.destroy(error),
    )
    return this
  }
}
