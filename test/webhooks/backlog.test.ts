/** The backlog, as the leader reads it. */
import { expect, test } from 'vitest'
import type { Attempt } from '../../records/attempt.ts'
import { listUnqueued, listUnqueuedWithinQuota } from '../../records/scheduled-attempts.ts'
import { newInstallation, newTenant } from './harness.ts'

const ENDPOINT = 'https://example.com/'
const LATER = new Date(Date.now() + 60_000)

test('listUnqueuedWithinQuota: of each webhook the earliest attempts up to its quota, round by round, without skipped deliveries', async () => {
  await using installation = await newInstallation()
  const [large, small] = [await newTenant(installation), await newTenant(installation)]
  const largeId = await large.subscribe(ENDPOINT)
  const smallId = await small.subscribe(ENDPOINT)
  await large.emit(200)
  await small.emit()
  await small.emit()
  const later = await small.emitOne()
  await small.write(async (scope) => {
    await scope
      .rows('deliveries')
      .where({ id: later.id })
      .update({ next_attempt_at: LATER.getTime() })
  })

  const now = new Date()
  const all = await listUnqueued(installation.db, now, [], 1_000)
  const idsFor = (attempts: Attempt[], webhookId: string): string[] =>
    attempts
      .filter((attempt) => attempt.webhookId === webhookId)
      .map(({ deliveryId }) => deliveryId)
  const list = (skip: string[], free: [string, number][], until = now): Promise<Attempt[]> =>
    listUnqueuedWithinQuota(installation.db, until, skip, {
      byWebhook: new Map(free),
      ofOthers: 10,
    })
  expect([idsFor(all, largeId).length, idsFor(all, smallId).length]).toEqual([200, 2])

  const first = await list([], [])
  expect(idsFor(first, largeId)).toEqual(idsFor(all, largeId).slice(0, 10))
  expect(first).toHaveLength(12)
  expect(first).toEqual(
    expect.arrayContaining(
      all.filter((attempt) => first.some(({ deliveryId }) => deliveryId === attempt.deliveryId)),
    ),
  )
  const rounds = [first.slice(0, 2), first.slice(2, 4)]
  for (const round of rounds)
    expect(round.map(({ webhookId }) => webhookId).sort()).toEqual([largeId, smallId].sort())
  expect(idsFor(first, smallId)).toEqual(idsFor(all, smallId))

  const skip = [...idsFor(first, largeId), ...idsFor(first, smallId).slice(0, 1)]
  const second = await list(skip, [
    [largeId, 3],
    [smallId, 9],
  ])
  expect(idsFor(second, largeId)).toEqual(idsFor(all, largeId).slice(10, 13))
  expect(idsFor(second, smallId)).toEqual(idsFor(all, smallId).slice(1))

  const withoutLarge = await list([], [[largeId, 0]], LATER)
  expect(idsFor(withoutLarge, largeId)).toEqual([])
  expect(idsFor(withoutLarge, smallId)).toEqual([...idsFor(all, smallId), later.id])
  const noFreeQuota: [string, number][] = [
    [largeId, -2],
    [smallId, 0],
  ]
  expect(await list([], noFreeQuota, LATER)).toEqual([])
})
