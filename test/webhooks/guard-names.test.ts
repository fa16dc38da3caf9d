import { describe, expect, test } from 'vitest'
import type { SendResult } from '../../records/attempt.ts'
import { parseWebhookUrl } from '../../webhooks/transport/egress.ts'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import type { Lookup } from '../../webhooks/transport/name-lookup.ts'
import { send } from '../../webhooks/transport/send.ts'
import { startNameServer } from '../dns.ts'
import { startListener, startReceiver } from '../receiver.ts'
import { addresses, expectBlocked, expectNoConnections } from './blocked.ts'
import { cidrs, post, sendTo } from './single-attempt.ts'

const listener = expectNoConnections()

describe('a name', () => {
  const url = (): string => `https://name.test:${listener().port}/`

  test.each(addresses)('with the IP address $address, $what: blocked', async ({ address }) => {
    await using names = await startNameServer(() => [address])
    const sent = await sendTo(url(), names)
    expectBlocked(sent)
    expect(sent.result.error).toContain('not public')
    expect(names.lookUps()).toBe(1)
  })

  test.each([
    [['93.184.216.34', '127.0.0.1']],
    [['127.0.0.1', '93.184.216.34']],
    [['93.184.216.34', '2606:4700:4700::1111', 'fd00:ec2::254']],
    [['10.0.0.1', '2606:4700:4700::1111']],
    [['93.184.216.34', '::ffff:127.0.0.1']],
  ])('with public and blocked IP addresses %j: blocked', async (mix) => {
    expect(() => parseWebhookUrl(url(), [])).not.toThrow()
    await using names = await startNameServer(() => mix)
    expectBlocked(await sendTo(url(), names))
  })

  test('with two IP addresses, one allowed by the operator: blocked', async () => {
    await using names = await startNameServer(() => ['127.0.0.1', '127.0.0.2'])
    expectBlocked(await sendTo(url(), { allow: cidrs('127.0.0.1/32'), lookup: names.lookup }))
  })

  test.each([
    { allow: '127.0.0.0/8', outcome: 'success' },
    { allow: '::1/128', outcome: 'unreachable' },
    { allow: '10.0.0.0/8', outcome: 'blocked' },
  ])('localhost with 127.0.0.1 and ::1, and $allow allowed: $outcome', async (row) => {
    await using receiver = await startReceiver({ validate: false })
    const url = `http://localhost:${receiver.port}/`
    const allow = cidrs(row.allow)
    const lookup: Lookup = (_, __, callback) =>
      callback(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
      ])
    const { result } = await sendTo(url, { allow, lookup })
    expect(result.outcome).toBe(row.outcome)
    if (row.outcome === 'blocked') expect(() => parseWebhookUrl(url, allow)).toThrow(/localhost/)
    else expect(parseWebhookUrl(url, allow)).toBe(url)
  })

  test('with a CNAME that resolves to a blocked IP address: blocked', async () => {
    await using names = await startNameServer(() => ({
      cname: 'localhost',
      addresses: ['127.0.0.1'],
    }))
    expectBlocked(await sendTo(url(), names))
  })

  test('with a zone ID in its IP address: blocked', async () => {
    expectBlocked(
      await sendTo(url(), {
        lookup: (_, __, callback) => callback(null, [{ address: 'fe80::1%lo', family: 6 }]),
      }),
    )
  })

  test('whose look-up returns no IP address but a name: blocked', async () => {
    expectBlocked(
      await sendTo(url(), {
        lookup: (_, __, callback) => callback(null, [{ address: 'name.test', family: 4 }]),
      }),
    )
  })

  test('without any IP address: unreachable', async () => {
    await using names = await startNameServer(() => [])
    const { result, connects } = await sendTo(url(), names)
    expect(result).toMatchObject({
      outcome: 'unreachable',
      error: 'The name name.test could not be resolved.',
    })
    expect(connects).toBe(0)
  })

  test('that resolves differently each time: the agent connects to the IP address it checked', async () => {
    await using good = await startReceiver({ validate: false })
    await using bad = await startListener({ host: '127.0.0.2', port: good.port })
    await using names = await startNameServer((_, lookup) => [
      lookup % 2 === 0 ? '127.0.0.1' : '127.0.0.2',
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
    // One look-up for each connection. A second look-up could return another IP address.
    expect([names.lookUps(), good.connections(), bad.connections()]).toEqual([10, 5, 0])
  })

  test('that resolves differently later: each new connection is checked', async () => {
    await using good = await startReceiver({
      validate: false,
      answers: [{ status: 200, headers: { connection: 'close' } }],
    })
    await using bad = await startListener({ host: '127.0.0.2', port: good.port })
    await using names = await startNameServer((_, lookup) => [
      lookup === 0 ? '127.0.0.1' : '127.0.0.2',
    ])
    const agent = guardedAgent(cidrs('127.0.0.1/32'), names)
    const sendOne = (): Promise<SendResult> =>
      send(agent, { ...post, url: `http://name.test:${good.port}/` })
    const results = [await sendOne(), await sendOne(), await sendOne()]
    expect(results.map(({ outcome }) => outcome)).toEqual(['success', 'blocked', 'blocked'])
    await agent.destroy()
    expect(bad.connections()).toBe(0)
  })
})
