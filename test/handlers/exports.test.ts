import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { makeExport } from '../../operations/export-job.ts'
import { accountScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import {
  ClaimLost,
  claimExport,
  completeExport,
  deleteExpiredFiles,
  type ExportResource,
  exportFields,
  listDueExportIds,
  renewClaim,
} from '../../records/exports.ts'
import {
  type Answer,
  type Client,
  startApp,
  type TestAccount,
  type TestApp,
  until,
} from '../helpers.ts'

const SECOND = 1_000
const DAY = 24 * 60 * 60 * SECOND

/** With the engine: exports are made in the background. */
let app: TestApp
/** Without: an export stays queued until a test makes it. Its clock is `clock`. */
let idle: TestApp
let clock = Date.now()
const now = (): Date => new Date(clock)

beforeAll(async () => {
  app = await startApp({ role: 'all' })
  idle = await startApp({ role: 'api', now })
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await idle?.[Symbol.asyncDispose]()
})

async function newClient(of: TestApp): Promise<{ account: TestAccount; client: Client }> {
  const account = await of.newAccount()
  return { account, client: of.as(account) }
}

async function requested(client: Client, body: object): Promise<string> {
  const answer = await client.post('/exports', { format: 'csv', ...body })
  expect(answer).toMatchObject({ status: 201 })
  return answer.body.id
}

/** Requests an export, waits for it and downloads it. */
async function exported(
  client: Client,
  body: object,
): Promise<{ record: Answer['body']; file: Answer }> {
  const id = await requested(client, body)
  const record = await until('the export is completed', async () => {
    const { body } = await client.get(`/exports/${id}`)
    return body.status === 'completed' && body
  })
  return { record, file: await client.get(`/exports/${id}/file`) }
}

const make = (id: string, signal = new AbortController().signal): Promise<void> =>
  makeExport(idle.db, id, now, signal)

const eventTypesOf = async (client: Client, id: string): Promise<string[]> =>
  (await client.get(`/events?filter[resource_id]=${id}`)).body.data.map(
    (event: { event_type: string }) => event.event_type,
  )

const row = (id: string) => idle.db.read('exports').where({ id }).first()

const chunkCount = async (id: string): Promise<number> =>
  Number(
    (await idle.db.read('export_chunks').where({ export_id: id }).count({ total: '*' }))[0]?.total,
  )

describe('createExport', () => {
  test('queues an export, says where it is and emits export.created', async () => {
    const { client } = await newClient(idle)
    const answer = await client.post('/exports', {
      resource: 'participants',
      format: 'csv',
      filters: { status: 'active' },
    })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('location')).toBe(`/public/v1/exports/${answer.body.id}`)
    expect(answer.body).toEqual({
      id: expect.any(String),
      resource: 'participants',
      format: 'csv',
      filters: { status: 'active' },
      status: 'queued',
      row_count: null,
      byte_size: null,
      sha256: null,
      error: null,
      completed_at: null,
      expires_at: null,
      created_at: now().toISOString(),
      updated_at: now().toISOString(),
    })
    expect((await client.get(`/exports/${answer.body.id}`)).body).toEqual(answer.body)
    expect(await eventTypesOf(client, answer.body.id)).toEqual(['export.created'])
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
    const { client } = await newClient(idle)
    const answer = await client.post('/exports', {
      resource: 'participants',
      format: 'csv',
      filters,
    })
    expect(answer).toMatchObject({ status: 422, body: { errors } })
    expect(Object.keys(answer.body.errors)).toEqual(Object.keys(errors))
    expect((await client.get('/exports')).body.meta.total).toBe(0)
  })

  test('422 for a field or filter called __proto__ or constructor', async () => {
    const { client } = await newClient(idle)
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
    const { account } = await newClient(idle)
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
  test('filters and sorts', async () => {
    const { client } = await newClient(idle)
    const tasks = await requested(client, { resource: 'tasks' })
    const jobs = await requested(client, { resource: 'jobs' })
    await make(jobs)
    const ids = async (query: string): Promise<string[]> =>
      (await client.get(`/exports?${query}`)).body.data.map((each: { id: string }) => each.id)
    expect(await ids('filter[status]=completed')).toEqual([jobs])
    expect(await ids('filter[resource]=tasks,participants')).toEqual([tasks])
    expect(await ids('sort=completed_at')).toEqual([jobs, tasks])
    expect(await ids('sort=-completed_at')).toEqual([jobs, tasks])
  })
})

describe('another account', () => {
  test('getExport, getExportFile and listExports: its exports are not there', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    await make(id)
    const { client: other } = await newClient(idle)
    expect(await other.get(`/exports/${id}`)).toMatchObject({ status: 404 })
    expect(await other.get(`/exports/${id}/file`)).toMatchObject({ status: 404 })
    expect((await other.get('/exports')).body.data).toEqual([])
  })
})

describe('getExportFile', () => {
  test('CSV: whatever the fields hold', async () => {
    const { client } = await newClient(app)
    const tags = ['a "quoted" one', 'x,y', '🦉']
    const given = [
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
    const made = []
    for (const participant of given)
      made.push((await client.post('/participants', participant)).body)
    const { record, file } = await exported(client, { resource: 'participants' })

    const times = made.map(({ created_at, updated_at }) => `${created_at},${updated_at}`)
    const lines = [
      'id,full_name,email,phone,status,tags,external_id,created_at,updated_at',
      `${made[0].id},"Ada ""Countess"" Lovelace, née Byron",ada@example.com,+44 20 7946 0000,active,"[""a \\""quoted\\"" one"",""x,y"",""🦉""]", crm-1815 ,${times[0]}`,
      `${made[1].id},"line\nfeed, carriage\rreturn and\r\nboth 👩🏽‍🚀",,,inactive,[],,${times[1]}`,
      `${made[2].id},=1+1,,,active,[],@x,${times[2]}`,
    ]
    const text = lines.map((line) => `${line}\r\n`).join('')
    expect(file.text).toBe(text)
    const digest = createHash('sha256').update(text)
    const sha256 = digest.copy().digest('hex')
    expect(record).toMatchObject({
      status: 'completed',
      row_count: 3,
      byte_size: Buffer.byteLength(text),
      sha256,
      error: null,
    })
    expect(Date.parse(record.expires_at) - Date.parse(record.completed_at)).toBe(7 * DAY)
    expect(file.status).toBe(200)
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'content-type': 'text/csv',
      'content-length': String(record.byte_size),
      'content-disposition': expect.stringMatching(
        /^attachment; filename="participants-\d{4}-\d\d-\d\dT\d{6}Z\.csv"$/,
      ),
      'repr-digest': `sha-256=:${digest.digest('base64')}:`,
    })
    expect(await eventTypesOf(client, record.id)).toEqual(['export.created', 'export.completed'])
  })

  test('CSV: empty text is not null', async () => {
    const { client } = await newClient(app)
    const { body: task } = await client.post('/tasks', { title: 'Call' })
    const { file } = await exported(client, { resource: 'tasks' })
    expect(file.text).toBe(
      `id,title,description,status,participant_id,due_at,completed_at,created_at,updated_at\r\n${task.id},Call,"",open,,,,${task.created_at},${task.updated_at}\r\n`,
    )
  })

  test.each(['a\nb', 'a\rb', 'a\r\nb'])(
    'CSV: a line break within a field, %j, ends no record',
    async (description) => {
      const { client } = await newClient(app)
      const { body: task } = await client.post('/tasks', { title: 'Call', description })
      const { file } = await exported(client, { resource: 'tasks' })
      expect(file.text).toContain(`\r\n${task.id},Call,"${description}",open,`)
    },
  )

  test('JSON: the records as the API shows them, those that match the filters', async () => {
    const { client } = await newClient(app)
    const given = [
      { full_name: 'A "1"', status: 'active', tags: ['vip'] },
      { full_name: 'B, \n2 🦉', status: 'archived', tags: ['vip'] },
      { full_name: 'C', status: 'inactive', tags: ['vip'] },
      { full_name: 'D', status: 'inactive', tags: [] },
    ]
    const made = []
    for (const participant of given)
      made.push((await client.post('/participants', participant)).body)
    const filters = { status: 'active,inactive', tag: 'vip', created_after: '2020-01-01T00:00:00Z' }
    const { record, file } = await exported(client, {
      resource: 'participants',
      format: 'json',
      filters,
    })
    expect(file.headers.get('content-type')).toBe('application/json')
    expect(file.headers.get('content-disposition')).toMatch(/\.json"$/)
    expect(file.body).toEqual([made[0], made[2]])
    expect(record).toMatchObject({ row_count: 2, filters, byte_size: Buffer.byteLength(file.text) })
  })

  test('nothing to export: a header line, or an empty array', async () => {
    const { client } = await newClient(app)
    const csv = await exported(client, { resource: 'payments' })
    expect(csv.file.text).toBe(
      'id,participant_id,task_id,amount_minor,currency,status,note,paid_at,created_at,updated_at\r\n',
    )
    expect(csv.record).toMatchObject({ row_count: 0, byte_size: csv.file.text.length })
    const json = await exported(client, { resource: 'jobs', format: 'json' })
    expect(json.file.body).toEqual([])
  })

  test('job applications: answers are JSON text', async () => {
    const { client } = await newClient(app)
    const { body: participant } = await client.post('/participants', { full_name: 'A' })
    const { body: job } = await client.post('/jobs', { title: 'J', status: 'open' })
    const applied = {
      job_id: job.id,
      participant_id: participant.id,
      answers: { years: 3, note: 'a "b"' },
    }
    const { body: application } = await client.post('/job-applications', applied)
    const { file } = await exported(client, {
      resource: 'job_applications',
      filters: { job_id: job.id },
    })
    expect(file.text.split('\r\n')[1]).toBe(
      `${application.id},${job.id},${participant.id},submitted,"{""years"":3,""note"":""a \\""b\\""""}",,${application.created_at},${application.updated_at}`,
    )
  })

  test('HEAD: the headers alone', async () => {
    const { account, client } = await newClient(app)
    const { record } = await exported(client, { resource: 'tasks' })
    const head = await app.call('HEAD', `/public/v1/exports/${record.id}/file`, account)
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers.get('content-length')).toBe(String(record.byte_size))
    expect(head.headers.get('content-type')).toBe('text/csv')
  })

  test('403 for payments unless the key owner may read them', async () => {
    const { account, client } = await newClient(idle)
    const id = await requested(client, { resource: 'payments' })
    await make(id)
    const { userId } = await idle.newUser(account.accountId, { finance: 'none' })
    const key = await idle.newKey({ accountId: account.accountId, userId })
    expect(await idle.as({ key }).get(`/exports/${id}/file`)).toMatchObject({ status: 403 })
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 200 })
  })

  test('409 while it is queued or being made', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    const notReady = { status: 409, body: { message: 'The export is not ready yet.' } }
    expect(await client.get(`/exports/${id}/file`)).toMatchObject(notReady)
    await transaction(idle.db, ({ sql }) => claimExport(sql, id, now()))
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({
      status: 'processing',
      row_count: 0,
    })
    expect(await client.get(`/exports/${id}/file`)).toMatchObject(notReady)
  })

  test('410 after 7 days; an hour later the file is removed and the record stays', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    await make(id)
    const { body: completed } = await client.get(`/exports/${id}`)
    clock += 7 * DAY - 1
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 200 })
    clock += 1
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 410 })
    await deleteExpiredFiles(idle.db, clock)
    expect(await chunkCount(id)).toBe(1)
    clock += 60 * 60 * SECOND
    await deleteExpiredFiles(idle.db, clock)
    expect(await chunkCount(id)).toBe(0)
    expect((await client.get(`/exports/${id}`)).body).toEqual(completed)
    expect(await client.get(`/exports/${id}/file`)).toMatchObject({ status: 410 })
  })
})

