/** The queue without an engine: limits and leases cannot be observed from outside. */
import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import type { Attempt, AttemptWith } from '../../records/attempt.ts'
import { migrate } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { transaction } from '../../records/database/transaction.ts'
import { sessionClientFactory } from '../../webhooks/queue/boss.ts'
import { type Queue, startQueue } from '../../webhooks/queue/queue.ts'
import { createDatabase } from '../postgres.ts'

const log = pino({ level: 'silent' })

function dueAttempts(count: number, webhookId = randomUUID()): Attempt[] {
  const accountId = randomUUID()
  return Array.from({ length: count }, () => ({
    deliveryId: randomUUID(),
    webhookId,
    accountId,
    number: 1,
    scheduledAt: Date.now(),
  }))
}

async function startTestQueue(databaseUrl?: string): Promise<Queue & AsyncDisposable> {
  const queue = await startQueue({ databaseUrl, attemptTimeoutMs: 1_000, log })
  return { ...queue, [Symbol.asyncDispose]: () => queue.stop(1_000) }
}

/** A database with the tables of the records, where workers store their leases. */
async function newPostgres(): Promise<{ url: string; db: Db } & AsyncDisposable> {
  const url = await createDatabase(inject('postgresUrl'))
  const db = openDatabase({ databaseUrl: url })
  await migrate(db)
  return { url, db, [Symbol.asyncDispose]: () => db.close() }
}

test('lease: exceeds neither the count nor the limit, and leases each attempt once', async () => {
  await using database = inject('database') === 'postgres' ? await newPostgres() : undefined
  await using queue = await startTestQueue(database?.url)
  const lease = (count: number, limit: number): Promise<AttemptWith<'lease'>[]> =>
    queue.attempts.lease(count, { limit, skip: [] }, [])
  await queue.attempts.add([...dueAttempts(40), ...dueAttempts(40), ...dueAttempts(5)], new Date())
  const leased = [
    await lease(5, 16),
    await lease(16, 16),
    await lease(31, 16),
    await lease(512, 16),
  ].flat()
  expect(leased.length).toBe(16 + 16 + 5)
  expect(new Set(leased.map(({ deliveryId }) => deliveryId)).size).toBe(leased.length)
  expect((await lease(512, 40)).length).toBe(80 - 32)
  expect(await lease(512, 128)).toEqual([])
})

test('addInFlight: leases only the attempts that it adds, not those of an ended process', async () => {
  await using database = inject('database') === 'postgres' ? await newPostgres() : undefined
  await using queue = await startTestQueue(database?.url)
  const { attempts } = queue
  const ofEndedProcess = await attempts.addInFlight(dueAttempts(40), [])
  await attempts.release(ofEndedProcess)
  const added = await attempts.addInFlight(dueAttempts(3), [])
  expect([ofEndedProcess.length, added.length]).toEqual([40, 3])
  expect((await attempts.lease(512, { limit: 16, skip: [] }, [])).length).toBe(16)
})

test.runIf(inject('database') === 'postgres')(
  'renew: skips the jobs that an open transaction completes; a rollback brings them back',
  async () => {
    await using database = await newPostgres()
    const { db } = database
    await using queue = await startTestQueue(database.url)
    const { attempts } = queue
    await attempts.add(dueAttempts(3), new Date())
    const leased = await attempts.lease(3, { limit: 16, skip: [] }, [])
    const jobIds = leased.map(({ lease }) => lease.jobId)
    const renewWhileCompleting = async (end: 'commit' | 'rollback'): Promise<Set<string>> => {
      let renewed = new Set<string>()
      await transaction(db, async (trx) => {
        expect(await attempts.complete(leased.slice(1), trx)).toEqual(new Set(jobIds.slice(1)))
        renewed = await attempts.renew(leased)
        if (end === 'rollback') throw new Error('rollback')
      }).catch((error: Error) => expect(error.message).toBe('rollback'))
      return renewed
    }
    expect(await renewWhileCompleting('rollback')).toEqual(new Set(jobIds.slice(0, 1)))
    expect(await attempts.renew(leased)).toEqual(new Set(jobIds))
    expect(await renewWhileCompleting('commit')).toEqual(new Set(jobIds.slice(0, 1)))
    expect(await attempts.renew(leased)).toEqual(new Set(jobIds.slice(0, 1)))
  },
)

test.runIf(inject('database') === 'postgres')(
  'the session of a worker reads the queue by index and does not wait for the disk',
  async () => {
    const databaseUrl = await createDatabase(inject('postgresUrl'))
    const client = sessionClientFactory({ databaseUrl })?.()
    if (!client) throw new Error('PostgreSQL has sessions')
    await client.connect()
    const { rows } = await client.query(
      "select current_setting('enable_seqscan') as seqscan, current_setting('synchronous_commit') as sync",
    )
    await client.end()
    expect(rows).toEqual([{ seqscan: 'off', sync: 'off' }])
  },
)
