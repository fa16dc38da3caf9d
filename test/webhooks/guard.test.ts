import { describe, expect, test } from 'vitest'
import { judgeAddress, parseWebhookUrl, UnacceptableUrl } from '../../webhooks/transport/egress.ts'
import { startReceiver } from '../receiver.ts'
import { addresses, expectBlocked, expectNoConnections, inUrl } from './blocked.ts'
import { cidrs, sendTo } from './single-attempt.ts'

/** Other spellings of blocked IP addresses in a URL. */
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
  ...['localhost', 'LOCALHOST', 'localhost.', 'api.localhost'],
  ...['a.b.localhost.', 'loc%61lhost', 'ｌocalhost', 'lo\u00ADcalhost'],
]

/** URLs that are refused for their form. */
const MALFORMED: [what: string, ...urls: string[]][] = [
  ['a zone ID', 'https://[fe80::1%eth0]/', 'https://[fe80::1%25eth0]/', 'https://[::1%25lo]/'],
  [
    'no IP address',
    ...['https://256.1.1.1/', 'https://1.1.1.1.1/', 'https://127.0.0.08/'],
    ...['https://127.0.0.1%00.example.com/', 'https:///'],
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
    ...['ftp://127.0.0.1/', 'file:///etc/passwd', 'gopher://127.0.0.1/'],
    ...['unix:/var/run/docker.sock', 'data:,x'],
  ],
  ['two dots at the end', 'https://127.0.0.1../', 'https://localhost../'],
]
const malformed = MALFORMED.flatMap(([what, ...urls]) => urls.map((url) => ({ url, what })))

const listener = expectNoConnections()

test('sendTo counts an allowed connection, so that a count of 0 proves that none was opened', async () => {
  await using receiver = await startReceiver({ validate: false })
  const { result, connects } = await sendTo(receiver.url, { allow: cidrs('127.0.0.0/8') })
  expect(result).toMatchObject({ outcome: 'success', address: '127.0.0.1' })
  expect([connects, receiver.connections()]).toEqual([1, 1])
})

describe('an IP address', () => {
  test.each(addresses)(
    '$address, $what: refused at creation, blocked at delivery',
    async ({ address }) => {
      expect(judgeAddress(address, [])).toBe('blocked')
      for (const protocol of ['https', 'http']) {
        const url = `${protocol}://${inUrl(address)}:${listener().port}/`
        expect(() => parseWebhookUrl(url, [])).toThrow(UnacceptableUrl)
        const sent = await sendTo(url)
        expectBlocked(sent)
        expect(sent.result.error).toMatch(
          /^Webhooks may not connect to the IP address [\da-f.:]+, which is not public and not in WEBHOOK_ALLOW_ADDRESSES\.$/,
        )
      }
    },
  )

  test.each(spellings)(
    '$host, $what: refused at creation, blocked at delivery',
    async ({ host }) => {
      const url = `https://${host}:${listener().port}/`
      expect(() => parseWebhookUrl(url, [])).toThrow('The URL must point to a public IP address')
      const sent = await sendTo(url)
      expectBlocked(sent)
      expect(sent.result.error).toContain('not public')
    },
  )

  test.each(LOCALHOSTS)('%s: refused at creation, blocked at delivery', async (host) => {
    const url = `https://${host}:${listener().port}/`
    expect(() => parseWebhookUrl(url, [])).toThrow('The URL must point to a public IP address')
    const { result, connects } = await sendTo(url)
    expect([connects, result.status]).toEqual([0, null])
    // Some systems cannot resolve names below localhost.
    expect(result.outcome === 'blocked' || /could not be resolved/.test(result.error ?? '')).toBe(
      true,
    )
  })

  test.each(malformed)('$url, $what: refused at creation, and nothing is sent', async ({ url }) => {
    expect(() => parseWebhookUrl(url, [])).toThrow(UnacceptableUrl)
    const { result, connects } = await sendTo(url)
    expect([connects, result.status]).toEqual([0, null])
    expect(['blocked', 'unreachable']).toContain(result.outcome)
  })

  test.each([
    ['https://example.com\\@127.0.0.1/'],
    ['https://example.com#@127.0.0.1/'],
    ['https://example.com/@127.0.0.1'],
  ])('%s leads to example.com', (url) => {
    expect(new URL(parseWebhookUrl(url, [])).hostname).toBe('example.com')
  })

  test('http is refused for IP addresses that the operator does not allow', async () => {
    for (const host of ['93.184.216.34', '[2606:4700:4700::1111]']) {
      const sent = await sendTo(`http://${host}:${listener().port}/`, {
        allow: cidrs('10.0.0.0/8'),
      })
      expectBlocked(sent)
      expect(sent.result.error).toContain('over https')
    }
  })
})
