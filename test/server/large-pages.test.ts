import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LargePages } from '../../operations/large-pages.ts'

test('large pages are built one at a time, by turns of the accounts; small pages do not wait', async () => {
  const pages = new LargePages()
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const build = (accountId: string, size: unknown, name: string): Promise<void> =>
    pages.run(accountId, size, () => {
      started.push(name)
      return new Promise((resolve) => ends.set(name, resolve))
    })
  // A page of up to 25 records is small.
  const builds = [
    build('a', 100, 'a1'),
    build('a', 100, 'a2'),
    build('b', 26, 'b1'),
    build('c', 100, 'c1'),
    build('a', 25, 'small'),
    build('a', undefined, 'record'),
  ]
  expect(started.toSorted()).toEqual(['a1', 'record', 'small'])
  ends.get('a1')?.()
  await builds[0]
  await expect.poll(() => started.slice(3)).toEqual(['b1'])
  ends.get('b1')?.()
  await expect.poll(() => started.slice(3)).toEqual(['b1', 'c1'])
  ends.get('c1')?.()
  await expect.poll(() => started.slice(3)).toEqual(['b1', 'c1', 'a2'])
  for (const end of ends.values()) end()
  await Promise.all(builds)
})

test('the next large page begins after a pause as long as the work on the previous page', async () => {
  const pages = new LargePages()
  const times: number[] = []
  const build = (): Promise<void> =>
    pages.run('a', 100, async () => {
      times.push(performance.now())
      await delay(20)
      times.push(performance.now())
    })
  await Promise.all([build(), build()])
  const [startedAt = 0, endedAt = 0, nextAt = 0] = times
  // Timers may be a millisecond early.
  expect(nextAt - endedAt).toBeGreaterThan(endedAt - startedAt - 2)
})
