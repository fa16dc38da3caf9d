/** Exports in the console: their files, their progress, and who may create and download them. */
import { beforeAll, expect, it } from 'vitest'
import { newCompleteExport } from '../handlers/export-helpers.ts'
import { expectSuccess, newParticipant } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainForm, mainText, pathOfLink, submitForm, withValues } from './forms.ts'
import { newOwner, type Owner, writeExportFile } from './record-forms.ts'
import { memberWith, newConsoleUser, visitor } from './visitors.ts'

let owner: Owner
let exportId: string
const app = sharedApp()
beforeAll(async () => {
  owner = await newOwner(app)
  await newParticipant(owner.client, { full_name: 'Ada Lovelace' })
  exportId = await newCompleteExport(app, owner.client, { resource: 'participants' })
})

it('a download has the bytes, the type and the name of the API', async () => {
  const api = await fetch(`${app.url}/public/v1/exports/${exportId}/file`, {
    headers: { Authorization: `Bearer ${owner.account.key}` },
  })
  const file = await fetch(`${app.url}/console/records/exports/${exportId}/file`, {
    headers: { Cookie: owner.visits.cookie },
  })
  expect(Buffer.from(await file.arrayBuffer()).equals(Buffer.from(await api.arrayBuffer()))).toBe(
    true,
  )
  for (const name of ['content-disposition', 'content-type', 'content-length', 'repr-digest'])
    expect([name, file.headers.get(name)]).toEqual([name, api.headers.get(name)])
})

it('an export of payments: 403 for its creation and its file without Finance access', async () => {
  const id = await newCompleteExport(app, owner.client, { resource: 'payments' })
  const person = await newConsoleUser(app, owner.account.accountId, {
    role: 'admin',
    permissions: { finance: 'none' },
  })
  const [visits, client] = [await visitor(app, person), app.as({ key: await app.newKey(person) })]
  expect([
    (await visits.get(`/records/exports/${id}/file`)).status,
    (await client.get(`/exports/${id}/file`)).status,
  ]).toEqual([403, 403])
  const page = await visits.get(`/records/exports/${id}`)
  expect([page.status, page.text.includes('/file"')]).toEqual([200, false])
  expect((await visits.get('/records/exports')).text).not.toContain(`/${id}/file"`)
  const total = async () => (await client.get('/exports')).body.meta.total
  const before = await total()
  const form = mainForm((await visits.get('/records/exports/new')).text)
  const answer = await visits.post(
    '/records/exports/new',
    withValues(form, { resource: 'payments', format: 'csv' }),
  )
  expect([
    answer.status,
    (await client.post('/exports', { resource: 'payments', format: 'csv' })).status,
  ]).toEqual([403, 403])
  expect(withValues(mainForm(answer.text), {})).toMatchObject({
    resource: 'payments',
    format: 'csv',
  })
  expect(await total()).toBe(before)

  const reader = await visitor(
    app,
    await newConsoleUser(app, owner.account.accountId, { permissions: { finance: 'read' } }),
  )
  expect((await reader.get(`/records/exports/${id}/file`)).status).toBe(200)
  expect(
    (await submitForm(reader, '/records/exports/new', { resource: 'payments', format: 'csv' }))
      .status,
  ).toBe(303)
})

it('an export of records that the user cannot view: 403 for its file and its creation', async () => {
  const visits = await memberWith(app, owner.account, { exports: 'write', tasks: 'read' })
  expect((await visits.get(`/records/exports/${exportId}/file`)).status).toBe(403)
  const page = await visits.get('/records/exports/new')
  expect([...page.text.matchAll(/<option value="(\w+)"/g)].map(([, value]) => value)).toEqual([
    'tasks',
  ])
  expect(
    (
      await submitForm(visits, '/records/exports/new', {
        resource: 'participants',
        format: 'csv',
      })
    ).status,
  ).toBe(403)
  expect(
    (await submitForm(visits, '/records/exports/new', { resource: 'tasks', format: 'csv' })).status,
  ).toBe(303)
})

it('the page of an export shows its filters and columns in words, and its name and status once', async () => {
  const participant_id = (await owner.client.get('/participants')).body.data[0].id
  const id = await newCompleteExport(app, owner.client, {
    resource: 'tasks',
    filters: { participant_id, status: 'open,in_progress' },
    columns: ['id', 'due_at'],
  })
  const { text } = await owner.visits.get(`/records/exports/${id}`)
  expect(mainText(text)).toMatch(
    /Filters (Participant Ada Lovelace|Status Open, In progress| )+Columns ID, Due /,
  )
  expect(mainText(text).match(/Completed(?! 20)/g)).toHaveLength(1)
  expect(mainText(text)).toMatch(/0 rows\. Download the file before .* UTC\./)
  expect(mainText(text)).not.toContain('Error')
  expect(text).toContain('aria-label="Copy the SHA-256"')
})

it('an unfinished export shows its progress and reloads; a completed, failed or expired one does not', async () => {
  const { id } = await expectSuccess(
    owner.client.post('/exports', {
      resource: 'participants',
      format: 'csv',
      filters: { status: 'active' },
    }),
  )
  const isReloading = (text: string): boolean => text.includes('hx-trigger="every 2s"')
  const [list, page] = [
    await owner.visits.get('/records/exports'),
    await owner.visits.get(`/records/exports/${id}`),
  ]
  expect([isReloading(list.text), isReloading(page.text)]).toEqual([true, true])
  expect(mainText(page.text)).toMatch(/Export in progress: 0 of 1 participants so far\./)
  expect((await owner.visits.get(`/records/exports/${id}/file`)).status).toBe(409)
  await writeExportFile(app, id)
  const done = await owner.visits.get(`/records/exports/${id}`)
  const [head = ''] = /<header class="page-head">.*?<\/header>/s.exec(done.text) ?? []
  expect(isReloading(done.text)).toBe(false)
  expect(pathOfLink(head, 'Download')).toBe(`/records/exports/${id}/file`)

  await app.db
    .write('exports')
    .where({ id })
    .update({ expires_at: Date.now() - 1 })
  const expired = await owner.visits.get(`/records/exports/${id}`)
  expect([isReloading(expired.text), expired.text.includes('/file"')]).toEqual([false, false])
  expect((await owner.visits.get(`/records/exports/${id}/file`)).status).toBe(410)
  await app.db
    .write('exports')
    .where({ id })
    .update({ status: 'failed', completed_at: null, expires_at: null, error: 'It broke <b>.' })
  const failed = await owner.visits.get(`/records/exports/${id}`)
  expect([isReloading(failed.text), mainText(failed.text).includes('It broke <b>.')]).toEqual([
    false,
    true,
  ])
  expect((await owner.visits.get(`/records/exports/${id}/file`)).status).toBe(409)
})

it('without JavaScript: the search for a record stays visible among the folded filters', async () => {
  const form = mainForm((await owner.visits.get('/records/exports/new')).text)
  const searched = await owner.visits.post(
    form.to,
    withValues(form, { resource: 'tasks', 'ask:find': 'filters.participant_id' }),
  )
  const [fold = ''] = /<details[^>]*>\s*<summary>Filters.*?<\/details>/s.exec(searched.text) ?? []
  expect(fold).toContain('Ada Lovelace')
  expect(fold).toMatch(/^<details[^>]* open>/)
})
