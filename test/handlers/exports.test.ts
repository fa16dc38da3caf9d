/** Exports by API: requests, lists and files. */
import { createHash } from 'node:crypto'
import { readXlsx } from 'hucre/xlsx'
import { describe, expect, test } from 'vitest'
import { transaction } from '../../records/database/transaction.ts'
import { leaseExport } from '../../records/export-files.ts'
import { type Answer, type Client, sharedApp, until } from '../helpers.ts'
import { runHousekeeping } from '../housekeeping.ts'
import {
  countChunks,
  csvText,
  DAY_MS,
  requestExport,
  SECOND_MS,
  writeFile,
} from './export-helpers.ts'
import { eventsAbout, withNulls } from './new-records.ts'

let clock = Date.now()
const now = (): Date => new Date(clock)

/** With the delivery engine, which also writes the files of exports. */
const app = sharedApp({ role: 'all' })
/** Without the engine: an export stays queued until a test calls `write`. Its clock is `clock`. */
const idle = sharedApp({ now })

const write = (id: string): Promise<void> => writeFile(idle, id, { now })

/** Requests an export, waits until it is completed and downloads the file. */
async function downloadExport(
  client: Client,
  body: object,
): Promise<{ record: Answer['body']; file: Answer }> {
  const id = await requestExport(client, body)
  const record = await until('the export is completed', async () => {
    const { body } = await client.get(`/exports/${id}`)
    return body.status === 'completed' && body
  })
  return { record, file: await client.get(`/exports/${id}/file`) }
}

describe('createExport', () => {
  test('queues an export, returns its Location and emits export.created', async () => {
    const client = await idle.newClient()
    const response = await client.post('/exports', {
      resource: 'participants',
      format: 'csv',
      filters: { status: 'active' },
    })
    expect(response.status).toBe(201)
    expect(response.headers.get('location')).toBe(`/public/v1/exports/${response.body.id}`)
    const stored = {
      id: expect.any(String),
      resource: 'participants',
      format: 'csv',
      filters: { status: 'active' },
      columns: [],
      status: 'queued',
      row_count: null,
      byte_size: null,
      sha256: null,
      error: null,
      completed_at: null,
      expires_at: null,
      created_at: now().toISOString(),
      updated_at: now().toISOString(),
    }
    expect(response.body).toEqual(withNulls('Export', stored))
    expect((await client.get(`/exports/${response.body.id}`)).body).toEqual(response.body)
    expect(await eventsAbout(client, response.body.id)).toEqual(['export.created'])
  })

  const refused: { filters: unknown; errors: object }[] = [
    {
      filters: { status: 'bogus' },
      errors: { 'filters.status': ['must be one of active, inactive, archived.'] },
    },
    {
      filters: { status: 'active,active' },
      errors: { 'filters.status': ['must not contain the same value twice.'] },
    },
    {
      filters: { status: '' },
      errors: { 'filters.status': ['must be one of active, inactive, archived.'] },
    },
    { filters: { status: 1 }, errors: { 'filters.status': ['must be a string.'] } },
    { filters: { foo: 'x' }, errors: { 'filters.foo': ['is not a recognised field.'] } },
    {
      filters: { 'page[size]': '1' },
      errors: { 'filters.page[size]': ['is not a recognised field.'] },
    },
    {
      filters: { constructor: 'x' },
      errors: { 'filters.constructor': ['is not a recognised field.'] },
    },
    {
      filters: { created_after: 'yesterday' },
      errors: { 'filters.created_after': expect.any(Array) },
    },
    { filters: 'status', errors: { filters: ['must be an object.'] } },
  ]
  test.each(refused)('422 for the filters $filters', async ({ filters, errors }) => {
    const client = await idle.newClient()
    const response = await client.post('/exports', {
      resource: 'participants',
      format: 'csv',
      filters,
    })
    expect(response).toMatchObject({ status: 422, body: { errors } })
    expect(Object.keys(response.body.errors)).toEqual(Object.keys(errors))
    expect((await client.get('/exports')).body.meta.total).toBe(0)
  })

  test('422 for a field or filter called __proto__ or constructor', async () => {
    const client = await idle.newClient()
    const filter = await client.post(
      '/exports',
      '{"resource":"tasks","format":"csv","filters":{"__proto__":"x"}}',
    )
    expect(filter).toMatchObject({ status: 422 })
    expect(filter.text).toContain('"filters.__proto__":["is not a recognised field."]')
    const field = await client.post(
      '/exports',
      '{"resource":"tasks","format":"csv","__proto__":1,"constructor":1}',
    )
    expect(field).toMatchObject({ status: 422 })
    expect(field.text).toContain(
      '"__proto__":["is not a recognised field."],"constructor":["is not a recognised field."]',
    )
  })

  test('403 for payments unless the key owner may read them', async () => {
    const account = await idle.newAccount()
    const request = async (finance: 'none' | 'read'): Promise<number> => {
      const { userId } = await idle.newUser(account.accountId, { finance })
      const key = await idle.newKey({ accountId: account.accountId, userId })
      return (await idle.as({ key }).post('/exports', { resource: 'payments', format: 'csv' }))
        .status
    }
    expect(await request('none')).toBe(403)
    expect(await request('read')).toBe(201)
  })
})

