/** Where webhooks may connect to: to the public internet over https, and to what the operator allows. Decided on the address that is
 *  actually connected to, so a name that changes its mind (DNS rebinding) gains nothing. What cannot be decided is refused. */
import {
  type LookupAddress,
  type LookupAllOptions,
  type LookupOptions,
  lookup as systemLookup,
} from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { Refused } from '../../errors.ts'

/** An IP address range: its first address and the bits of its prefix. */
export type Cidr = ReturnType<typeof ipaddr.parseCIDR>

/** A connection that was refused before a byte was sent. */
export class BlockedAddress extends Error {
  override name = 'BlockedAddress'
}

/** A webhook's address that cannot be accepted. Its message is for the person who entered it. */
export class UnacceptableUrl extends Refused {
  override name = 'UnacceptableUrl'
}

const MAX_URL_LENGTH = 2_048

type Verdict = 'public' | 'allowed' | 'blocked'

/** What kind of address this is. Text that is no IP address is blocked. */
export function judgeAddress(address: string, allow: Cidr[]): Verdict {
  // IPv4-compatible IPv6 (RFC 4291 §2.5.5.1, deprecated) is an address of its own, but ipaddr.js reads ::8.8.8.8 as 8.8.8.8.
  if (!ipaddr.isValid(address) || /^::\d+\./.test(address)) return 'blocked'
  // `process` turns IPv4-mapped IPv6 (::ffff:127.0.0.1) into the IPv4 address that the system connects to.
  const ip = ipaddr.process(address)
  const allowed = allow.some(
    ([range, bits]) => range.kind() === ip.kind() && ip.match([range, bits]),
  )
  if (allowed) return 'allowed'
  if (ip.range() !== 'unicast' || ip.toString() === AZURE_PLATFORM) return 'blocked'
  if (ip.kind() === 'ipv4') return 'public'
  // IANA IPv6 address space: only 2000::/3 is given out.
  return ip.match(GLOBAL_UNICAST) ? 'public' : 'blocked'
}

/** Public by number, but each virtual machine there reaches its own platform by it, metadata included. */
const AZURE_PLATFORM = '168.63.129.16'
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** Why this protocol may not go to this address, if so. Plain http only to what the operator allows. */
function refusal(address: string, protocol: string, allow: Cidr[]): BlockedAddress | undefined {
  const verdict = judgeAddress(address, allow)
  if (verdict === 'blocked')
    return new BlockedAddress(
      `The address ${address} is not public, and webhooks may not connect to it.`,
    )
  if (verdict === 'public' && protocol !== 'https:')
    return new BlockedAddress(`The address ${address} may only be reached over https.`)
  return undefined
}

/** Accepts the address of a new webhook, normalised. Throws `UnacceptableUrl`. Names are checked when they are connected to. */
export function assertWebhookUrl(text: string, allow: Cidr[]): string {
  if (text.length > MAX_URL_LENGTH)
    throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  if (!URL.canParse(text))
    throw new UnacceptableUrl(
      'The URL must be a complete address such as https://example.com/webhooks.',
    )
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new UnacceptableUrl('The URL must begin with https://.')
  if (url.username !== '' || url.password !== '')
    throw new UnacceptableUrl('The URL must not hold a user name or password.')
  if (url.href.length > MAX_URL_LENGTH)
    throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  url.hash = ''

  const host = unbracketed(url.hostname).replace(/\.+$/, '')
  if (isIP(host) === 0) {
    // RFC 6761 §6.3: localhost is always loopback, so it is decided here like a literal.
    const loopback = /^(.*\.)?localhost$/i.test(host) ? '127.0.0.1' : undefined
    if (loopback && judgeAddress(loopback, allow) !== 'allowed')
      throw new UnacceptableUrl('The URL must lead to a public address.')
    // With http, the addresses that the name has when it is connected to must all be allowed: there must be such ranges at least.
    if (url.protocol === 'http:' && allow.length === 0)
      throw new UnacceptableUrl('The URL must begin with https://.')
    return url.href
  }
  const verdict = judgeAddress(host, allow)
  if (verdict === 'blocked')
    throw new UnacceptableUrl(`The URL must lead to a public address, and ${host} is not one.`)
  if (verdict === 'public' && url.protocol === 'http:')
    throw new UnacceptableUrl('The URL must begin with https://.')
  return url.href
}

const KEEP_ALIVE_MS = 4_000
const MAX_HEADER_BYTES = 16 * 1024

