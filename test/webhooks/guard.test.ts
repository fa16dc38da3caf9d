/** Where webhooks can never go, however the address is written and whatever stands behind it. */
import { createHook } from 'node:async_hooks'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  assertWebhookUrl,
  guardedAgent,
  judgeAddress,
  type Lookup,
  UnacceptableUrl,
} from '../../webhooks/transport/egress.ts'
import { type SendResult, send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { type Listener, startListener, startReceiver } from '../receiver.ts'
import { type Deliveries, startDeliveries } from './deliveries.ts'

/** Every range that is not the public internet, by its first and last address or the one that is
 *  sought in it. */
const ADDRESSES: [what: string, ...addresses: string[]][] = [
  ['this network (RFC 1122)', '0.0.0.0', '0.255.255.255'],
  ['loopback (RFC 1122, 4291)', '127.0.0.1', '127.0.0.2', '127.255.255.255', '::1'],
  ['unspecified (RFC 4291)', '::'],
  [
    'private (RFC 1918)',
    '10.0.0.0',
    '10.255.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '192.168.0.0',
    '192.168.255.255',
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
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '2001:db8::1',
    '3fff::1',
    '3fff:fff:ffff::1',
  ],
  ['benchmarking (RFC 2544, 5180)', '198.18.0.0', '198.19.255.255', '2001:2::1'],
  [
    'AS112, AMT and 6to4 relays (RFC 7534, 7535, 7450, 7526)',
    '192.31.196.1',
    '192.175.48.1',
    '2620:4f:8000::1',
    '192.52.193.1',
    '192.88.99.1',
  ],
  ['IPv4-mapped (RFC 4291)', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'],
  ['IPv4-compatible (RFC 4291)', '::127.0.0.1', '::7f00:1', '::8.8.8.8', '::808:808'],
  ['IPv4-translated (RFC 2765)', '::ffff:0:127.0.0.1', '::ffff:0:808:808'],
  [
    'NAT64 (RFC 6052, 8215)',
    '64:ff9b::7f00:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '64:ff9b:1:ffff::a00:1',
  ],
  ['6to4 (RFC 3056)', '2002:7f00:1::', '2002:a9fe:a9fe::1', '2002:808:808::1'],
  ['Teredo (RFC 4380)', '2001::1', '2001:0:808:808::1'],
  ['ORCHID (RFC 4843, 7343)', '2001:10::1', '2001:20::1'],
  ['segment routing (RFC 9602)', '5f00::1'],
  ['discard-only (RFC 6666)', '100::1'],
  ['not given out (RFC 4291)', '4000::1', 'e000::1'],
]
const addresses = ADDRESSES.flatMap(([what, ...some]) => some.map((address) => ({ address, what })))

/** Hosts that mean an address above, as they can be written in a URL. */
const SPELLINGS: [what: string, ...hosts: string[]][] = [
  ['decimal', '2130706433', '2852039166', '0', '4294967295'],
  ['hexadecimal', '0x7f000001', '0x7f.0x0.0x0.0x1', '0xa9fea9fe', '0x7f.1', '0x'],
  ['octal', '0177.0.0.1', '017700000001', '00000177.0.0.1', '0251.0376.0251.0376'],
  ['short', '127.1', '127.0.1', '10.1', '169.254.43518'],
  ['a dot at the end', '127.0.0.1.', '169.254.169.254.', '0x7f.1.'],
  ['other digits and dots', '１２７.0.0.1', '①②⑦.0.0.1', '127。0。0。1', '127．0．0．1'],
  ['percent-encoded', '%31%32%37.0.0.1', '%30x7f.1', '169.254%2e169.254'],
  ['white space within', '127.0.\n0.1', '\t127.0.0.1', '127\r.0.0.1'],
  [
    'long IPv6',
    '[0:0:0:0:0:0:0:1]',
    '[0000:0000::0001]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[0:0:0:0:0:FFFF:7F00:1]',
  ],
]
const spellings = SPELLINGS.flatMap(([what, ...hosts]) => hosts.map((host) => ({ host, what })))

const LOCALHOSTS = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'api.localhost',
  'a.b.localhost.',
  'loc%61lhost',
  'ｌocalhost',
  'lo\u00ADcalhost',
]

/** Refused as they are, whatever they mean. */
const MALFORMED: [what: string, ...urls: string[]][] = [
  ['a zone id', 'https://[fe80::1%eth0]/', 'https://[fe80::1%25eth0]/', 'https://[::1%25lo]/'],
  [
    'no address',
    'https://256.1.1.1/',
    'https://1.1.1.1.1/',
    'https://127.0.0.08/',
    'https://127.0.0.1%00.example.com/',
    'https:///',
  ],
  [
    'a user',
    'https://user@example.com/',
    'https://user:password@example.com/',
    'https://example.com@127.0.0.1/',
    'https://:@example.com:1@127.0.0.1/',
  ],
  ['a backslash', 'https://127.0.0.1\\@example.com/', 'https:\\\\127.0.0.1\\'],
  [
    'another protocol',
    'ftp://127.0.0.1/',
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'unix:/var/run/docker.sock',
    'data:,x',
  ],
  ['two dots at the end', 'https://127.0.0.1../', 'https://localhost../'],
]
const malformed = MALFORMED.flatMap(([what, ...urls]) => urls.map((url) => ({ url, what })))

const inUrl = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address)
const cidrs = (...ranges: string[]): ReturnType<typeof ipaddr.parseCIDR>[] =>
  ranges.map((range) => ipaddr.parseCIDR(range))
