/** Look-ups of host names: the hosts file, the name servers, and names that hang. */
import type { LookupAddress } from 'node:dns'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type Lookup, newNameLookup } from '../../webhooks/transport/name-lookup.ts'
import { startNameServer } from '../dns.ts'

const ip4 = (address: string): LookupAddress => ({ address, family: 4 })
const ip6 = (address: string): LookupAddress => ({ address, family: 6 })

function find(
  lookup: Lookup,
  name: string,
  { family = 0, accountId = 'account' } = {},
): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) =>
    lookup(name, { family, accountId }, (error, addresses) =>
      error ? reject(error) : resolve(addresses),
    ),
  )
}

test('finds the IP addresses of both families, for a name in any case and with a final dot', async () => {
  await using names = await startNameServer(() => ['93.184.216.34', '2606:4700:4700::1111'])
  expect(await find(names.lookup, 'Name.Test.')).toEqual([
    ip4('93.184.216.34'),
    ip6('2606:4700:4700::1111'),
  ])
  expect(await find(names.lookup, 'name.test', { family: 6 })).toEqual([
    ip6('2606:4700:4700::1111'),
  ])
})

test('names that hang delay no other account: eight names of an account are looked up at once', async () => {
  const queried = new Set<string>()
  await using names = await startNameServer((name) => {
    if (!name.startsWith('hangs')) return ['93.184.216.34']
    queried.add(name)
    return 'silence'
  })
  let hanging = 100
  const hangs = Array.from({ length: hanging }, (_, index) => {
    const accountId = `attacker-${index % 2}`
    return find(names.lookup, `hangs-${index}.test`, { accountId }).catch((error) => {
      hanging--
      return error
    })
  })
  for (const name of ['one.test', 'two.test'])
    expect(await find(names.lookup, name)).toEqual([ip4('93.184.216.34')])
  expect(hanging).toBe(100)
  expect(queried.size).toBe(16)

  const unavailable = expect.objectContaining({ code: 'EAI_AGAIN' })
  expect(await hangs[0]).toEqual(unavailable)
  // The failure is remembered for all accounts.
  const startedAt = performance.now()
  await expect(find(names.lookup, 'hangs-0.test')).rejects.toThrow(unavailable)
  expect(performance.now() - startedAt).toBeLessThan(1_000)
}, 60_000)

test('a name server that ignores the queries for one family does not delay the other', async () => {
  await using names = await startNameServer((name, _, type) =>
    name === `only-${type.toLowerCase()}.test`
      ? ['93.184.216.34', '2606:4700:4700::1111']
      : 'silence',
  )
  const startedAt = performance.now()
  expect(await find(names.lookup, 'only-a.test')).toEqual([ip4('93.184.216.34')])
  expect(await find(names.lookup, 'only-aaaa.test')).toEqual([ip6('2606:4700:4700::1111')])
  expect(performance.now() - startedAt).toBeLessThan(4_000)
}, 60_000)

test('shares a look-up among concurrent callers, and remembers a failure for a short time', async () => {
  let exists = false
  await using names = await startNameServer(() => (exists ? ['93.184.216.34'] : 'no such name'))
  const notFound = expect.objectContaining({ code: 'ENOTFOUND' })
  const both = [find(names.lookup, 'new.test'), find(names.lookup, 'new.test')]
  for (const each of both) await expect(each).rejects.toThrow(notFound)
  exists = true
  await expect(find(names.lookup, 'new.test')).rejects.toThrow(notFound)
  expect(names.lookUps()).toBe(1)
  await vi.waitFor(() => find(names.lookup, 'new.test'), { timeout: 10_000, interval: 200 })
})

test('reads the hosts file first, and again after a change', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'muster-hosts-'))
  const hostsFile = join(directory, 'hosts')
  const lookup = newNameLookup({ hostsFile, servers: ['127.0.0.1:9'] })
  await writeFile(hostsFile, '# Ours\n10.0.0.1\tShop.internal shop # both\nno-address shop\n')
  expect(await find(lookup, 'shop.internal')).toEqual([ip4('10.0.0.1')])
  expect(await find(lookup, 'SHOP')).toEqual([ip4('10.0.0.1')])
  // Two concurrent look-ups begin before the file has been read.
  const fresh = newNameLookup({ hostsFile, servers: ['127.0.0.1:9'] })
  const found = await Promise.all(['shop.internal', 'shop'].map((name) => find(fresh, name)))
  expect(found).toEqual([[ip4('10.0.0.1')], [ip4('10.0.0.1')]])
  await writeFile(hostsFile, '10.0.0.2 shop\n')
  await utimes(hostsFile, new Date(), new Date(Date.now() + 1_000))
  await vi.waitFor(async () => expect(await find(lookup, 'shop')).toEqual([ip4('10.0.0.2')]), {
    timeout: 20_000,
    interval: 500,
  })
  await rm(directory, { recursive: true })
})
