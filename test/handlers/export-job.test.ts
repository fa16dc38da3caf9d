/** Leases, retries and the memory use of the work that writes the files of exports. */
import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, test } from 'vitest'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { completeExport, leaseExport } from '../../records/export-files.ts'
import { type ExportResource, exportFields } from '../../records/exports.ts'
import { LeaseLost, listDueIds, renewLease } from '../../records/file-jobs.ts'
import { sharedApp, until } from '../helpers.ts'
import { countChunks, requestExport, SECOND_MS, writeFile } from './export-helpers.ts'
import { eventsAbout } from './new-records.ts'

/** The time after which a lease of 60 s has expired. */
const AFTER_LEASE_MS = 61 * SECOND_MS

let clock = Date.now()
const now = (): Date => new Date(clock)

const app = sharedApp({ now })

const write = (id: string, signal?: AbortSignal): Promise<void> =>
  writeFile(app, id, { now, signal })

const findRow = (id: string) => app.db.read('exports').where({ id }).first()

describe('the file of an export', () => {
  test('after a crash, another process starts again when the lease has expired', async () => {
    const client = await app.newClient()
    await client.post('/tasks', { title: 'One' })
    const id = await requestExport(client, { resource: 'tasks', format: 'json' })
    const lease = await transaction(app.db, ({ sql }) => leaseExport(sql, id, now()))
    await app.db
      .write('export_chunks')
      .insert(
        [0, 1].map((position) => ({ export_id: id, position, bytes: Buffer.from('left behind') })),
      )
    expect(await listDueIds(app.db, 'exports', now())).not.toContain(id)
    await write(id)
    expect((await findRow(id)).status).toBe('processing')

    clock += AFTER_LEASE_MS
    expect(await listDueIds(app.db, 'exports', now())).toContain(id)
    await write(id)
    expect((await client.get(`/exports/${id}/file`)).body).toMatchObject([{ title: 'One' }])
    expect(await countChunks(app.db, id)).toBe(1)
    expect(await eventsAbout(client, id)).toEqual(['export.created', 'export.completed'])

    // If the first process continues now, it finds that it has lost its lease.
    if (lease === undefined) throw new Error('The export was not leased')
    const file = { rowCount: 0, byteSize: 0, sha256: '' }
    await expect(
      transaction(app.db, ({ sql }) => renewLease(sql, lease, { row_count: 1 }, now())),
    ).rejects.toThrow(LeaseLost)
    await expect(
      transaction(app.db, ({ sql }) => completeExport(sql, lease, file, now())),
    ).rejects.toThrow(LeaseLost)
  })

  test('one of several concurrent processes writes the file', async () => {
    const client = await app.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    await Promise.all([write(id), write(id), write(id)])
    expect(await findRow(id)).toMatchObject({ status: 'completed', tries: 1 })
    expect(await eventsAbout(client, id)).toEqual(['export.created', 'export.completed'])
  })

  test('three crashes: the export fails', async () => {
    const client = await app.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    for (let tries = 1; tries <= 3; tries++) {
      expect(await transaction(app.db, ({ sql }) => leaseExport(sql, id, now()))).toMatchObject({
        tries,
      })
      clock += AFTER_LEASE_MS
    }
    await write(id)
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({ status: 'failed' })
    expect(await eventsAbout(client, id)).toEqual(['export.created', 'export.failed'])
  })

  test('a stop of the process queues the export again, and does not count as a try', async () => {
    const client = await app.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    await write(id, AbortSignal.abort())
    expect(await findRow(id)).toMatchObject({
      status: 'queued',
      tries: 0,
      lease_expires_at: null,
      row_count: null,
    })
    expect(await listDueIds(app.db, 'exports', now())).toContain(id)
    await write(id)
    expect(await findRow(id)).toMatchObject({ status: 'completed', tries: 1 })
  })

  test('an error: three tries with growing delays, then the export fails with a message', async () => {
    const client = await app.newClient()
    const { body: job } = await client.post('/jobs', { title: 'J' })
    await app.db.write('jobs').where({ id: job.id }).update({ screening_questions: 'not JSON' })
    const id = await requestExport(client, { resource: 'jobs' })
    for (const delay of [5, 10]) {
      await expect(write(id)).rejects.toThrow(SyntaxError)
      expect(await findRow(id)).toMatchObject({
        status: 'queued',
        lease_expires_at: clock + delay * SECOND_MS,
      })
      await write(id)
      expect((await findRow(id)).status).toBe('queued')
      clock += delay * SECOND_MS
    }
    await expect(write(id)).rejects.toThrow(SyntaxError)
    const { body: failed } = await client.get(`/exports/${id}`)
    expect(failed).toMatchObject({
      status: 'failed',
      row_count: null,
      error: expect.stringMatching(/^An unexpected error occurred several times/),
    })
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({
      status: 409,
      body: { message: `The export failed. ${failed.error}` },
    })
    expect(await countChunks(app.db, id)).toBe(0)
    expect(await listDueIds(app.db, 'exports', now())).not.toContain(id)
    expect(await eventsAbout(client, id)).toEqual(['export.created', 'export.failed'])
  })

  test('the columns are the fields of the contract', () => {
    const { Participant, Task, Job, JobApplication, Payment } = contract.components.schemas
    const schemas: Record<ExportResource, { required: string[] }> = {
      participants: Participant,
      tasks: Task,
      jobs: Job,
      job_applications: JobApplication,
      payments: Payment,
    }
    for (const [resource, { required }] of Object.entries(schemas))
      expect(exportFields({ resource: resource as ExportResource, columns: [] })).toEqual(required)
  })
})

