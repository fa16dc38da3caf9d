/** The queue by itself, where what counts cannot be seen from outside. */
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import type { PlannedAttempt } from '../../records/due-work.ts'
import { type Queue, startQueue } from '../../webhooks/queue/queue.ts'
import { createDatabase } from '../postgres.ts'

const log = pino({ level: 'silent' })

function planned(count: number, webhookId = randomUUID()): PlannedAttempt[] {
  return Array.from({ length: count }, () => ({
    deliveryId: randomUUID(),
    webhookId,
    number: 1,
    dueAt: Date.now(),
  }))
}

async function startedQueue(databaseUrl?: string): Promise<Queue & AsyncDisposable> {
  const queue = await startQueue({ databaseUrl, attemptTimeoutMs: 1_000, log })
  return { ...queue, [Symbol.asyncDispose]: () => queue.stop(1_000) }
}

test('claim: what is asked for is never exceeded, by limit and by share, and each attempt is claimed once', async () => {
  await using queue = await startedQueue(
    inject('database') === 'postgres' ? await createDatabase(inject('postgresUrl')) : undefined,
  )
  await queue.add([...planned(40), ...planned(40), ...planned(5)], new Date())
  const claims = [
    await queue.claim(5, 16),
    await queue.claim(16, 16),
    await queue.claim(31, 16),
    await queue.claim(512, 16),
  ].flat()
  expect(claims.length).toBe(16 + 16 + 5)
  expect(new Set(claims.map(({ planned }) => planned.deliveryId)).size).toBe(claims.length)
  expect((await queue.claim(512, 40)).length).toBe(80 - 32)
  expect(await queue.claim(512, 128)).toEqual([])
})

test.runIf(inject('database') === 'postgres')(
  'touch: claims that a transaction is removing are left out, and not waited for; a rollback gives them back',
  async () => {
    const databaseUrl = await createDatabase(inject('postgresUrl'))
    const db = openDatabase({ databaseUrl })
    await using queue = await startedQueue(databaseUrl)
    await queue.add(planned(3), new Date())
    const claims = await queue.claim(3, 16)
    const jobIds = claims.map(({ jobId }) => jobId)
    const whileRemoving = async (end: 'commit' | 'rollback'): Promise<Set<string>> => {
      let renewed = new Set<string>()
      await transaction(db, async (trx) => {
        expect(await queue.drop(claims.slice(1), trx)).toEqual(new Set(jobIds.slice(1)))
        renewed = await queue.touch(claims)
        if (end === 'rollback') throw new Error('no')
      }).catch((error: Error) => expect(error.message).toBe('no'))
      return renewed
    }
    expect(await whileRemoving('rollback')).toEqual(new Set(jobIds.slice(0, 1)))
    expect(await queue.touch(claims)).toEqual(new Set(jobIds))
    expect(await whileRemoving('commit')).toEqual(new Set(jobIds.slice(0, 1)))
    expect(await queue.touch(claims)).toEqual(new Set(jobIds.slice(0, 1)))
    await db.close()
  },
)
