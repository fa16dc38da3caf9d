/** Egress control: webhooks may connect to the public internet over https, and to the ranges that
 *  the operator allows. The check covers the IP address of the actual connection, so DNS rebinding
 *  is useless. Undecidable cases are refused. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { Refused } from '../../errors.ts'
import { type Lookup, newNameLookup } from './name-lookup.ts'

/** An IP address range: its first address and the bits of its prefix. */
export type Cidr = ReturnType<typeof ipaddr.parseCIDR>

/** A connection was refused before a byte was sent. */
export class BlockedAddress extends Error {
  override name = 'BlockedAddress'
}

/** The URL of a webhook is not acceptable. The message is for the person who entered it. */
export class UnacceptableUrl extends Refused {
  override name = 'UnacceptableUrl'
}

/** The operator can permit the URL with WEBHOOK_ALLOW_ADDRESSES. */
export class UnpermittedUrl extends UnacceptableUrl {
  override name = 'UnpermittedUrl'
}

const MAX_URL_LENGTH = 2_048

type Verdict = 'public' | 'allowed' | 'blocked'

/** Classifies an IP address. Other text is blocked. */
export function judgeAddress(address: string, allow: Cidr[]): Verdict {
  // IPv4-compatible IPv6 (RFC 4291 §2.5.5.1, deprecated) is a different IP address, but ipaddr.js
  // reads ::8.8.8.8 as 8.8.8.8.
  if (!ipaddr.isValid(address) || /^::\d+\./.test(address)) return 'blocked'
  // `process` converts IPv4-mapped IPv6 (::ffff:127.0.0.1) to the IPv4 address that the system
  // connects to.
  const ip = ipaddr.process(address)
  const allowed = allow.some(
    ([range, bits]) => range.kind() === ip.kind() && ip.match([range, bits]),
  )
  if (allowed) return 'allowed'
  if (ip.range() !== 'unicast' || ip.toString() === AZURE_PLATFORM) return 'blocked'
  if (ip.kind() === 'ipv4') return 'public'
  // IANA IPv6 address space: only 2000::/3 is allocated.
  return ip.match(GLOBAL_UNICAST) ? 'public' : 'blocked'
}

/** In a public range, but virtual machines on Azure reach their platform and its metadata through
 *  it. */
const AZURE_PLATFORM = '168.63.129.16'
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** The reason why this protocol may not connect to this IP address. Plain http may only reach
 *  allowed ranges. */
function refusal(address: string, protocol: string, allow: Cidr[]): BlockedAddress | undefined {
  const verdict = judgeAddress(address, allow)
  if (verdict === 'blocked')
    return new BlockedAddress(
      `Webhooks may not connect to the IP address ${address}, which is not public.`,
    )
  if (verdict === 'public' && protocol !== 'https:')
    return new BlockedAddress(`Webhooks may only connect to the IP address ${address} over https.`)
  return undefined
}

/** Returns the normalised URL. Throws `UnacceptableUrl`. Host names are checked later, with each
 *  connection. */
export function parseWebhookUrl(text: string, allow: Cidr[]): string {
  if (text.length > MAX_URL_LENGTH)
    throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  if (!URL.canParse(text))
    throw new UnacceptableUrl('Enter a complete URL, for example https://example.com/webhooks.')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new UnacceptableUrl('The URL must begin with https://.')
  if (url.username !== '' || url.password !== '')
    throw new UnacceptableUrl('The URL must not contain a user name or password.')
  if (url.href.length > MAX_URL_LENGTH)
    throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  url.hash = ''

  const host = removeBrackets(url.hostname).replace(/\.+$/, '')
  if (isIP(host) === 0) {
    // RFC 6761 §6.3: localhost is always loopback, so it is checked here like a literal.
    const loopback = /^(.*\.)?localhost$/i.test(host) ? '127.0.0.1' : undefined
    if (loopback && judgeAddress(loopback, allow) !== 'allowed')
      throw new UnpermittedUrl('The URL must point to a public IP address.')
    // With http every IP address of the name must be in an allowed range. Without such ranges no
    // connection can succeed.
    if (url.protocol === 'http:' && allow.length === 0)
      throw new UnpermittedUrl('The URL must begin with https://.')
    return url.href
  }
  const verdict = judgeAddress(host, allow)
  if (verdict === 'blocked')
    throw new UnpermittedUrl(
      `The URL must point to a public IP address, and ${host} is not public.`,
    )
  if (verdict === 'public' && url.protocol === 'http:')
    throw new UnpermittedUrl('The URL must begin with https://.')
  return url.href
}