describe('listExports', () => {
  test('filters; sort=completed_at has unfinished exports last in both directions', async () => {
    const client = await idle.newClient()
    const tasks = await requestExport(client, { resource: 'tasks' })
    const jobs = await requestExport(client, { resource: 'jobs' })
    await write(jobs)
    const ids = async (query: string): Promise<string[]> =>
      (await client.get(`/exports?${query}`)).body.data.map((each: { id: string }) => each.id)
    expect(await ids('filter[status]=completed')).toEqual([jobs])
    expect(await ids('filter[resource]=tasks,participants')).toEqual([tasks])
    expect(await ids('sort=completed_at')).toEqual([jobs, tasks])
    expect(await ids('sort=-completed_at')).toEqual([jobs, tasks])
  })
})

describe('another account', () => {
  test('cannot get, list or download the exports', async () => {
    const client = await idle.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    await write(id)
    const other = await idle.newClient()
    expect(await other.get(`/exports/${id}`)).toMatchObject({ status: 404 })
    expect(await other.get(`/exports/${id}/file`)).toMatchObject({ status: 404 })
    expect((await other.get('/exports')).body.data).toEqual([])
  })
})

describe('getExportFile', () => {
  test('csv_raw has quotes, line breaks, lists and Unicode; csv also marks formulas', async () => {
    const client = await app.newClient()
    const tags = ['a "quoted" one', 'x,y', '🦉']
    const inputs = [
      {
        full_name: 'Ada "Countess" Lovelace, née Byron',
        email: 'ada@example.com',
        phone: '+44 20 7946 0000',
        tags,
        external_id: ' crm-1815 ',
      },
      { full_name: 'line\nfeed, carriage\rreturn and\r\nboth 👩🏽‍🚀', status: 'inactive' },
      { full_name: '=1+1', external_id: '@x' },
    ]
    const created = []
    for (const participant of inputs)
      created.push((await client.post('/participants', participant)).body)
    const name = '"Ada ""Countess"" Lovelace, née Byron"'
    const quotedTags = '"[""a \\""quoted\\"" one"",""x,y"",""🦉""]"'
    const breaks = '"line\nfeed, carriage\rreturn and\r\nboth 👩🏽‍🚀"'
    const cells = [
      [name, 'ada@example.com', '+44 20 7946 0000', 'active', quotedTags, ' crm-1815 '],
      [breaks, '', '', 'inactive', '[]', ''],
      ['=1+1', '', '', 'active', '[]', '@x'],
    ]
    const text = csvText(
      'Participant',
      'id,full_name,email,phone,status,tags,external_id,created_at,updated_at',
      ...created.map(({ id, created_at, updated_at }, index) => [
        id,
        ...(cells[index] ?? []),
        created_at,
        updated_at,
      ]),
    )
    const raw = await downloadExport(client, { resource: 'participants', format: 'csv_raw' })
    expect(raw.file.text).toBe(text)
    const marked = await downloadExport(client, { resource: 'participants' })
    expect(marked.file.text).toBe(
      text.replace(',+44', ",'+44").replace(',=1+1', ",'=1+1").replace(',@x', ",'@x"),
    )
  })

  test('xlsx has numbers, text that is no formula, and the chosen columns', async () => {
    const { key } = await app.newAccount()
    const client = app.as({ key })
    const inputs = [
      { title: '=1+1', description: 'x'.repeat(1_000) },
      { title: '_x0041_ 🦉\r\nb\u0001', due_at: '2026-01-31T12:00:00Z' },
    ]
    for (const task of inputs) expect((await client.post('/tasks', task)).status).toBe(201)
    const columns = ['due_at', 'title', 'description']
    const body = { resource: 'tasks', format: 'xlsx', columns }
    const { record } = await downloadExport(client, body)
    expect(record).toMatchObject({ status: 'completed', row_count: 2, columns })
    const response = await fetch(`${app.url}/public/v1/exports/${record.id}/file`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    expect(response.headers.get('content-disposition')).toMatch(/\.xlsx"$/)
    const bytes = new Uint8Array(await response.arrayBuffer())
    expect(bytes.length).toBe(record.byte_size)
    const { sheets } = await readXlsx(bytes)
    expect(sheets[0]?.rows).toEqual([
      columns,
      [null, '=1+1', inputs[0]?.description],
      ['2026-01-31T12:00:00.000Z', inputs[1]?.title, expect.toBeOneOf([null, ''])],
    ])
  })

  test('columns of other resources, and of JSON → 422', async () => {
    const client = await app.newClient()
    const create = (format: string, columns: string[]) =>
      client.post('/exports', { resource: 'payments', format, columns })
    expect((await create('csv', ['id', 'title'])).body.errors).toEqual({
      'columns.1': [expect.stringMatching(/^must be one of id, participant_id, /)],
    })
    expect((await create('json', ['id'])).body.errors).toEqual({
      columns: ['cannot be chosen with the format json.'],
    })
    const { file } = await downloadExport(client, {
      resource: 'payments',
      columns: ['currency', 'amount_minor'],
    })
    expect(file.text).toBe('currency,amount_minor\r\n')
  })

  test('the record and the headers describe the file', async () => {
    const client = await app.newClient()
    for (const full_name of ['Ada', 'Zoë 🦉']) await client.post('/participants', { full_name })
    const { record, file } = await downloadExport(client, { resource: 'participants' })
    const digest = createHash('sha256').update(file.text)
    const sha256 = digest.copy().digest('hex')
    expect(record).toMatchObject({
      status: 'completed',
      row_count: 2,
      byte_size: Buffer.byteLength(file.text),
      sha256,
      error: null,
    })
    expect(Date.parse(record.expires_at) - Date.parse(record.completed_at)).toBe(7 * DAY_MS)
    expect(file.status).toBe(200)
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'content-type': 'text/csv',
      'content-length': String(record.byte_size),
      'content-disposition': expect.stringMatching(
        /^attachment; filename="participants-\d{4}-\d\d-\d\dT\d{6}Z\.csv"$/,
      ),
      'repr-digest': `sha-256=:${digest.digest('base64')}:`,
    })
    expect(await eventsAbout(client, record.id)).toEqual(['export.created', 'export.completed'])
    const [completed] = (await client.get('/events?sort=-created_at')).body.data
    expect((await client.get(`/events/${completed.id}`)).body.actor).toEqual({
      type: 'system',
      id: null,
      user_id: null,
    })
  })

  test('CSV: empty text differs from null', async () => {
    const client = await app.newClient()
    const { body: task } = await client.post('/tasks', { title: 'Call' })
    const { file } = await downloadExport(client, { resource: 'tasks' })
    expect(file.text).toBe(
      csvText(
        'Task',
        'id,title,description,status,participant_id,due_at,completed_at,created_at,updated_at',
        [task.id, 'Call', '""', 'open', '', '', '', task.created_at, task.updated_at],
      ),
    )
  })

  test.each(['a\nb', 'a\rb', 'a\r\nb'])(
    'CSV: a field with the line break %j is quoted',
    async (description) => {
      const client = await app.newClient()
      const { body: task } = await client.post('/tasks', { title: 'Call', description })
      const { file } = await downloadExport(client, { resource: 'tasks' })
      expect(file.text).toContain(`\r\n${task.id},Call,"${description}",open,`)
    },
  )

  test('JSON: the records that match the filters, as in the API', async () => {
    const client = await app.newClient()
    const inputs = [
      { full_name: 'A "1"', status: 'active', tags: ['vip'] },
      { full_name: 'B, \n2 🦉', status: 'archived', tags: ['vip'] },
      { full_name: 'C', status: 'inactive', tags: ['vip'] },
      { full_name: 'D', status: 'inactive', tags: [] },
    ]
    const created = []
    for (const participant of inputs)
      created.push((await client.post('/participants', participant)).body)
    const filters = { status: 'active,inactive', tag: 'vip', created_after: '2020-01-01T00:00:00Z' }
    const { record, file } = await downloadExport(client, {
      resource: 'participants',
      format: 'json',
      filters,
    })
    expect(file.headers.get('content-type')).toBe('application/json')
    expect(file.headers.get('content-disposition')).toMatch(/\.json"$/)
    expect(file.body).toEqual([created[0], created[2]])
    expect(record).toMatchObject({ row_count: 2, filters, byte_size: Buffer.byteLength(file.text) })
  })

  test('no records: a header line, or an empty array', async () => {
    const client = await app.newClient()
    const csv = await downloadExport(client, { resource: 'payments' })
    expect(csv.file.text).toBe(
      csvText(
        'Payment',
        'id,participant_id,task_id,amount_minor,currency,status,note,paid_at,created_at,updated_at',
      ),
    )
    expect(csv.record).toMatchObject({ row_count: 0, byte_size: csv.file.text.length })
    const json = await downloadExport(client, { resource: 'jobs', format: 'json' })
    expect(json.file.body).toEqual([])
  })

  test('job applications: answers are JSON text', async () => {
    const client = await app.newClient()
    const { body: participant } = await client.post('/participants', { full_name: 'A' })
    const { body: job } = await client.post('/jobs', { title: 'J', status: 'open' })
    const applied = {
      job_id: job.id,
      participant_id: participant.id,
      answers: { years: 3, note: 'a "b"' },
    }
    const { body: application } = await client.post('/job-applications', applied)
    const { file } = await downloadExport(client, {
      resource: 'job_applications',
      filters: { job_id: job.id },
    })
    const { id, created_at, updated_at } = application
    const answers = '"{""years"":3,""note"":""a \\""b\\""""}"'
    expect(file.text).toBe(
      csvText(
        'JobApplication',
        'id,job_id,participant_id,status,answers,screening_outcome,created_at,updated_at',
        [id, job.id, participant.id, 'submitted', answers, '', created_at, updated_at],
      ),
    )
  })

  test('HEAD: the headers without a body', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const { record } = await downloadExport(client, { resource: 'tasks' })
    const head = await app.call('HEAD', `/public/v1/exports/${record.id}/file`, account)
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-length')).toBe(String(record.byte_size))
    expect(head.headers.get('content-type')).toBe('text/csv')
  })

  test('403 for payments unless the key owner may read them', async () => {
    const account = await idle.newAccount()
    const client = idle.as(account)
    const id = await requestExport(client, { resource: 'payments' })
    await write(id)
    const { userId } = await idle.newUser(account.accountId, { finance: 'none' })
    const key = await idle.newKey({ accountId: account.accountId, userId })
    expect(await idle.as({ key }).get(`/exports/${id}/file`)).toMatchObject({ status: 403 })
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 200 })
  })

  test('409 while the export is queued or processing', async () => {
    const client = await idle.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    const notReady = { status: 409, body: { message: 'The export is not ready yet.' } }
    expect(await client.get(`/exports/${id}/file`)).toMatchObject(notReady)
    await transaction(idle.db, ({ sql }) => leaseExport(sql, id, now()))
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({
      status: 'processing',
      row_count: 0,
    })
    expect(await client.get(`/exports/${id}/file`)).toMatchObject(notReady)
  })

  test('410 after 7 days; an hour later the file is deleted and the record remains', async () => {
    const client = await idle.newClient()
    const id = await requestExport(client, { resource: 'tasks' })
    await write(id)
    const { body: completed } = await client.get(`/exports/${id}`)
    clock += 7 * DAY_MS - 1
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 200 })
    clock += 1
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 410 })
    await runHousekeeping(idle, 'minute', { now })
    expect(await countChunks(idle.db, id)).toBe(1)
    clock += 60 * 60 * SECOND_MS
    await runHousekeeping(idle, 'minute', { now })
    expect(await countChunks(idle.db, id)).toBe(0)
    expect((await client.get(`/exports/${id}`)).body).toEqual(completed)
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 410 })
  })
})
