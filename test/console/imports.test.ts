/** Imports in the console: choose a file, choose the fields of its columns, dry run, import. */
import { expect, it } from 'vitest'
import { doImport } from '../handlers/import-helpers.ts'
import { sharedApp } from '../helpers.ts'
import { mainForm, mainText, withValues } from './forms.ts'
import { memberWith, type Visitor, visitor } from './visitors.ts'

const app = sharedApp()

/** Sends the form with the file. Returns the page that it leads to. */
async function upload(
  visits: Visitor,
  content: string,
  { name = 'people.csv', resource = 'participants' } = {},
): Promise<{ status: number; to: string }> {
  const body = new FormData()
  body.set('resource', resource)
  body.set('file', new Blob([content]), name)
  const response = await fetch(`${app.url}/console/records/imports/new`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Cookie: visits.cookie, Referer: `${app.url}/console/records/imports/new` },
    body,
  })
  const location = response.headers.get('location') ?? ''
  return { status: response.status, to: location.replace(/^.*\/console/, '') }
}

/** Submits the page with the columns, and does the import. Returns the path of its page. */
async function start(visits: Visitor, path: string, values: Record<string, string> = {}) {
  const form = mainForm((await visits.get(path)).text)
  const answer = await visits.post(path.split('?')[0] ?? '', withValues(form, values))
  expect(answer).toMatchObject({ status: 303, to: expect.stringMatching(/^\/records\/imports\//) })
  const to = answer.to ?? ''
  await doImport(app, to.split('/').at(-1) ?? '')
  return to
}

it('a file with other column names: dry run, refused rows, then the import', async () => {
  const account = await app.newAccount()
  const visits = await visitor(app, account)
  const client = app.as(account)
  const sent = await upload(visits, 'Full name,Age,Ref\nAda,36,1\nBob,,2\n,7,3\n')
  expect(sent.status).toBe(303)
  const page = await visits.get(sent.to)
  const form = mainForm(page.text)
  expect(withValues(form, {})).toMatchObject({
    'column:0': 'full_name',
    'column:1': '',
    'column:2': '',
    mode: 'create',
    dry_run: 'true',
  })
  const other = await upload(visits, 'Full name,External ID\nAda,1\n')
  expect(withValues(mainForm((await visits.get(other.to)).text), {})).toMatchObject({
    'column:1': 'external_id',
    mode: 'upsert',
  })
  expect(mainText(page.text)).toContain('For example Ada, Bob')
  const to = await start(visits, sent.to, { 'column:2': 'external_id' })
  const dryRun = await visits.get(to)
  expect(mainText(dryRun.text)).toContain(
    'Nothing was changed yet. 3 rows: 2 created, 0 updated, 0 unchanged, 1 refused. ' +
      'Download the refused rows, correct them, and import them. To make these changes, import the rows.',
  )
  expect((await client.get('/participants')).body.meta.total).toBe(0)
  expect((await visits.get(`${to}/file`)).text).toContain('full_name is required.')

  const [, link = ''] = /href="\/console(\/records\/imports\/new\/[^"]+)"/.exec(dryRun.text) ?? []
  const again = link.replaceAll('&#38;', '&')
  expect(withValues(mainForm((await visits.get(again)).text), {})).toMatchObject({
    'column:2': 'external_id',
    dry_run: 'false',
  })
  const imported = await start(visits, again)
  expect(imported).not.toBe(to)
  const { body: record } = await client.get(`/imports/${imported.split('/').at(-1)}`)
  expect(record).toMatchObject({ created_count: 2, refused_count: 1, dry_run: false })
  expect((await client.get('/participants')).body.meta.total).toBe(2)
})

it('the same form twice starts one import', async () => {
  const account = await app.newAccount()
  const visits = await visitor(app, account)
  const { to } = await upload(visits, '{"full_name":"Ada"}\n', { name: 'people.ndjson' })
  const values = withValues(mainForm((await visits.get(to)).text), { mode: 'create' })
  const path = to.split('?')[0] ?? ''
  const [first, again] = [await visits.post(path, values), await visits.post(path, values)]
  expect(again.to).toBe(first.to)
  expect((await app.as(account).get('/imports')).body).toMatchObject({
    meta: { total: 1 },
    data: [{ format: 'ndjson' }],
  })
})

it('no file, an empty file, a broken file: the reason', async () => {
  const visits = await visitor(app, await app.newAccount())
  expect((await upload(visits, '', { name: '' })).to).toBe('/records/imports/new')
  expect((await upload(visits, '')).status).toBe(400)
  const { to } = await upload(visits, '"a')
  expect(await visits.get(to)).toMatchObject({
    status: 422,
    text: expect.stringContaining('is not valid CSV'),
  })
})

it('records that the user may not change: 403; the file of another account: 404', async () => {
  const account = await app.newAccount()
  const member = await memberWith(app, account, { exports: 'write', tasks: 'write' })
  expect((await upload(member, 'full_name\nAda')).status).toBe(403)
  const { to } = await upload(member, 'title\nCall', { resource: 'tasks' })
  const stranger = await visitor(app, await app.newAccount())
  expect((await stranger.get(to)).status).toBe(404)
  const path = await start(member, to, { mode: 'create', dry_run: 'false' })
  expect((await app.as(account).get('/tasks')).body.meta.total).toBe(1)
  expect((await member.get(path)).status).toBe(200)
})
