/** IP addresses that webhooks may not use, and what an attempt to one of them results in. */
import { isIP } from 'node:net'
import { afterAll, beforeAll, expect } from 'vitest'
import { type Listener, startListener } from '../receiver.ts'
import type { sendTo } from './single-attempt.ts'

/** Every range outside the public internet: its first and last IP address, or an important one. */
const ADDRESSES: [what: string, ...addresses: string[]][] = [
  ['this network (RFC 1122)', '0.0.0.0', '0.255.255.255'],
  ['loopback (RFC 1122, 4291)', '127.0.0.1', '127.0.0.2', '127.255.255.255', '::1'],
  ['unspecified (RFC 4291)', '::'],
  [
    'private (RFC 1918)',
    ...['10.0.0.0', '10.255.255.255', '172.16.0.0'],
    ...['172.31.255.255', '192.168.0.0', '192.168.255.255'],
  ],
  ['unique local (RFC 4193)', 'fc00::1', 'fdff:ffff::1'],
  ['link-local (RFC 3927, 4291)', '169.254.0.0', '169.254.255.255', 'fe80::1', 'febf::1'],
  ['site-local (RFC 3879)', 'fec0::1', 'feff::1'],
  ['carrier-grade NAT (RFC 6598)', '100.64.0.0', '100.127.255.255'],
  [
    'metadata: AWS, Google, Azure, Oracle, DigitalOcean and others',
    '169.254.169.254',
    'fd00:ec2::254',
    'fd00:c1::a9fe:a9fe',
    'fd20:ce::254',
  ],
  ['metadata: containers on AWS', '169.254.170.2', 'fd00:ec2::23'],
  ['metadata: Alibaba, Oracle', '100.100.100.200', '192.0.0.192'],
  ['the platform of Azure', '168.63.129.16'],
  ['multicast (RFC 5771, 4291)', '224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  ['reserved and broadcast (RFC 1112, 919)', '240.0.0.1', '255.255.255.254', '255.255.255.255'],
  ['IETF protocol assignments (RFC 6890)', '192.0.0.1', '192.0.0.170'],
  [
    'documentation (RFC 5737, 3849, 9637)',
    ...['192.0.2.1', '198.51.100.1', '203.0.113.1'],
    ...['2001:db8::1', '3fff::1', '3fff:fff:ffff::1'],
  ],
  ['benchmarking (RFC 2544, 5180)', '198.18.0.0', '198.19.255.255', '2001:2::1'],
  [
    'AS112, AMT and 6to4 relays (RFC 7534, 7535, 7450, 7526)',
    ...['192.31.196.1', '192.175.48.1', '2620:4f:8000::1', '192.52.193.1', '192.88.99.1'],
  ],
  ['IPv4-mapped (RFC 4291)', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'],
  ['IPv4-compatible (RFC 4291)', '::127.0.0.1', '::7f00:1', '::8.8.8.8', '::808:808'],
  ['IPv4-translated (RFC 2765)', '::ffff:0:127.0.0.1', '::ffff:0:808:808'],
  [
    'NAT64 (RFC 6052, 8215)',
    ...['64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '64:ff9b::808:808'],
    ...['64:ff9b:1::1', '64:ff9b:1:ffff::a00:1'],
  ],
  ['6to4 (RFC 3056)', '2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1'],
  ['Teredo (RFC 4380)', '2001::1', '2001:0:808:808::1'],
  ['ORCHID (RFC 4843, 7343)', '2001:10::1', '2001:20::1'],
  ['segment routing (RFC 9602)', '5f00::1'],
  ['discard-only (RFC 6666)', '100::1'],
  ['not allocated (RFC 4291)', '4000::1', 'e000::1'],
]
export const addresses = ADDRESSES.flatMap(([what, ...some]) =>
  some.map((address) => ({ address, what })),
)

export const inUrl = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address)
export function expectBlocked({ result, connects }: Awaited<ReturnType<typeof sendTo>>): void {
  expect(result).toMatchObject({
    outcome: 'blocked',
    status: null,
    responseHeaders: null,
    responseBody: null,
    address: null,
  })
  expect(connects).toBe(0)
}

/** Starts a listener on 127.0.0.1 for the tests of one file, and fails if it gets a connection.
 *  Returns a function that returns the listener during the tests. */
export function expectNoConnections(): () => Listener {
  let listener: Listener
  beforeAll(async () => {
    listener = await startListener()
  })
  afterAll(async () => {
    const connections = listener.connections()
    await listener[Symbol.asyncDispose]()
    expect(connections).toBe(0)
  })
  return () => listener
}
