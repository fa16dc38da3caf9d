/** Imports: their files, their rows, and the work that does them. */
import { describe, expect, test } from 'vitest'
import { resources } from '../../generated/resources.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { listDueIds } from '../../records/file-jobs.ts'
import { leaseImport } from '../../records/imports.ts'
import { setQuota } from '../../records/quotas.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { runHousekeeping } from '../housekeeping.ts'
import { newBody } from '../resources.ts'
import { CSV, countsOf, doImport, importFile, NDJSON, sendFile } from './import-helpers.ts'
import { eventsAbout } from './new-records.ts'

const AFTER_LEASE_MS = 61_000
let clock = Date.now()
const now = (): Date => new Date(clock)
const app = sharedApp({ now })

const findParticipants = async (client: Client, query = '') =>
  (await client.get(`/participants?page[size]=100${query}`)).body.data

describe('createImport', () => {
  test('CSV: creates records with typed fields, and reports refused rows', async () => {
    const client = await app.newClient()
    const file =
      'full_name,email,phone,tags,external_id\r\n' +
      `Ada,ada@example.com,'+44 20,"[""vip"",""a,b""]",crm-1\r\n` +
      '\r\n' +
      '"Two\r\nlines",,"",[],crm-2\r\n' +
      ',x,,,crm-3\r\n' +
      'Alan,alan@example.com\r\n' +
      '=1+1,not an email,,vip,crm-4\r\n'
    const { record, refused } = await importFile(app, client, 'mode=create', file)
    expect(record).toMatchObject({ status: 'completed', row_count: 5, error: null, format: 'csv' })
    expect(countsOf(record)).toEqual([1, 0, 0, 4])
    expect(await findParticipants(client)).toMatchObject([
      { full_name: 'Ada', phone: '+44 20', tags: ['vip', 'a,b'], external_id: 'crm-1' },
    ])
    expect(
      refused
        .split('\r\n')
        .filter((line) => /^\d+,/.test(line))
        .map((line) => line.split(',')[0]),
    ).toEqual(['4', '6', '7', '8'])
    expect(refused).toMatch(/^line,errors,full_name,email,phone,tags,external_id\r\n/)
    expect(refused).toContain('email must be an email address.')
    expect(refused).toContain('has 2 fields, but the header line 5.')
    expect(refused).toContain("'=1+1")
    expect(await eventsAbout(client, record.id)).toEqual(['import.created', 'import.completed'])
    const { body: list } = await client.get('/events?filter[event_type]=participant.created')
    const { body: event } = await client.get(`/events/${list.data[0].id}`)
    expect(event.actor).toMatchObject({ type: 'api_key' })
  })

  test('NDJSON: upserts by external_id, and rows see those before them', async () => {
    const client = await app.newClient()
    const lines = [
      { full_name: 'Ada', external_id: '1' },
      { full_name: 'Ada L.', external_id: '1', id: 'ignored', created_at: null },
      { full_name: 'Ada L.', external_id: '1' },
      { full_name: 'No key' },
      [],
    ]
    const file = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n\n{"broken"\n"\\ud800"`
    const { record, refused } = await importFile(app, client, 'mode=upsert', file, NDJSON)
    expect(countsOf(record)).toEqual([1, 1, 1, 4])
    expect(await findParticipants(client)).toMatchObject([{ full_name: 'Ada L.' }])
    const rows = refused
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(rows).toEqual([
      { line: 4, errors: { external_id: [expect.any(String)] }, row: { full_name: 'No key' } },
      { line: 5, errors: { row: ['must be a JSON object.'] }, row: [] },
      { line: 7, errors: { row: ['is not valid JSON.'] }, row: '{"broken"' },
      { line: 8, errors: { row: ['must be a JSON object.'] }, row: '\ud800' },
    ])
  })

  test('updates by id or external_id; an export can be imported again', async () => {
    const client = await app.newClient()
    const { body: ada } = await client.post('/participants', { full_name: 'Ada', external_id: 'a' })
    const { body: bob } = await client.post('/participants', { full_name: 'Bob', tags: ['x'] })
    const columns = Object.keys(ada)
    const cell = (value: unknown): string =>
      value === null ? '' : JSON.stringify(value).replace(/^"|"$/g, '')
    const line = (record: Record<string, unknown>): string =>
      columns
        .map((name) =>
          Array.isArray(record[name])
            ? `"${JSON.stringify(record[name]).replaceAll('"', '""')}"`
            : cell(record[name]),
        )
        .join(',')
    const file = [columns.join(','), line(ada), line({ ...bob, full_name: 'Bobby' })].join('\n')
    const { record } = await importFile(app, client, 'mode=update', file)
    expect(countsOf(record)).toEqual([0, 1, 1, 0])
    expect((await client.get(`/participants/${bob.id}`)).body).toMatchObject({
      full_name: 'Bobby',
      tags: ['x'],
    })
    const missing = await importFile(
      app,
      client,
      'mode=update',
      'external_id,full_name\nnone,N\na,Ada2',
    )
    expect(countsOf(missing.record)).toEqual([0, 1, 0, 1])
    expect(missing.refused).toContain('2,There is no such participant.,none,N')
  })

  test.each(resources.filter(({ operations }) => operations.update !== null))(
    '$slug: rows are created, unchanged and updated by external_id',
    async ({ slug, type }) => {
      const client = await app.newClient()
      const query = `resource=${slug.replaceAll('-', '_')}&mode=upsert`
      const row = { ...(await newBody(client, type)), external_id: 'x' }
      const send = async (fields: object) =>
        (await importFile(app, client, query, JSON.stringify({ ...row, ...fields }), NDJSON)).record
      expect(countsOf(await send({}))).toEqual([1, 0, 0, 0])
      expect(countsOf(await send({}))).toEqual([0, 0, 1, 0])
      const status = { payment: 'paid', job_application: 'shortlisted', job: 'closed' }[type]
      const fields = status ? { status } : { status: type === 'task' ? 'completed' : 'archived' }
      expect(countsOf(await send(fields))).toEqual([0, 1, 0, 0])
    },
  )

  test('columns replace the header line; - leaves one out', async () => {
    const client = await app.newClient()
    const { record } = await importFile(
      app,
      client,
      'mode=create&columns=full_name,-,external_id',
      'Name,Age,Ref\nAda,36,7',
    )
    expect(countsOf(record)).toEqual([1, 0, 0, 0])
    expect(await findParticipants(client)).toMatchObject([{ full_name: 'Ada', external_id: '7' }])
  })

  test('a dry run counts, reports and changes nothing', async () => {
    const client = await app.newClient()
    const file = 'full_name,external_id\nAda,1\nBob,1\nEve,\n'
    const { record, refused } = await importFile(app, client, 'mode=create&dry_run=true', file)
    expect(record).toMatchObject({ status: 'completed', dry_run: true })
    expect(countsOf(record)).toEqual([2, 0, 0, 1])
    expect(refused).toContain('external_id is used by another participant.')
    expect(await findParticipants(client)).toEqual([])
    const { body: events } = await client.get('/events')
    expect(events.data.map((event: { event_type: string }) => event.event_type)).toEqual([
      'import.created',
      'import.completed',
    ])
  })

  test.each([
    ['', 'mode=create&columns=full_name', 400, 'The file is empty.'],
    ['\n', 'mode=create', undefined, 'The file has no header line.'],
    [
      'full_name\n"Ada',
      'mode=create',
      undefined,
      'The row at line 2 is not valid CSV. Check its quotation marks.',
    ],
    [
      'full_name,age\nAda,36',
      'mode=create',
      undefined,
      /^The column "age" is no field of participants/,
    ],
    ['full_name,full_name\nAda,A', 'mode=create', undefined, 'The file has two columns full_name.'],
    [
      'full_name\nAda',
      'mode=upsert',
      undefined,
      'An import with the mode upsert needs a column external_id.',
    ],
    [
      'full_name\nAda',
      'mode=update',
      undefined,
      'An import with the mode update needs a column id or external_id.',
    ],
    [
      `full_name\n${'A\n'.repeat(100_001)}`,
      'mode=create',
      undefined,
      'The file has more than 100,000 rows. Split it into several files.',
    ],
    [
      `full_name\n${'A'.repeat(1024 * 1024 + 10)}`,
      'mode=create',
      undefined,
      'The row at line 2 is larger than 1 MiB.',
    ],
  ])('a file that cannot be imported (%#) changes nothing', async (file, query, status, error) => {
    const client = await app.newClient()
    if (status !== undefined) {
      const answer = await client.post(
        `/imports?resource=participants&${query}`,
        file || ' '.slice(1),
        CSV,
      )
      expect(answer).toMatchObject({ status })
      return
    }
    const { record } = await importFile(app, client, query, file)
    expect(record).toMatchObject({
      status: 'failed',
      error: typeof error === 'string' ? error : expect.stringMatching(error),
    })
    expect(await eventsAbout(client, record.id)).toEqual(['import.created', 'import.failed'])
    expect(await findParticipants(client)).toEqual([])
  })

  test('400, 413, 415, 422 and 429 store nothing', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const status = async (query: string, file: string, headers = CSV): Promise<number> =>
      (await client.post(`/imports${query}`, file, headers)).status
    const valid = '?resource=tasks&mode=create'
    expect(await status(valid, '{}', { 'Content-Type': 'application/json' })).toBe(415)
    expect(await status('?resource=tasks', 'title')).toBe(422)
    expect(await status(`${valid}&dry_run=yes`, 'title')).toBe(422)
    expect(await status(valid, 'x'.repeat(64 * 1024 * 1024 + 1))).toBe(413)
    const broken = await fetch(`${app.url}/public/v1/imports${valid}`, {
      method: 'POST',
      headers: { ...CSV, Authorization: `Bearer ${account.key}` },
      body: Buffer.from([0x61, 0xff]),
    })
    expect(await broken.json()).toEqual({ message: 'The file is not valid UTF-8.' })
    const quota = (name: 'unfinished_imports' | 'export_mib', value: number) =>
      transaction(app.db, (trx) => setQuota(writeScope(trx, account.accountId), name, value))
    const other = await app.newAccount()
    await transaction(app.db, (trx) =>
      setQuota(writeScope(trx, other.accountId), 'unfinished_imports', 1),
    )
    const limited = app.as(other)
    expect((await sendFile(limited, 'mode=create', 'full_name')).status).toBe(201)
    expect(await sendFile(limited, 'mode=create', 'full_name')).toMatchObject({
      status: 429,
      body: { message: expect.stringContaining('1 unfinished import, which is the limit') },
    })
    await quota('export_mib', 0)
    const chunks = await app.db.read('import_chunks').where({ account_id: account.accountId })
    expect(chunks).toEqual([])
  })

  test('a repeated request with the same key creates one import and keeps one file', async () => {
    const account = await app.newAccount()
    const client = app.as(account)
    const send = (file: string) =>
      sendFile(client, 'mode=create', file, { ...CSV, 'Idempotency-Key': 'k' })
    const [first, again] = [await send('full_name\nAda'), await send('full_name\nAda')]
    expect(again.body).toEqual(first.body)
    expect((await send('full_name\nBob')).status).toBe(422)
    const chunks = await app.db.read('import_chunks').where({ account_id: account.accountId })
    expect(chunks).toHaveLength(1)
  })
})