describe('20,000 records', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const measureMemory = (): number => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }

  /** The growth of memory in bytes. Counts only what two consecutive samples found, because Node
   *  frees unused buffers shortly after their collection. */
  async function growthDuring(work: () => Promise<void>): Promise<number> {
    const before = measureMemory()
    let most = before
    let last = before
    let timer: NodeJS.Timeout
    const sample = (): void => {
      const startMs = performance.now()
      const current = measureMemory()
      most = Math.max(most, Math.min(current, last))
      last = current
      // A fixed pause would let a slow machine collect garbage most of the time.
      timer = setTimeout(sample, 3 * (performance.now() - startMs))
    }
    sample()
    await work().finally(() => clearTimeout(timer))
    return most - before
  }

  test('are written and read in constant memory; a disconnect ends the reading', {
    timeout: 120_000,
  }, async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const task = {
      title: 'Task',
      description: 'x'.repeat(2_000),
      status: 'open',
      created_at: clock,
      updated_at: clock,
    }
    await transaction(app.db, async (trx) => {
      const scope = writeScope(trx, account.accountId)
      for (let count = 0; count < 20_000; count += 500)
        await scope.insert(
          'tasks',
          Array.from({ length: 500 }, () => ({ id: uuidv7(), ...task })),
        )
    })
    const id = await requestExport(client, { resource: 'tasks' })

    const growthOfWriting = await growthDuring(() => write(id))
    const { body: record } = await client.get(`/exports/${id}`)
    expect(record).toMatchObject({ status: 'completed', row_count: 20_000 })
    expect(record.byte_size).toBeGreaterThan(40_000_000)
    expect(growthOfWriting).toBeLessThan(record.byte_size / 2)

    const download = (signal?: AbortSignal) =>
      fetch(`${app.url}/public/v1/exports/${id}/file`, {
        headers: { Authorization: `Bearer ${account.key}` },
        signal,
      })
    const hash = createHash('sha256')
    const growthOfReading = await growthDuring(async () => {
      for await (const bytes of (await download()).body ?? []) hash.update(bytes)
    })
    expect(hash.digest('hex')).toBe(record.sha256)
    expect(growthOfReading).toBeLessThan(record.byte_size / 2)

    let chunksRead = 0
    const count = ({ sql }: { sql: string }): void => {
      if (sql.includes('export_chunks')) chunksRead++
    }
    app.db.read.on('query', count)
    const connection = new AbortController()
    const reader = (await download(connection.signal)).body?.getReader()
    await reader?.read()
    connection.abort()
    await until('the reading has stopped', async () => {
      const before = chunksRead
      await new Promise((resolve) => setTimeout(resolve, 200))
      return chunksRead === before
    })
    app.db.read.off('query', count)
    // Less than half of the chunks of 256 KiB.
    expect(chunksRead).toBeLessThan(record.byte_size / (256 * 1024) / 2)
  })
})
