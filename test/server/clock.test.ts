/** A server reads its clock while the database accepts no writes. */
import { expect, test } from 'vitest'
import { migrate } from '../../records/database/migrate.ts'
import { transaction } from '../../records/database/transaction.ts'
import { startClock } from '../../server/clock.ts'
import { newLogger } from '../../server/log.ts'
import { openNewDatabase } from '../helpers.ts'

test('deletions give up after 5 seconds, however many wait, and a stop ends their wait', async () => {
  await using database = await openNewDatabase()
  const { db } = database
  await migrate(db)
  let now = new Date()
  const clock = await startClock(db, newLogger('silent'), () => now)
  expect(await clock.findDeletionTime()).toBeDefined()

  const mayEnd = Promise.withResolvers<void>()
  const writer = transaction(db, () => mayEnd.promise)
  // The jump has to be marked.
  now = new Date(Date.now() + 100 * 86_400_000)
  const findMany = () => Promise.all(Array.from({ length: 100 }, () => clock.findDeletionTime()))
  let startedAtMs = performance.now()
  expect(new Set(await findMany())).toEqual(new Set([undefined]))
  expect(performance.now() - startedAtMs).toBeLessThan(7_000)

  startedAtMs = performance.now()
  const found = findMany()
  clock.stop()
  expect(new Set(await found)).toEqual(new Set([undefined]))
  expect(performance.now() - startedAtMs).toBeLessThan(1_000)
  mayEnd.resolve()
  await writer
})
