/** Where webhooks may connect to: to the public internet over https, and to what the operator allows. Decided on the address that is
 *  actually connected to, so a name that changes its mind (DNS rebinding) gains nothing. What cannot be decided is refused. */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector } from 'undici'
import { Refused } from '../records/refused.ts'
import type { Cidr } from '../server/config.ts'

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
  const allowed = allow.some(([range, bits]) => range.kind() === ip.kind() && ip.match([range, bits]))
  if (allowed) return 'allowed'
  if (ip.range() !== 'unicast' || ip.toString() === AZURE_PLATFORM) return 'blocked'
  if (ip.kind() === 'ipv4') return 'public'
  // IANA IPv6 address space: only 2000::/3 is given out.
  return ip.match(GLOBAL_UNICAST) ? 'public' : 'blocked'
}

/** Public by number, but each virtual machine there reaches its own platform by it, metadata included. */
const AZURE_PLATFORM = '168.63.129.16'
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** May this protocol go to this address? Plain http only to what the operator allows. */
function assertReachable(address: string, protocol: string, allow: Cidr[]): void {
  const verdict = judgeAddress(address, allow)
  if (verdict === 'allowed') return
  if (verdict === 'blocked') throw new BlockedAddress(`The address ${address} is not public, and webhooks may not connect to it.`)
  if (protocol !== 'https:') throw new BlockedAddress(`The address ${address} may only be reached over https.`)
}

/** Accepts the address of a new webhook, normalised. Throws `UnacceptableUrl`. Names are checked when they are connected to. */
export function assertWebhookUrl(text: string, allow: Cidr[]): string {
  if (text.length > MAX_URL_LENGTH) throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  if (!URL.canParse(text)) throw new UnacceptableUrl('The URL must be a complete address such as https://example.com/webhooks.')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new UnacceptableUrl('The URL must begin with https://.')
  if (url.username !== '' || url.password !== '') throw new UnacceptableUrl('The URL must not hold a user name or password.')
  if (url.href.length > MAX_URL_LENGTH) throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  url.hash = ''

  const host = unbracketed(url.hostname)
  if (isIP(host) === 0) {
    // RFC 6761 §6.3: localhost is always loopback, so it is decided here like a literal.
    const loopback = /^(.*\.)?localhost\.?$/i.test(host) ? '127.0.0.1' : undefined
    if (loopback && judgeAddress(loopback, allow) !== 'allowed') throw new UnacceptableUrl('The URL must lead to a public address.')
    // With http, the addresses that the name has when it is connected to must all be allowed: there must be such ranges at least.
    if (url.protocol === 'http:' && allow.length === 0) throw new UnacceptableUrl('The URL must begin with https://.')
    return url.href
  }
  const verdict = judgeAddress(host, allow)
  if (verdict === 'blocked') throw new UnacceptableUrl(`The URL must lead to a public address, and ${host} is not one.`)
  if (verdict === 'public' && url.protocol === 'http:') throw new UnacceptableUrl('The URL must begin with https://.')
  return url.href
}

const KEEP_ALIVE_MS = 4_000

/** Connections that are checked three times: the host if it is a literal (the system looks no literal up), every address that its name has,
 *  and the address that was connected to. */
export function guardedAgent(allow: Cidr[]): Agent {
  const connectors = { 'https:': guardedConnector('https:', allow), 'http:': guardedConnector('http:', allow) }
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The deadline of the attempt covers all of it, a slow trickle too.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(options, callback) {
      const connector = options.protocol === 'https:' ? connectors['https:'] : connectors['http:']
      connector(options, callback)
    },
  })
}

function guardedConnector(protocol: 'https:' | 'http:', allow: Cidr[]): buildConnector.connector {
  const connect = buildConnector({
    timeout: 0,
    lookup: guardedLookup(protocol, allow),
    // Node's 250 ms would give up on a distant host that has several addresses.
    autoSelectFamilyAttemptTimeout: 2_000,
  } as buildConnector.BuildOptions)
  return (options, callback) => {
    try {
      const host = unbracketed(options.hostname)
      if (isIP(host) !== 0) assertReachable(host, protocol, allow)
    } catch (error) {
      callback(error as Error, null)
      return
    }
    connect(options, (...[error, socket]) => {
      if (error) return callback(error, null)
      try {
        assertReachable(socket.remoteAddress ?? 'unknown', protocol, allow)
      } catch (blocked) {
        socket.destroy()
        return callback(blocked as Error, null)
      }
      return callback(null, socket)
    })
  }
}

/** A name with any bad address is refused whole: which of them would be connected to is not ours to say. */
function guardedLookup(protocol: string, allow: Cidr[]): LookupFunction {
  return (
    hostname: string,
    options: LookupOptions,
    callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error as Error, [])
      try {
        for (const { address } of addresses) assertReachable(address, protocol, allow)
      } catch (blocked) {
        return callback(blocked as Error, [])
      }
      const [first] = addresses
      if (options.all || !first) return callback(first ? null : new Error(`${hostname} has no address`), addresses)
      return callback(null, first.address, first.family)
    })
  }
}

function unbracketed(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}