const post = { headers: {}, body: Buffer.from('{}'), timeoutMs: 5_000 }

/** Sends, and counts the connections that this process began meanwhile, whether or not anything
 *  answered. */
async function sendTo(
  url: string,
  { allow = cidrs(), lookup }: { allow?: ReturnType<typeof cidrs>; lookup?: Lookup } = {},
) {
  let connects = 0
  const hook = createHook({
    init: (_, type) => void (type === 'TCPCONNECTWRAP' && connects++),
  }).enable()
  const agent = guardedAgent(allow, { lookup })
  try {
    const result = await send(agent, { ...post, url })
    return { result, connects }
  } finally {
    await agent.destroy()
    hook.disable()
  }
}

function expectBlocked({ result, connects }: { result: SendResult; connects: number }): void {
  expect(result).toMatchObject({
    outcome: 'blocked',
    status: null,
    responseHeaders: null,
    responseBody: null,
    address: null,
  })
  expect(connects).toBe(0)
}

let listener: Listener
beforeAll(async () => {
  listener = await startListener()
})
afterAll(async () => {
  const connections = listener.connections()
  await listener[Symbol.asyncDispose]()
  // Whatever was sent to 127.0.0.1, in whatever spelling, bore this port.
  expect(connections).toBe(0)
})

test('a connection that is allowed is counted', async () => {
  await using receiver = await startReceiver({ validate: false })
  const { result, connects } = await sendTo(receiver.url, { allow: cidrs('127.0.0.0/8') })
  expect(result).toMatchObject({ outcome: 'success', address: '127.0.0.1' })
  expect([connects, receiver.connections()]).toEqual([1, 1])
})

describe('an address', () => {
  test.each(addresses)(
    '$address, $what: refused at creation, blocked at delivery',
    async ({ address }) => {
      expect(judgeAddress(address, [])).toBe('blocked')
      for (const protocol of ['https', 'http']) {
        const url = `${protocol}://${inUrl(address)}:${listener.port}/`
        expect(() => assertWebhookUrl(url, [])).toThrow(UnacceptableUrl)
        const sent = await sendTo(url)
        expectBlocked(sent)
        expect(sent.result.error).toMatch(
          /^Webhooks may not connect to the IP address [\da-f.:]+, which is not public\.$/,
        )
      }
    },
  )

  test.each(spellings)(
    '$host, $what: refused at creation, blocked at delivery',
    async ({ host }) => {
      const url = `https://${host}:${listener.port}/`
      expect(() => assertWebhookUrl(url, [])).toThrow('The URL must point to a public IP address')
      const sent = await sendTo(url)
      expectBlocked(sent)
      expect(sent.result.error).toContain('not public')
    },
  )

  test.each(LOCALHOSTS)('%s: refused at creation, blocked at delivery', async (host) => {
    const url = `https://${host}:${listener.port}/`
    expect(() => assertWebhookUrl(url, [])).toThrow('The URL must point to a public IP address')
    const { result, connects } = await sendTo(url)
    expect([connects, result.status]).toEqual([0, null])
    // Not every system knows the names below localhost.
    expect(result.outcome === 'blocked' || /could not be resolved/.test(result.error ?? '')).toBe(
      true,
    )
  })

  test.each(malformed)('$url, $what: refused at creation, and nothing is sent', async ({ url }) => {
    expect(() => assertWebhookUrl(url, [])).toThrow(UnacceptableUrl)
    const { result, connects } = await sendTo(url)
    expect([connects, result.status]).toEqual([0, null])
    expect(['blocked', 'unreachable']).toContain(result.outcome)
  })

  test.each([
    ['https://example.com\\@127.0.0.1/'],
    ['https://example.com#@127.0.0.1/'],
    ['https://example.com/@127.0.0.1'],
  ])('%s leads to example.com', (url) => {
    expect(new URL(assertWebhookUrl(url, [])).hostname).toBe('example.com')
  })

  test('http is for what the operator allows alone', async () => {
    for (const host of ['93.184.216.34', '[2606:4700:4700::1111]']) {
      const sent = await sendTo(`http://${host}:${listener.port}/`, { allow: cidrs('10.0.0.0/8') })
      expectBlocked(sent)
      expect(sent.result.error).toContain('over https')
    }
  })
})

