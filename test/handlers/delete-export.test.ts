import { describe, expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { countChunks, newCompleteExport, requestExport, writeFile } from './export-helpers.ts'
import { eventsAbout } from './new-records.ts'

const app = sharedApp()

describe('deleteExport', () => {
  test('204, then 404: the record and its file are gone, and no event follows', async () => {
    const client = await app.newClient()
    const id = await newCompleteExport(app, client, { resource: 'tasks' })
    expect(await countChunks(app.db, id)).toBe(1)
    expect(await client.delete(`/exports/${id}`)).toMatchObject({ status: 204, text: '' })
    expect(await countChunks(app.db, id)).toBe(0)
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
    const client = await app.newClient()
    // A file of more than one chunk.
    const description = 'x'.repeat(10_000)
    for (let count = 0; count < 60; count++)
      await client.post('/tasks', { title: 'T', description })
    const queued = await requestExport(client, { resource: 'tasks' })
    const running = await requestExport(client, { resource: 'tasks' })
    await client.delete(`/exports/${queued}`)
    await writeFile(app, queued)

    const firstChunk = Promise.withResolvers<void>()
    const onQuery = ({ sql }: { sql: string }): void => {
      if (/insert into .?export_chunks/.test(sql)) firstChunk.resolve()
    }
    app.db.write.on('query', onQuery)
    const writing = writeFile(app, running)
    await firstChunk.promise
    app.db.write.off('query', onQuery)
    expect(await client.delete(`/exports/${running}`)).toMatchObject({ status: 204 })
    await writing
    for (const id of [queued, running]) {
      expect(await eventsAbout(client, id)).toEqual(['export.created'])
      expect(await countChunks(app.db, id)).toBe(0)
    }
  })

  test('403 for payments unless the key owner may read them', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const id = await requestExport(client, { resource: 'payments' })
    const remove = async (finance: 'none' | 'read'): Promise<number> => {
      const { userId } = await app.newUser(account.accountId, { finance })
      const key = await app.newKey({ accountId: account.accountId, userId })
      return (await app.as({ key }).delete(`/exports/${id}`)).status
    }
    expect(await remove('none')).toBe(403)
    expect(await client.get(`/exports/${id}`)).toMatchObject({ status: 200 })
    expect(await remove('read')).toBe(204)
  })
})
