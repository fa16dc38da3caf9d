/** The limits of exports for each account, and turns between accounts. */
import { expect, test } from 'vitest'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { leaseExport } from '../../records/export-files.ts'
import { listDueIds } from '../../records/file-jobs.ts'
import { setQuota } from '../../records/quotas.ts'
import { type Answer, type Client, sharedApp } from '../helpers.ts'
import { countChunks, newCompleteExport, requestExport, writeFile } from './export-helpers.ts'
import { eventsAbout } from './new-records.ts'

const MAX_UNFINISHED = 3
const MIB = 1024 ** 2

const app = sharedApp({
  environment: { EXPORT_MIB_PER_ACCOUNT: '1', EXPORTS_UNFINISHED_PER_ACCOUNT: `${MAX_UNFINISHED}` },
})

const createExport = (client: Client): Promise<Answer> =>
  client.post('/exports', { resource: 'tasks', format: 'json' })

/** Creates tasks that take at least `bytes` bytes as JSON. */
async function newTasks(client: Client, bytes: number): Promise<void> {
  // This character takes six bytes as JSON.
  const description = '\u0001'.repeat(6_000)
  for (let written = 0; written < bytes; written += 36_000)
    await client.post('/tasks', { title: 'Large', description })
}

const FILES_TOO_LARGE =
  'The files of an account may take 1 MiB together. ' +
  'Delete exports or imports that you no longer need, then create a new export.'

test('createExport: 429 above the limit of unfinished exports, until one has ended or is deleted', async () => {
  const client = await app.newClient()
  const answers = await Promise.all(Array.from({ length: 5 }, () => createExport(client)))
  const created = answers.filter(({ status }) => status === 201).map(({ body }) => body.id)
  const refused = answers.filter(({ status }) => status === 429)
  expect([created.length, refused.length]).toEqual([MAX_UNFINISHED, 2])
  for (const { headers, body } of refused) {
    expect(headers.get('retry-after')).toBe('10')
    expect(body).toEqual({
      message:
        'Your account has 3 unfinished exports, which is the limit. Wait until one of them has ended, or delete one.',
    })
  }
  await writeFile(app, created[0])
  expect((await createExport(client)).status).toBe(201)
  expect((await createExport(client)).status).toBe(429)
  await client.delete(`/exports/${created[1]}`)
  expect((await createExport(client)).status).toBe(201)
  expect((await createExport(await app.newClient())).status).toBe(201)
})

test('a file above the limit of stored bytes: the export fails at once and says why', async () => {
  const client = await app.newClient()
  await newTasks(client, MIB)
  const id = await requestExport(client, { resource: 'tasks', format: 'json' })
  await writeFile(app, id)
  expect((await client.get(`/exports/${id}`)).body).toMatchObject({
    status: 'failed',
    error: FILES_TOO_LARGE,
  })
  expect(await countChunks(app.db, id)).toBe(0)
  expect((await eventsAbout(client, id)).toSorted()).toEqual(['export.created', 'export.failed'])
})

test('createExport: 422 while the files take all bytes, until one is deleted or removed', async () => {
  const client = await app.newClient()
  const [one, other] = [
    await newCompleteExport(app, client, { resource: 'tasks' }),
    await newCompleteExport(app, client, { resource: 'tasks' }),
  ]
  const stored = (id: string) => app.db.write('exports').where({ id })
  await stored(one).update({ byte_size: MIB / 2 })
  await stored(other).update({ byte_size: MIB / 2 })
  expect(await createExport(client)).toMatchObject({
    status: 422,
    body: { message: 'The input is invalid.', errors: { exports: [FILES_TOO_LARGE] } },
  })
  await stored(one).update({ file_removed_at: Date.now() })
  expect((await createExport(client)).status).toBe(201)
  await stored(one).update({ file_removed_at: null })
  await client.delete(`/exports/${other}`)
  expect((await createExport(client)).status).toBe(201)
})

test('createExport: the quotas of an account replace those of the settings', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  await transaction(app.db, async (trx) => {
    const scope = writeScope(trx, account.accountId)
    await setQuota(scope, 'unfinished_exports', 1)
    await setQuota(scope, 'export_mib', 2)
  })
  const id = await requestExport(client, { resource: 'tasks', format: 'json' })
  expect(await createExport(client)).toMatchObject({
    status: 429,
    body: { message: expect.stringMatching(/^Your account has 1 unfinished export,/) },
  })
  await newTasks(client, MIB)
  await writeFile(app, id)
  expect((await client.get(`/exports/${id}`)).body.status).toBe('completed')
  const stored = app.db.write('exports').where({ id })
  await stored.update({ byte_size: 2 * MIB })
  expect((await createExport(client)).body.errors).toEqual({
    exports: [FILES_TOO_LARGE.replace('1 MiB', '2 MiB')],
  })
})

test('accounts take turns: the oldest unfinished export of each is due', async () => {
  const [one, other] = [await app.newClient(), await app.newClient()]
  const first = await requestExport(one, { resource: 'tasks' })
  const second = await requestExport(one, { resource: 'tasks' })
  const ofOther = await requestExport(other, { resource: 'tasks' })
  const ids = [first, second, ofOther]
  const due = async (): Promise<string[]> =>
    (await listDueIds(app.db, 'exports', new Date())).filter((id) => ids.includes(id))
  expect(await due()).toEqual([first, ofOther])
  await leaseExport(app.db.write, first, new Date())
  expect(await due()).toEqual([ofOther])
  await app.db.write('exports').where({ id: first }).update({ lease_expires_at: null })
  await writeFile(app, first)
  expect(await due()).toEqual([second, ofOther])
})