describe('a name', () => {
  const url = (): string => `https://name.test:${listener.port}/`

  test.each(addresses)('with the address $address, $what: blocked', async ({ address }) => {
    await using names = await startNameServer(() => [address])
    const sent = await sendTo(url(), names)
    expectBlocked(sent)
    expect(sent.result.error).toContain('not public')
    expect(names.queries()).toBe(1)
  })

  test.each([
    [['93.184.216.34', '127.0.0.1']],
    [['127.0.0.1', '93.184.216.34']],
    [['93.184.216.34', '2606:4700:4700::1111', 'fd00:ec2::254']],
    [['10.0.0.1', '2606:4700:4700::1111']],
    [['93.184.216.34', '::ffff:127.0.0.1']],
  ])('with a mix of addresses %j: blocked whole', async (mix) => {
    expect(() => assertWebhookUrl(url(), [])).not.toThrow()
    await using names = await startNameServer(() => mix)
    expectBlocked(await sendTo(url(), names))
  })

  test('with addresses of which the operator allows one: blocked whole', async () => {
    await using names = await startNameServer(() => ['127.0.0.1', '127.0.0.2'])
    expectBlocked(await sendTo(url(), { allow: cidrs('127.0.0.1/32'), lookup: names.lookup }))
  })

  test('that stands for another one with a bad address: blocked', async () => {
    await using names = await startNameServer(() => ({
      cname: 'localhost',
      addresses: ['127.0.0.1'],
    }))
    expectBlocked(await sendTo(url(), names))
  })

  test('with a zone id in its address: blocked', async () => {
    expectBlocked(
      await sendTo(url(), {
        lookup: (_, __, callback) => callback(null, [{ address: 'fe80::1%lo', family: 6 }]),
      }),
    )
  })

  test('with an address that is none: blocked', async () => {
    expectBlocked(
      await sendTo(url(), {
        lookup: (_, __, callback) => callback(null, [{ address: 'name.test', family: 4 }]),
      }),
    )
  })

  test('without any address: unreachable', async () => {
    await using names = await startNameServer(() => [])
    const { result, connects } = await sendTo(url(), names)
    expect(result).toMatchObject({
      outcome: 'unreachable',
      error: 'The name name.test could not be resolved.',
    })
    expect(connects).toBe(0)
  })

  test('that changes its mind with every query: what was checked is what is connected to', async () => {
    await using good = await startReceiver({ validate: false })
    await using bad = await startListener({ host: '127.0.0.2', port: good.port })
    await using names = await startNameServer((_, query) => [
      query % 2 === 0 ? '127.0.0.1' : '127.0.0.2',
    ])
    const allow = cidrs('127.0.0.1/32')
    const outcomes: string[] = []
    for (let count = 0; count < 10; count++) {
      const { result } = await sendTo(`http://name.test:${good.port}/`, {
        allow,
        lookup: names.lookup,
      })
      outcomes.push(`${result.outcome} ${result.address}`)
    }
    expect(outcomes).toEqual(Array(5).fill(['success 127.0.0.1', 'blocked null']).flat())
    // One look-up for each connection: there is no second one to answer otherwise.
    expect([names.queries(), good.connections(), bad.connections()]).toEqual([10, 5, 0])
  })

  test('that changes its mind while the agent has a connection: a new one is checked anew', async () => {
    await using good = await startReceiver({
      validate: false,
      answers: [{ status: 200, headers: { connection: 'close' } }],
    })
    await using bad = await startListener({ host: '127.0.0.2', port: good.port })
    await using names = await startNameServer((_, query) => [
      query === 0 ? '127.0.0.1' : '127.0.0.2',
    ])
    const agent = guardedAgent(cidrs('127.0.0.1/32'), names)
    const sendOne = (): Promise<SendResult> =>
      send(agent, { ...post, url: `http://name.test:${good.port}/` })
    expect([
      (await sendOne()).outcome,
      (await sendOne()).outcome,
      (await sendOne()).outcome,
    ]).toEqual(['success', 'blocked', 'blocked'])
    await agent.destroy()
    expect(bad.connections()).toBe(0)
  })
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])(
    'of %i is not followed, wherever it leads',
    async (status) => {
      const locations = [
        ...addresses.map(({ address }) => `http://${inUrl(address)}:${listener.port}/`),
        ...['localhost', '2130706433', '0x7f.1', '[::1]'].map(
          (host) => `//${host}:${listener.port}/`,
        ),
        '/elsewhere',
      ]
      await using receiver = await startReceiver({
        validate: false,
        answers: (_, index) => ({ status, headers: { location: locations[index] ?? '' } }),
      })
      const agent = guardedAgent(cidrs('127.0.0.0/8'))
      for (const location of locations) {
        const result = await send(agent, { ...post, url: receiver.url })
        expect(result).toMatchObject({
          outcome: 'http_error',
          status,
          responseHeaders: { location },
        })
        expect(result.error).toBe(
          `The endpoint redirected (${status}). Redirects are not followed.`,
        )
      }
      await agent.destroy()
      expect(new Set(receiver.requests.map(({ path }) => path))).toEqual(new Set(['/webhooks']))
      expect(receiver.requests).toHaveLength(locations.length)
    },
  )
})

