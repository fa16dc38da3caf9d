/** What waits to be queued, as the dispatcher asks for it. */
import { expect, test } from 'vitest'
import type { PlannedAttempt } from '../../records/due-work.ts'
import { listUnqueued, listUnqueuedOfEach } from '../../records/planned-attempts.ts'
import { emit } from '../../webhooks/emit.ts'
import { newBench, newTenant } from './engines.ts'

const URL = 'https://example.com/'
const LATER = new Date(Date.now() + 60_000)

test('listUnqueuedOfEach: the first of each webhook, however many wait of another; less what is taken, and not what is left out', async () => {
  await using bench = await newBench()
  const [crowd, few] = [await newTenant(bench.db), await newTenant(bench.db)]
  const { id: crowded } = await crowd.subscribe(URL)
  const { id: alone } = await few.subscribe(URL)
  await crowd.write(async (own) => {
    for (let event = 0; event < 200; event++)
      await emit(own, 'task.created', crowded, [], new Date())
  })
  await few.emit()
  await few.emit()
  const later = await few.emit()
  await few.write(async (own) => {
    await own
      .rows('deliveries')
      .where({ id: later.id })
      .update({ next_attempt_at: LATER.getTime() })
  })

  const now = new Date()
  const all = await listUnqueued(bench.db, now, [], 1_000)
  const of = (list: PlannedAttempt[], webhookId: string): string[] =>
    list.filter((planned) => planned.webhookId === webhookId).map(({ deliveryId }) => deliveryId)
  const list = (
    leftOut: string[],
    taken: [string, number][],
    until = now,
  ): Promise<PlannedAttempt[]> => listUnqueuedOfEach(bench.db, until, leftOut, 10, new Map(taken))
  expect([of(all, crowded).length, of(all, alone).length]).toEqual([200, 2])

  const first = await list([], [])
  expect(of(first, crowded)).toEqual(of(all, crowded).slice(0, 10))
  expect(first).toEqual(
    all.filter((planned) => first.some(({ deliveryId }) => deliveryId === planned.deliveryId)),
  )
  expect(of(first, alone)).toEqual(of(all, alone))

  const leftOut = [...of(first, crowded), ...of(first, alone).slice(0, 1)]
  const second = await list(leftOut, [
    [crowded, 7],
    [alone, 1],
  ])
  expect(of(second, crowded)).toEqual(of(all, crowded).slice(10, 13))
  expect(of(second, alone)).toEqual(of(all, alone).slice(1))

  const full = await list([], [[crowded, 10]], LATER)
  expect(of(full, crowded)).toEqual([])
  expect(of(full, alone)).toEqual([...of(all, alone), later.id])
  expect(
    await list(
      [],
      [
        [crowded, 12],
        [alone, 10],
      ],
      LATER,
    ),
  ).toEqual([])
})