const KEEP_ALIVE_MS = 4_000
const MAX_HEADER_BYTES = 16 * 1024

/** An agent that checks each connection twice: before it is opened, the IP literal or every IP
 *  address of the name, and once it is open, its IP address. A `Trace` in `opaque` of a request
 *  receives the connection that carries the request. */
export function guardedAgent(
  allow: Cidr[],
  { lookup = newNameLookup() }: { lookup?: Lookup } = {},
): Agent {
  const connectors = {
    'https:': guardedConnector('https:', allow, lookup),
    'http:': guardedConnector('http:', allow, lookup),
  }
  const newClient = (origin: URL, options: object): Client =>
    new TracedClient(
      origin,
      options,
      origin.protocol === 'https:' ? connectors['https:'] : connectors['http:'],
    )
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of the attempt covers everything, including a slow trickle.
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
        this.connection = lookingUpFor.run(this.#accountId, () => connect(target, callback))
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
  #socket: Socket | undefined

  constructor(host: string, protocol: string) {
    this.isNamed = isIP(host) === 0
    this.isSecure = protocol === 'https:'
  }

  /** Calls `onConnect` with the IP address, before anything is sent. */
  watch(socket: Socket, onConnect: (address: string) => void): void {
    this.#socket = socket
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
    if (this.readyAt === undefined) this.#socket?.destroy(reason)
  }
}

/** Returns undefined after it has called back with an error, for a blocked IP literal. */
type GuardedConnector = (
  target: buildConnector.Options,
  callback: buildConnector.Callback,
) => Connection | undefined

function guardedConnector(
  protocol: 'https:' | 'http:',
  allow: Cidr[],
  lookup: Lookup,
): GuardedConnector {
  const connect = buildConnector({
    // The deadline of the attempt covers connecting.
    timeout: 0,
    lookup: guardedLookup(protocol, allow, lookup),
    // Node's default of 250 ms is too short for a distant host with several IP addresses.
    autoSelectFamilyAttemptTimeout: 2_000,
    // undici declares that a connector returns nothing, but it returns the socket.
  } as buildConnector.BuildOptions) as (...args: Parameters<buildConnector.connector>) => Socket

  return (target, callback) => {
    const host = removeBrackets(target.hostname)
    if (isIP(host) !== 0) {
      const blocked = refusal(host, protocol, allow)
      if (blocked) {
        callback(blocked, null)
        return undefined
      }
    }
    const connection = new Connection(host, protocol)
    const socket = connect(target, (...[error, ready]) => {
      if (error) return callback(error, null)
      // `watch` has destroyed the socket, which undici does not notice.
      if (ready.errored) return callback(ready.errored, null)
      connection.readyAt = performance.now()
      return callback(null, ready)
    })
    connection.watch(socket, (address) => {
      const blocked = refusal(address, protocol, allow)
      if (blocked) socket.destroy(blocked)
    })
    return connection
  }
}

/** The account whose request needs the connection. The concurrent look-ups of an account are
 *  limited. undici calls one look-up function for all requests, without the account. */
const lookingUpFor = new AsyncLocalStorage<string>()

/** Refuses a name when any of its IP addresses is blocked: we do not choose the one that is
 *  connected to. */
function guardedLookup(protocol: string, allow: Cidr[], lookup: Lookup): LookupFunction {
  return (
    hostname: string,
    options: LookupOptions,
    callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ) => {
    const { family } = options
    const accountId = lookingUpFor.getStore() ?? ''
    lookup(hostname, { family, accountId }, (error, addresses) => {
      if (error) return callback(error, [])
      const blocked = addresses
        .map(({ address }) => refusal(address, protocol, allow))
        .find((each) => each !== undefined)
      if (blocked) return callback(blocked, [])
      const [first] = addresses
      if (!first) return callback(new Error(`${hostname} has no IP address.`), [])
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family)
    })
  }
}

function removeBrackets(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}