describe('the engine', () => {
  let engine: Deliveries
  beforeAll(async () => {
    engine = await startDeliveries({
      WEBHOOK_ALLOW_ADDRESSES: '127.0.0.1/32',
      WEBHOOK_RETRY_DELAYS: '0,0,0,0,0,0,0,0,0',
      WEBHOOK_TIMEOUT_MS: '5000',
    })
  })
  afterAll(() => engine[Symbol.asyncDispose]())

  test.each([
    '127.0.0.2',
    '[::ffff:127.0.0.2]',
    '0.0.0.0',
    '10.0.0.1',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '168.63.129.16',
    '100.100.100.200',
    '[::1]',
    '[64:ff9b::a9fe:a9fe]',
    '[2002:7f00:1::]',
    '0x7f.2',
  ])('makes an attempt of each try to reach %s: blocked, and no packet is sent', async (host) => {
    await using other = await startListener({ host: '127.0.0.2' })
    const { delivery, attempts } = await engine.deliver(`https://${host}:${other.port}/`)
    expect(delivery).toMatchObject({
      state: 'failed',
      attempts: 10,
      failureReason: 'attempts_exhausted',
    })
    expect(attempts.map(({ number, outcome, status }) => [number, outcome, status])).toEqual(
      Array.from({ length: 10 }, (_, index) => [index + 1, 'blocked', null]),
    )
    expect(new Set(attempts.map(({ error }) => error))).toEqual(new Set([attempts[0]?.error]))
    expect(attempts[0]?.error).toMatch(
      /^Webhooks may not connect to the IP address \S+, which is not public\.$/,
    )
    expect(other.connections()).toBe(0)
  })

  test('does not follow a redirect to where it may not go', async () => {
    await using other = await startListener({ host: '127.0.0.2' })
    await using receiver = await startReceiver({
      answers: [{ status: 307, headers: { location: `http://127.0.0.2:${other.port}/` } }],
    })
    const { delivery, attempts } = await engine.deliver(receiver.url)
    expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
    expect(attempts[0]).toMatchObject({
      outcome: 'http_error',
      status: 307,
      error: expect.stringContaining('Redirects are not followed'),
    })
    expect(other.connections()).toBe(0)
  })
})