describe('making', () => {
  test('killed: made again from the start when the lease has run out', async () => {
    const { client } = await newClient(idle)
    await client.post('/tasks', { title: 'One' })
    const id = await requested(client, { resource: 'tasks', format: 'json' })
    const claim = await transaction(idle.db, ({ sql }) => claimExport(sql, id, now()))
    await idle.db
      .write('export_chunks')
      .insert(
        [0, 1].map((position) => ({ export_id: id, position, bytes: Buffer.from('left behind') })),
      )
    expect(await listDueExportIds(idle.db, now())).not.toContain(id)
    await make(id)
    expect((await row(id)).status).toBe('processing')

    clock += 61 * SECOND
    expect(await listDueExportIds(idle.db, now())).toContain(id)
    await make(id)
    expect((await client.get(`/exports/${id}/file`)).body).toMatchObject([{ title: 'One' }])
    expect(await chunkCount(id)).toBe(1)
    expect(await eventTypesOf(client, id)).toEqual(['export.created', 'export.completed'])

    // The one that was thought dead wakes up, and can change nothing any more.
    if (claim === undefined) throw new Error('The export was not claimed')
    const file = { rowCount: 0, byteSize: 0, sha256: '' }
    await expect(
      transaction(idle.db, ({ sql }) => renewClaim(sql, claim, 1, now())),
    ).rejects.toThrow(ClaimLost)
    await expect(
      transaction(idle.db, ({ sql }) => completeExport(sql, claim, file, now())),
    ).rejects.toThrow(ClaimLost)
  })

  test('of several that want it at once, one makes it', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    await Promise.all([make(id), make(id), make(id)])
    expect(await row(id)).toMatchObject({ status: 'completed', tries: 1 })
    expect(await eventTypesOf(client, id)).toEqual(['export.created', 'export.completed'])
  })

  test('killed in every try: fails instead of killing for ever', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(await transaction(idle.db, ({ sql }) => claimExport(sql, id, now()))).toMatchObject({
        tries: attempt,
      })
      clock += 61 * SECOND
    }
    await make(id)
    expect((await client.get(`/exports/${id}`)).body).toMatchObject({ status: 'failed' })
    expect(await eventTypesOf(client, id)).toEqual(['export.created', 'export.failed'])
  })

  test('stopped: queued again at once, and the try does not count', async () => {
    const { client } = await newClient(idle)
    const id = await requested(client, { resource: 'tasks' })
    await make(id, AbortSignal.abort())
    expect(await row(id)).toMatchObject({
      status: 'queued',
      tries: 0,
      lease_expires_at: null,
      row_count: null,
    })
    expect(await listDueExportIds(idle.db, now())).toContain(id)
    await make(id)
    expect(await row(id)).toMatchObject({ status: 'completed', tries: 1 })
  })

  test('an error: tried three times, a little later each time, then failed with a sentence for people', async () => {
    const { client } = await newClient(idle)
    const { body: job } = await client.post('/jobs', { title: 'J' })
    await idle.db.write('jobs').where({ id: job.id }).update({ screening_questions: 'not JSON' })
    const id = await requested(client, { resource: 'jobs' })
    for (const delay of [5, 10]) {
      await expect(make(id)).rejects.toThrow(SyntaxError)
      expect(await row(id)).toMatchObject({
        status: 'queued',
        lease_expires_at: clock + delay * SECOND,
      })
      await make(id)
      expect((await row(id)).status).toBe('queued')
      clock += delay * SECOND
    }
    await expect(make(id)).rejects.toThrow(SyntaxError)
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
    expect(await chunkCount(id)).toBe(0)
    expect(await listDueExportIds(idle.db, now())).not.toContain(id)
    expect(await eventTypesOf(client, id)).toEqual(['export.created', 'export.failed'])
  })

  test('the columns are the fields of the contract', () => {
    const records: Record<ExportResource, keyof typeof contract.components.schemas> = {
      participants: 'Participant',
      tasks: 'Task',
      jobs: 'Job',
      job_applications: 'JobApplication',
      payments: 'Payment',
    }
    for (const [resource, name] of Object.entries(records) as [
      ExportResource,
      keyof typeof contract.components.schemas,
    ][])
      expect(exportFields(resource)).toEqual(
        (contract.components.schemas[name] as { required?: string[] }).required,
      )
  })
})

