/** Connections that obey the egress control. The IP address of the actual connection is checked, so
 *  DNS rebinding is useless. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { Agent, buildConnector, Client, type Dispatcher, Pool } from 'undici'
import type { ClientCertificate } from './client-certificate.ts'
import { type Cidr, findRefusal, isLocalhost, judgeAddress, removeBrackets } from './egress.ts'
import { type Lookup, newNameLookup } from './name-lookup.ts'
import type { StatusReader } from './status-reader.ts'
import { openTunnel } from './tunnel.ts'

const KEEP_ALIVE_MS = 4_000
/** A receiver may ask for a longer time, but idle connections must not take all file descriptors. */
const MAX_KEEP_ALIVE_MS = 10_000
const MAX_HEADER_BYTES = 64 * 1024

interface AgentOptions {
  lookup?: Lookup
  /** Carries the connections to public IP addresses. */
  proxy?: URL
  clientCertificate?: ClientCertificate
}

/** An agent that checks each connection twice. Before the connection is opened, the agent checks
 *  the IP literal or every IP address of the name. Once the connection is open, the agent checks
 *  its IP address; a proxy is asked for the IP address that was checked. A `Trace` in the option
 *  `opaque` of a request receives the connection that carries the request. */
export function guardedAgent(
  allow: Cidr[],
  { lookup = newNameLookup(), ...options }: AgentOptions = {},
): Agent {
  const connectors = {
    'https:': guardedConnector('https:', allow, { lookup, ...options }),
    // Without a proxy: http is only for IP addresses that the operator permits.
    'http:': guardedConnector('http:', allow, { lookup }),
  }
  const newClient = (origin: URL, options: object): Client =>
    new TracedClient(
      origin,
      options,
      origin.protocol === 'https:' ? connectors['https:'] : connectors['http:'],
    )
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of the attempt covers the headers and the body, however slowly they arrive.
    headersTimeout: 0,
    bodyTimeout: 0,
    factory: (origin, options) => new Pool(origin, { ...options, factory: newClient }),
  })
}

/** Gives access to the connection of a request, which may not exist yet when the request begins. */
export class Trace {
  readonly accountId: string
  client: TracedClient | undefined

  constructor(accountId: string) {
    this.accountId = accountId
  }

  get connection(): Connection | undefined {
    return this.client?.connection
  }
}

/** undici passes these options on to the client unchanged. */
export interface TracedOptions extends Dispatcher.DispatchOptions {
  opaque?: Trace
}

/** A client has one connection at a time, and receives one request at a time from the pools of the
 *  agent. */
class TracedClient extends Client {
  connection: Connection | undefined
  #accountId = ''

  constructor(origin: URL, options: Client.Options, connect: GuardedConnector) {
    super(origin, {
      ...options,
      connect: (target, callback) => {
        this.connection = lookupAccountId.run(this.#accountId, () => connect(target, callback))
      },
    })
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    const { opaque } = options as TracedOptions
    if (opaque) {
      opaque.client = this
      this.#accountId = opaque.accountId
    }
    return super.dispatch(options, handler)
  }
}

/** A connection and the times when its steps were done, in milliseconds of `performance.now()`. */
export class Connection {
  readonly startedAt = performance.now()
  /** Undefined for an IP literal, which needs no lookup. */
  lookedUpAt: number | undefined
  connectedAt: number | undefined
  /** When requests could be sent; with TLS, after the handshake. */
  readyAt: number | undefined
  /** The IP address of the connection. */
  address: string | null = null
  readonly isNamed: boolean
  readonly isSecure: boolean
  /** Gets the bytes of the response to the current request. */
  statusReader: StatusReader | undefined
  /** Set when the request has ended before the connection was ready. */
  abandonedBy: Error | undefined
  /** The part that is being opened: the connection, or a tunnel for it. */
  opening: { destroy(reason: Error): unknown } | undefined

  constructor(host: string, protocol: string) {
    this.isNamed = isIP(host) === 0
    this.isSecure = protocol === 'https:'
  }

  /** Passes the bytes of each response to `statusReader`. */
  watchResponses(socket: Socket): void {
    this.opening = socket
    const read = socket.read.bind(socket)
    // The parser of undici reads with this method.
    socket.read = (size?: number): Buffer | null => {
      const bytes: Buffer | null = read(size)
      if (bytes !== null) this.statusReader?.read(bytes)
      return bytes
    }
  }

  /** Records the IP address, and the times of the look-up and of connecting. Calls `onConnect` with
   *  the IP address, before anything is sent. */
  watchConnecting(socket: Socket, onConnect: (address: string) => void): void {
    socket.once('lookup', (error) => {
      if (!error) this.lookedUpAt = performance.now()
    })
    socket.prependOnceListener('connect', () => {
      this.connectedAt = performance.now()
      this.address = socket.remoteAddress ?? null
      onConnect(socket.remoteAddress ?? 'unknown')
    })
  }

