import { describe, expect, test } from 'vitest'
import { makeExport } from '../../operations/export-job.ts'
import { sharedApp } from '../helpers.ts'
import { countChunks, newClient, requestExport } from './export-helpers.ts'
import { eventsAbout } from './new-records.ts'

/** Exports stay queued until a test calls `make`. */

const idle = sharedApp({ role: 'api' })

const make = (id: string): Promise<void> =>
  makeExport(
    { db: idle.db, now: () => new Date(), quotas: { export_mib: 1024 } },
    id,
    new AbortController().signal,
  )

describe('deleteExport', () => {
  test('204, then 404: the record and its file are gone, and no event follows', async () => {
    const { client } = await newClient(idle)
    const id = await requestExport(client, { resource: 'tasks' })
    await make(id)
    expect(await countChunks(idle.db, id)).toBe(1)
    expect(await client.delete(`/exports/${id}`)).toMatchObject({ status: 204, text: '' })
    expect(await countChunks(idle.db, id)).toBe(0)
    const after = [
      await client.delete(`/exports/${id}`),
      await client.get(`/exports/${id}`),
      await client.get(`/exports/${id}/file`),
    ]
    expect(after.map(({ status }) => status)).toEqual([404, 404, 404])
    expect((await client.get('/exports')).body.meta.total).toBe(0)
    expect(await eventsAbout(client, id)).toEqual(['export.created', 'export.completed'])
  })

  test('a queued export never starts, and one in progress stops without a file or an event', async () => {
    const { client } = await newClient(idle)
    const description = 'x'.repeat(10_000)
    for (let count = 0; count < 60; count++)
      await client.post('/tasks', { title: 'T', description })
    const queued = await requestExport(client, { resource: 'tasks' })
    const running = await requestExport(client, { resource: 'tasks' })
    await client.delete(`/exports/${queued}`)
    await make(queued)

    const stored = Promise.withResolvers<void>()
    const onQuery = ({ sql }: { sql: string }): void => {
      if (/insert into .?export_chunks/.test(sql)) stored.resolve()
    }
    idle.db.write.on('query', onQuery)
    const making = make(running)
    await stored.promise
    idle.db.write.off('query', onQuery)
    expect(await client.delete(`/exports/${running}`)).toMatchObject({ status: 204 })
    await making
    for (const id of [queued, running]) {
      expect(await eventsAbout(client, id)).toEqual(['export.created'])
      expect(await countChunks(idle.db, id)).toBe(0)
    }
  })

  test('403 for payments unless the key owner may read them', async () => {
    const { account, client } = await newClient(idle)
    const id = await requestExport(client, { resource: 'payments' })
    const remove = async (finance: 'none' | 'read'): Promise<number> => {
      const { userId } = await idle.newUser(account.accountId, { finance })
      const key = await idle.newKey({ accountId: account.accountId, userId })
      return (await idle.as({ key }).delete(`/exports/${id}`)).status
    }
    expect(await remove('none')).toBe(403)
    expect(await client.get(`/exports/${id}`)).toMatchObject({ status: 200 })
    expect(await remove('read')).toBe(204)
  })
})
