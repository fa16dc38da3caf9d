import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { assertWebhookUrl, guardedAgent, judgeAddress, UnacceptableUrl } from '../../webhooks/egress.ts'
import { send } from '../../webhooks/send.ts'
import { startReceiver } from '../receiver.ts'

const loopback = [ipaddr.parseCIDR('127.0.0.0/8')]

describe('judgeAddress', () => {
  test.each([
    ['93.184.216.34', 'public'],
    ['8.8.8.8', 'public'],
    ['2606:4700:4700::1111', 'public'],
    ['::ffff:8.8.8.8', 'public'],
    // RFC 1122, 1918, 3927, 6598, 5771, 919
    ['0.0.0.0', 'blocked'],
    ['0.1.2.3', 'blocked'],
    ['127.0.0.1', 'blocked'],
    ['127.255.255.254', 'blocked'],
    ['10.0.0.1', 'blocked'],
    ['172.16.0.1', 'blocked'],
    ['172.31.255.255', 'blocked'],
    ['192.168.1.1', 'blocked'],
    ['169.254.169.254', 'blocked'],
    ['100.64.0.1', 'blocked'],
    ['100.127.255.255', 'blocked'],
    ['192.0.0.1', 'blocked'],
    ['192.0.2.1', 'blocked'],
    ['198.18.0.1', 'blocked'],
    ['198.51.100.1', 'blocked'],
    ['203.0.113.1', 'blocked'],
    ['224.0.0.1', 'blocked'],
    ['240.0.0.1', 'blocked'],
    ['255.255.255.255', 'blocked'],
    // IPv6: RFC 4291, 4193, 6052, 3056, 4380, 3849, 9637, 9602, 6666
    ['::', 'blocked'],
    ['::1', 'blocked'],
    ['::127.0.0.1', 'blocked'],
    ['::8.8.8.8', 'blocked'],
    ['::ffff:127.0.0.1', 'blocked'],
    ['::ffff:7f00:1', 'blocked'],
    ['::ffff:0:127.0.0.1', 'blocked'],
    ['64:ff9b::7f00:1', 'blocked'],
    ['64:ff9b::808:808', 'blocked'],
    ['64:ff9b:1::1', 'blocked'],
    ['2002:7f00:1::', 'blocked'],
    ['2001::1', 'blocked'],
    ['2001:db8::1', 'blocked'],
    ['3fff::1', 'blocked'],
    ['5f00::1', 'blocked'],
    ['100::1', 'blocked'],
    ['fc00::1', 'blocked'],
    ['fd00:ec2::254', 'blocked'],
    ['fe80::1', 'blocked'],
    ['fe80::1%eth0', 'blocked'],
    ['fec0::1', 'blocked'],
    ['ff02::1', 'blocked'],
    // Not addresses: what cannot be judged is refused.
    ['', 'blocked'],
    ['example.com', 'blocked'],
    ['unknown', 'blocked'],
  ])('%s: %s', (address, want) => {
    expect(judgeAddress(address, [])).toBe(want)
  })

  test.each([
    ['127.0.0.1', '127.0.0.0/8', 'allowed'],
    ['::ffff:127.0.0.1', '127.0.0.0/8', 'allowed'],
    ['::1', '127.0.0.0/8', 'blocked'],
    ['::1', '::1/128', 'allowed'],
    ['10.1.2.3', '10.1.0.0/16', 'allowed'],
    ['10.2.2.3', '10.1.0.0/16', 'blocked'],
  ])('%s with %s allowed: %s', (address, range, want) => {
    expect(judgeAddress(address, [ipaddr.parseCIDR(range)])).toBe(want)
  })
})

describe('assertWebhookUrl', () => {
  test.each([
    ['https://example.com/hooks?a=1', 'https://example.com/hooks?a=1'],
    ['https://example.com:8443', 'https://example.com:8443/'],
    ['HTTPS://EXAMPLE.com/A', 'https://example.com/A'],
    ['https://93.184.216.34/', 'https://93.184.216.34/'],
    ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
    ['https://example.com/#part', 'https://example.com/'],
  ])('accepts %s', (given, want) => {
    expect(assertWebhookUrl(given, [])).toBe(want)
  })

  test.each([
    [''],
    ['example.com'],
    ['ftp://example.com/'],
    ['javascript:alert(1)'],
    ['http://example.com/'],
    ['http://93.184.216.34/'],
    ['https://user@example.com/'],
    ['https://user:password@example.com/'],
    ['https://localhost/'],
    ['https://api.localhost/'],
    ['https://127.0.0.1/'],
    ['https://2130706433/'],
    ['https://0x7f000001/'],
    ['https://0177.0.0.1/'],
    ['https://127.1/'],
    ['https://[::1]/'],
    ['https://[::ffff:127.0.0.1]/'],
    ['https://169.254.169.254/latest/meta-data'],
    [`https://example.com/${'a'.repeat(2_048)}`],
  ])('refuses %s', (given) => {
    expect(() => assertWebhookUrl(given, [])).toThrow(UnacceptableUrl)
  })

  test.each([['http://127.0.0.1:4000/'], ['http://localhost:4000/'], ['http://receiver.internal/'], ['https://127.0.0.1/']])(
    'accepts %s when the operator allows loopback',
    (given) => {
      expect(assertWebhookUrl(given, loopback)).toBe(given)
    },
  )

  test.each([['http://10.0.0.1/'], ['http://93.184.216.34/'], ['http://[::1]/']])('refuses %s all the same', (given) => {
    expect(() => assertWebhookUrl(given, loopback)).toThrow(UnacceptableUrl)
  })
})

describe('guardedAgent: on the address that is connected to', () => {
  const post = { headers: {}, body: Buffer.from('{}'), timeoutMs: 2_000 }

  test.each(['127.0.0.1', 'localhost', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0'])(
    'blocks http://%s before a byte is sent',
    async (host) => {
      await using receiver = await startReceiver({ validate: false })
      const agent = guardedAgent([])
      const result = await send(agent, { ...post, url: `http://${host}:${receiver.port}/` })
      await agent.destroy()
      expect(result).toMatchObject({ outcome: 'blocked', status: null })
      expect(result.error).toContain('not public')
      expect(receiver.connections()).toBe(0)
    },
  )

  test('blocks a name when only some of its addresses are allowed', async () => {
    await using receiver = await startReceiver({ validate: false })
    const agent = guardedAgent([ipaddr.parseCIDR('10.0.0.0/8')])
    const result = await send(agent, { ...post, url: `http://localhost:${receiver.port}/` })
    await agent.destroy()
    expect(result.outcome).toBe('blocked')
  })

  test('lets through what the operator allows', async () => {
    await using receiver = await startReceiver({ validate: false })
    const agent = guardedAgent(loopback)
    const result = await send(agent, { ...post, url: receiver.url })
    await agent.destroy()
    expect(result).toMatchObject({ outcome: 'success', status: 204, error: null })
  })
})
