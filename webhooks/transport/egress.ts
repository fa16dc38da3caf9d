/** Egress control: webhooks may connect to the public internet over https, and to the ranges that
 *  the operator allows. Undecidable cases are refused. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Refused } from '../../errors.ts'

/** A range of IP addresses: an IP address, and the length of the prefix in bits. */
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

/** This IP address is in a public range, but virtual machines on Azure reach their platform and its
 *  metadata through it. */
const AZURE_PLATFORM = '168.63.129.16'
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** Why this protocol may not connect to this IP address. Undefined: it may. Plain http may only
 *  reach allowed ranges. */
export function findRefusal(
  address: string,
  protocol: string,
  allow: Cidr[],
): BlockedAddress | undefined {
  const verdict = judgeAddress(address, allow)
  if (verdict === 'blocked')
    return new BlockedAddress(
      `Webhooks may not connect to the IP address ${address}, ` +
        'which is not public and not in WEBHOOK_ALLOW_ADDRESSES.',
    )
  if (verdict === 'public' && protocol !== 'https:')
    return new BlockedAddress(`Webhooks may only connect to the IP address ${address} over https.`)
  return undefined
}

/** Returns the normalised URL. Throws `UnacceptableUrl`. Host names are checked with each
 *  connection: see guarded-agent.ts. */
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
  if (url.port === '0')
    throw new UnacceptableUrl('The URL must have a port from 1 to 65535, or none.')
  // Percent-encoding may have made the URL longer.
  if (url.href.length > MAX_URL_LENGTH)
    throw new UnacceptableUrl(`The URL must be at most ${MAX_URL_LENGTH} characters long.`)
  url.hash = ''

  const host = removeBrackets(url.hostname).replace(/\.+$/, '')
  if (isIP(host) === 0) {
    if (isLocalhost(host) && !LOOPBACK.some((ip) => judgeAddress(ip, allow) === 'allowed'))
      throw notPublic(host)
    // With http every IP address of the name must be in an allowed range. Without such ranges no
    // connection can succeed.
    if (url.protocol === 'http:' && allow.length === 0)
      throw new UnpermittedUrl('The URL must begin with https://.')
    return url.href
  }
  const verdict = judgeAddress(host, allow)
  if (verdict === 'blocked') throw notPublic(host)
  if (verdict === 'public' && url.protocol === 'http:')
    throw new UnpermittedUrl('The URL must begin with https://.')
  return url.href
}

function notPublic(host: string): UnpermittedUrl {
  return new UnpermittedUrl(
    `The URL must point to a public IP address, and ${host} is not public. ` +
      'An operator can permit it with WEBHOOK_ALLOW_ADDRESSES.',
  )
}

const LOOPBACK = ['127.0.0.1', '::1']

/** RFC 6761 §6.3: these names are always loopback. */
export function isLocalhost(host: string): boolean {
  return /^(.*\.)?localhost\.?$/i.test(host)
}

/** The host name of a URL without the brackets of an IPv6 address. */
export function removeBrackets(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}