/** All addresses of a name, as `dns.lookup` finds them. */
export type Lookup = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Connections that are checked three times: the host if it is a literal (the system looks no literal up), every address that its name has,
 *  and the address that was connected to. A request that brings a `Trace` as its `opaque` learns which of them carries it. */
export function guardedAgent(
  allow: Cidr[],
  { lookup = systemLookup }: { lookup?: Lookup } = {},
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
    // The deadline of the attempt covers all of it, a slow trickle too.
    headersTimeout: 0,
    bodyTimeout: 0,
    factory: (origin, options) => new Pool(origin, { ...options, factory: newClient }),
  })
}

/** Which connection carries a request. */
export class Trace {
  client: TracedClient | undefined

  get connection(): Connection | undefined {
    return this.client?.connection
  }
}

/** undici passes them on to the client as they are. */
export interface TracedOptions extends Dispatcher.DispatchOptions {
  opaque?: Trace
}

/** A client has one connection at a time, and the agent's pools give it one request at a time. */
class TracedClient extends Client {
  connection: Connection | undefined

  constructor(origin: URL, options: Client.Options, connect: GuardedConnector) {
    super(origin, {
      ...options,
      connect: (target, callback) => {
        this.connection = connect(target, callback)
      },
    })
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    const { opaque } = options as TracedOptions
    if (opaque) opaque.client = this
    return super.dispatch(options, handler)
  }
}

/** A connection and when each step of making it was done, in milliseconds of `performance.now()`. */
export class Connection {
  readonly startedAt = performance.now()
  /** Stays undefined for an IP literal, as there is nothing to look up. */
  lookedUpAt: number | undefined
  connectedAt: number | undefined
  /** When requests could be sent: with TLS, when the handshake was done. */
  readyAt: number | undefined
  /** The IP address that was connected to. */
  address: string | null = null
  readonly isNamed: boolean
  readonly isSecure: boolean
  #socket: Socket | undefined

  constructor(host: string, protocol: string) {
    this.isNamed = isIP(host) === 0
    this.isSecure = protocol === 'https:'
  }

  /** Calls `onConnect` with the address, before anything is sent. */
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

  /** Gives up making it. Does nothing once it is made. */
  abandon(reason: Error): void {
    if (this.readyAt === undefined) this.#socket?.destroy(reason)
  }
}

/** Undefined: the host is a literal that may not be connected to. The callback has been called then. */
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
    // The deadline of the attempt abandons it.
    timeout: 0,
    lookup: guardedLookup(protocol, allow, lookup),
    // Node's 250 ms would give up on a distant host that has several addresses.
    autoSelectFamilyAttemptTimeout: 2_000,
    // Its type says void.
  } as buildConnector.BuildOptions) as (...args: Parameters<buildConnector.connector>) => Socket

  return (target, callback) => {
    const host = unbracketed(target.hostname)
    if (isIP(host) !== 0) {
      const blocked = refusal(host, protocol, allow)
      if (blocked) {
        callback(blocked, null)
        return undefined
      }
    }
    const connection = new Connection(host, protocol)
    const socket = connect(target, (...[error, socket]) => {
      if (error) return callback(error, null)
      if (socket.errored) return callback(socket.errored, null)
      connection.readyAt = performance.now()
      return callback(null, socket)
    })
    connection.watch(socket, (address) => {
      const blocked = refusal(address, protocol, allow)
      if (blocked) socket.destroy(blocked)
    })
    return connection
  }
}

/** A name with any bad address is refused whole: which of them would be connected to is not ours to say. */
function guardedLookup(protocol: string, allow: Cidr[], ask: Lookup): LookupFunction {
  const lookup = shared(ask)
  return (
    hostname: string,
    options: LookupOptions,
    callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, [])
      const blocked = addresses
        .map(({ address }) => refusal(address, protocol, allow))
        .find((each) => each !== undefined)
      if (blocked) return callback(blocked, [])
      const [first] = addresses
      if (options.all || !first)
        return callback(first ? null : new Error(`${hostname} has no address`), addresses)
      return callback(null, first.address, first.family)
    })
  }
}

/** One question for each name at a time: the system answers few at once, and a name that hangs must not take all of those. */
function shared(ask: Lookup): Lookup {
  const waiting = new Map<string, Parameters<Lookup>[2][]>()
  return (hostname, options, callback) => {
    const key = `${options.family} ${hostname}`
    const others = waiting.get(key)
    if (others) {
      others.push(callback)
      return
    }
    const all = [callback]
    waiting.set(key, all)
    ask(hostname, options, (...answer) => {
      waiting.delete(key)
      for (const each of all) each(...answer)
    })
  }
}

function unbracketed(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}