  /** Stops connecting. Does nothing once the connection is ready. */
  abandon(reason: Error): void {
    if (this.readyAt !== undefined) return
    this.abandonedBy = reason
    this.opening?.destroy(reason)
  }
}

/** Starts a connection and returns it. For a blocked IP literal, calls back with an error and
 *  returns undefined. */
type GuardedConnector = (
  target: buildConnector.Options,
  callback: buildConnector.Callback,
) => Connection | undefined

function guardedConnector(
  protocol: 'https:' | 'http:',
  allow: Cidr[],
  { lookup, proxy, clientCertificate }: AgentOptions & { lookup: Lookup },
): GuardedConnector {
  const find = guardedLookup(protocol, allow, lookup)
  const findTunnel = proxy && tunnelFinder(proxy, allow, find)
  const connect = buildConnector({
    // The deadline of the attempt covers connecting.
    timeout: 0,
    lookup: find,
    // Node's default of 250 ms is too short for a distant host with several IP addresses.
    autoSelectFamilyAttemptTimeout: 2_000,
    ...clientCertificate,
    // undici declares that a connector returns nothing, but it returns the socket.
  } as buildConnector.BuildOptions) as (...args: Parameters<buildConnector.connector>) => Socket

  return (target, callback) => {
    const host = removeBrackets(target.hostname)
    const blocked = isIP(host) === 0 ? undefined : findRefusal(host, protocol, allow)
    if (blocked) {
      callback(blocked, null)
      return undefined
    }
    const connection = new Connection(host, protocol)
    const open = (tunnel?: Socket): void => {
      const socket = connect({ ...target, httpSocket: tunnel }, (...[error, ready]) => {
        if (error) return callback(error, null)
        // The callback below has destroyed the socket, which undici does not notice.
        if (ready.errored) return callback(ready.errored, null)
        connection.readyAt = performance.now()
        return callback(null, ready)
      })
      connection.watchResponses(socket)
      if (tunnel) return
      connection.watchConnecting(socket, (address) => {
        const refusal = findRefusal(address, protocol, allow)
        if (refusal) socket.destroy(refusal)
      })
    }
    const port = Number(target.port || 443)
    if (!findTunnel) open()
    else
      findTunnel(connection, { host, port }, (error, tunnel) =>
        error ? callback(error, null) : open(tunnel),
      )
    return connection
  }
}

/** Calls back without a tunnel if the operator permits the IP addresses of the host: they are in
 *  networks of this machine, not of the proxy. */
type TunnelFinder = (
  connection: Connection,
  target: { host: string; port: number },
  callback: (error: Error | null, tunnel?: Socket) => void,
) => void

function tunnelFinder(proxy: URL, allow: Cidr[], find: LookupFunction): TunnelFinder {
  return (connection, { host, port }, callback) => {
    const onFound = (addresses: string[]): void => {
      const address = addresses.find((each) => judgeAddress(each, allow) === 'public')
      if (address === undefined) callback(null)
      else
        connection.opening = openTunnel(proxy, { address, port }, (error, tunnel) => {
          if (tunnel) Object.assign(connection, { connectedAt: performance.now(), address })
          callback(error, tunnel)
        })
    }
    if (!connection.isNamed) onFound([host])
    else
      find(host, { all: true }, (error, found) => {
        const problem = error ?? connection.abandonedBy
        if (problem) return callback(problem)
        connection.lookedUpAt = performance.now()
        return onFound((found as LookupAddress[]).map(({ address }) => address))
      })
  }
}

/** The account whose request needs the connection: its concurrent look-ups are limited. undici
 *  calls one look-up function for all requests, without the account. */
const lookupAccountId = new AsyncLocalStorage<string>()

/** Refuses a name when any of its IP addresses is blocked: we do not choose the one that is
 *  connected to. For localhost, it leaves out the blocked ones if another one is permitted: the hosts
 *  file often has 127.0.0.1 and ::1, and the operator permits one of them. */
function guardedLookup(protocol: string, allow: Cidr[], lookup: Lookup): LookupFunction {
  return (
    hostname: string,
    options: LookupOptions,
    callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ) => {
    const { family } = options
    const accountId = lookupAccountId.getStore() ?? ''
    lookup(hostname, { family, accountId }, (error, addresses) => {
      if (error) return callback(error, [])
      const refusals = addresses.map(({ address }) => findRefusal(address, protocol, allow))
      const permitted = addresses.filter((_, index) => !refusals[index])
      const blocked = refusals.find((each) => each !== undefined)
      const [first] = permitted
      if (blocked && !(first && isLocalhost(hostname))) return callback(blocked, [])
      if (!first) return callback(new Error(`${hostname} has no IP address.`), [])
      return options.all ? callback(null, permitted) : callback(null, first.address, first.family)
    })
  }
}