describe('permissions', () => {
  test('payments need the Finance permission: at the request, while it runs, and for the file', async () => {
    const account = await app.newAccount()
    const owner = app.as(account)
    const { body: ada } = await owner.post('/participants', { full_name: 'Ada' })
    const { userId } = await app.newUser(account.accountId, { finance: 'read' })
    const reader = app.as({ key: await app.newKey({ accountId: account.accountId, userId }) })
    const file = `participant_id,amount_minor,currency\n${ada.id},100,EUR\n`
    const query = 'resource=payments&mode=create'
    expect((await sendFile(reader, query, file)).status).toBe(403)
    const allow = (finance: string) =>
      app.db.write('users').where({ id: userId }).update({ finance_permission: finance })
    await allow('write')
    const { body } = await sendFile(reader, query, file)
    await allow('read')
    await doImport(app, body.id)
    expect((await reader.get(`/imports/${body.id}`)).body).toMatchObject({
      status: 'failed',
      error: 'The user who requested the import may no longer change payments.',
    })
    expect((await reader.get(`/imports/${body.id}/errors`)).status).toBe(200)
    await allow('none')
    expect((await reader.get(`/imports/${body.id}/errors`)).status).toBe(403)
    expect((await reader.delete(`/imports/${body.id}`)).status).toBe(403)
    expect(countsOf((await importFile(app, owner, query, file)).record)).toEqual([1, 0, 0, 0])
  })

  test('lists imports by status, resource and time', async () => {
    const client = await app.newClient()
    const { record } = await importFile(app, client, 'mode=create', 'full_name\nAda')
    const { body: queued } = await sendFile(client, 'resource=tasks&mode=create', 'title\nCall')
    const ids = async (query: string): Promise<string[]> =>
      (await client.get(`/imports?${query}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await ids('filter[status]=queued,failed')).toEqual([queued.id])
    expect(await ids('filter[resource]=participants')).toEqual([record.id])
    expect(await ids('sort=-created_at')).toEqual([queued.id, record.id])
    expect(await ids('sort=-completed_at')).toEqual([record.id, queued.id])
  })

  test('another account sees and changes nothing', async () => {
    const [client, other] = [await app.newClient(), await app.newClient()]
    const { record } = await importFile(app, client, 'mode=create', 'full_name\nAda')
    for (const path of ['', '/errors'])
      expect((await other.get(`/imports/${record.id}${path}`)).status).toBe(404)
    expect((await other.delete(`/imports/${record.id}`)).status).toBe(404)
    expect((await other.get('/imports')).body.data).toEqual([])
  })
})

describe('the work', () => {
  const rows = (count: number): string =>
    `full_name,external_id\n${Array.from({ length: count }, (_, index) => `P${index},${index}`).join('\n')}`

  test('after a crash in the middle, another process goes on; no row is done twice', async () => {
    const client = await app.newClient()
    const { body } = await sendFile(client, 'mode=create', rows(350))
    // Stops after the first batches, as a killed process does: the lease stays.
    const stop = new AbortController()
    const work = doImport(app, body.id, { now, signal: stop.signal })
    while ((await client.get(`/imports/${body.id}`)).body.created_count === 0);
    stop.abort()
    await work
    const stopped = (await client.get(`/imports/${body.id}`)).body
    expect(stopped.status).toBe('queued')
    // A killed process has left its lease.
    await transaction(app.db, ({ sql }) => leaseImport(sql, body.id, now()))
    expect(await listDueIds(app.db, 'imports', now())).not.toContain(body.id)
    clock += AFTER_LEASE_MS
    expect(await listDueIds(app.db, 'imports', now())).toContain(body.id)
    await Promise.all([1, 2].map(() => doImport(app, body.id, { now })))
    const { body: record } = await client.get(`/imports/${body.id}`)
    expect(record).toMatchObject({ status: 'completed', row_count: 350 })
    expect(countsOf(record)).toEqual([350, 0, 0, 0])
    expect((await client.get('/participants')).body.meta.total).toBe(350)
    const { body: events } = await client.get('/events?filter[event_type]=participant.created')
    expect(events.meta.total).toBe(350)
  })

  test('three tries without progress: the import fails; a deleted import stops', async () => {
    const client = await app.newClient()
    const { body } = await sendFile(client, 'mode=create', rows(1))
    for (let tries = 1; tries <= 3; tries++) {
      await transaction(app.db, ({ sql }) => leaseImport(sql, body.id, now()))
      clock += AFTER_LEASE_MS
    }
    await doImport(app, body.id, { now })
    expect((await client.get(`/imports/${body.id}`)).body).toMatchObject({ status: 'failed' })

    const { body: other } = await sendFile(client, 'mode=create', rows(1))
    expect((await client.delete(`/imports/${other.id}`)).status).toBe(204)
    await doImport(app, other.id, { now })
    expect((await client.get('/participants')).body.meta.total).toBe(0)
  })

  test('the quota of events: the import stops and says so', async () => {
    const account = await app.newAccount()
    await transaction(app.db, (trx) =>
      setQuota(writeScope(trx, account.accountId), 'events_per_day', 150),
    )
    const client = app.as(account)
    const { record } = await importFile(app, client, 'mode=create', rows(300))
    expect(record).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('150 events a day'),
    })
    expect(countsOf(record)).toEqual([100, 0, 0, 0])
    expect((await client.get('/participants')).body.meta.total).toBe(100)
  })

  test('a revoked key stops its import', async () => {
    const account = await app.newAccount()
    const key = await app.newKey(account)
    const { body } = await sendFile(app.as({ key }), 'mode=create', rows(1))
    await app.db
      .write('api_keys')
      .where({ account_id: account.accountId })
      .whereNot({ access_level: 'x' })
      .update({ revoked_at: clock })
    await doImport(app, body.id)
    const found = await app.db.read('imports').where({ id: body.id }).first()
    expect(found).toMatchObject({ status: 'failed', created_count: 0 })
  })

  test('uploads are removed within the hour, and files of refused rows after a week', async () => {
    const client = await app.newClient()
    const { record } = await importFile(app, client, 'mode=create', 'full_name\nAda')
    const { record: tried } = await importFile(
      app,
      client,
      'mode=create&dry_run=true',
      'full_name\nA',
    )
    const { body: queued } = await sendFile(client, 'mode=create', 'full_name\nA')
    const kinds = async (id: string): Promise<string[]> =>
      (await app.db.read('import_chunks').where({ import_id: id }).pluck('kind')).toSorted()
    const removeAfter = (hours: number) =>
      runHousekeeping(app, 'hour', { now: () => new Date(Date.now() + hours * 60 * 60 * 1000) })
    await removeAfter(2)
    expect(await kinds(record.id)).toEqual(['errors'])
    expect(await kinds(tried.id)).toEqual(['errors', 'upload'])
    expect(await kinds(queued.id)).toEqual(['upload'])
    await client.delete(`/imports/${queued.id}`)
    await removeAfter(7 * 24 + 2)
    for (const { id } of [record, tried, queued]) expect(await kinds(id)).toEqual([])
    expect((await client.get(`/imports/${record.id}`)).status).toBe(200)
  })

  test('the file of refused rows: 409 before the end, 410 after a week', async () => {
    const client = await app.newClient()
    const { body } = await sendFile(client, 'mode=create', 'full_name\n')
    expect((await client.get(`/imports/${body.id}/errors`)).status).toBe(409)
    await doImport(app, body.id, { now })
    expect((await client.get(`/imports/${body.id}/errors`)).text).toBe('line,errors,full_name\r\n')
    clock += 8 * 24 * 60 * 60 * 1000
    expect((await client.get(`/imports/${body.id}/errors`)).status).toBe(410)
  })
})