describe('50,000 records', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const held = (): number => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }

  /** How much more was held than at the beginning, in bytes: the most that two looks in a row found, because buffers that are done with are freed a
   *  moment after their collection. */
  async function growthDuring(work: () => Promise<void>): Promise<number> {
    const before = held()
    let most = before
    let last = before
    const timer = setInterval(() => {
      const now = held()
      most = Math.max(most, Math.min(now, last))
      last = now
    }, 200)
    await work().finally(() => clearInterval(timer))
    return most - before
  }

  test('are written and read in constant memory, and a client that goes away ends the reading', {
    timeout: 120_000,
  }, async () => {
    const { account, client } = await newClient(idle)
    const task = {
      title: 'Task',
      description: 'x'.repeat(2_000),
      status: 'open',
      created_at: clock,
      updated_at: clock,
    }
    await transaction(idle.db, async (trx) => {
      const scope = accountScope(trx, account.accountId)
      for (let count = 0; count < 50_000; count += 500)
        await scope.insert(
          'tasks',
          Array.from({ length: 500 }, () => ({ id: uuidv7(), ...task })),
        )
    })
    const id = await requested(client, { resource: 'tasks' })

    const making = await growthDuring(() => make(id))
    const { body: record } = await client.get(`/exports/${id}`)
    expect(record).toMatchObject({ status: 'completed', row_count: 50_000 })
    expect(record.byte_size).toBeGreaterThan(100_000_000)
    expect(making).toBeLessThan(record.byte_size / 2)

    const download = (signal?: AbortSignal) =>
      fetch(`${idle.url}/public/v1/exports/${id}/file`, {
        headers: { Authorization: `Bearer ${account.key}` },
        signal,
      })
    const hash = createHash('sha256')
    const reading = await growthDuring(async () => {
      for await (const bytes of (await download()).body ?? []) hash.update(bytes)
    })
    expect(hash.digest('hex')).toBe(record.sha256)
    expect(reading).toBeLessThan(record.byte_size / 2)

    let chunksRead = 0
    const count = ({ sql }: { sql: string }): void => {
      if (sql.includes('export_chunks')) chunksRead++
    }
    idle.db.read.on('query', count)
    const leaving = new AbortController()
    const reader = (await download(leaving.signal)).body?.getReader()
    await reader?.read()
    leaving.abort()
    await until('the reading has stopped', async () => {
      const before = chunksRead
      await new Promise((resolve) => setTimeout(resolve, 200))
      return chunksRead === before
    })
    idle.db.read.off('query', count)
    expect(chunksRead).toBeLessThan(record.byte_size / (256 * 1024) / 2)
  })
})
