/** The examples of openapi.yaml are what the service responds with. */
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { statesOf } from '../../cli/contract-service.ts'
import contract from '../../generated/openapi.json' with { type: 'json' }
import { operations } from '../../generated/operations.ts'
import { expectSuccess, requestExample } from '../handlers/new-records.ts'
import { type Answer, type Client, sharedApp, startApp, type TestAccount } from '../helpers.ts'
import { subscribe } from './subscribe.ts'

const { responses, headers } = contract.components
type ResponseName = keyof typeof responses

const UNMATCHED = {
  UnknownPath: contract['x-unmatched-requests']['404'],
  MethodNotAllowed: contract['x-unmatched-requests']['405'],
}

interface ResponseObject {
  content?: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }>
}

let account: TestAccount
let client: Client

const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
  client = app.as(account)
})

// biome-ignore lint/suspicious/noExplicitAny: an example may be any JSON.
function exampleOf(name: string): any {
  const response = { ...responses, ...UNMATCHED }[name as ResponseName] as ResponseObject
  return response.content?.['application/json']?.example
}

/** The body with each ID, time and hash replaced by its kind. */
function shapeOf(body: unknown): unknown {
  const text = JSON.stringify(body)
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, '<time>')
    .replace(/[0-9a-f]{64}/g, '<sha256>')
  return JSON.parse(text)
}

function expectExample(answer: Answer, name: string): void {
  expect({ name, body: shapeOf(answer.body) }).toEqual({ name, body: shapeOf(exampleOf(name)) })
}

describe('records: the examples of the requests lead to the examples of the responses', () => {
  /** A client of a new account with a webhook, because the event of the example has a delivery. */
  async function newClient(): Promise<Client> {
    const freshAccount = await app.newAccount()
    await subscribe(app, freshAccount, 'https://hooks.example.com/')
    return app.as(freshAccount)
  }

  async function createParticipant(freshClient: Client): Promise<string> {
    const body = requestExample('ParticipantCreateBody')
    return (await expectSuccess(freshClient.post('/participants', body))).id
  }

  async function createJob(freshClient: Client): Promise<string> {
    return (await expectSuccess(freshClient.post('/jobs', requestExample('JobCreateBody')))).id
  }

  type RecordName = 'Participant' | 'Job' | 'Task' | 'Payment' | 'JobApplication'

  /** Creates the record and expects the examples `NameCreated`, `Name` and `NameList`. Returns its
   *  ID. */
  async function expectRecord(
    freshClient: Client,
    path: string,
    name: RecordName,
    references: object = {},
  ): Promise<string> {
    const body = { ...requestExample(`${name}CreateBody`), ...references }
    const created = await freshClient.post(path, body)
    expectExample(created, `${name}Created`)
    expectExample(await freshClient.get(`${path}/${created.body.id}`), name)
    expectExample(await freshClient.get(path), `${name}List`)
    return created.body.id
  }

  test('participants', async () => {
    await expectRecord(await newClient(), '/participants', 'Participant')
  })

  test('jobs', async () => {
    await expectRecord(await newClient(), '/jobs', 'Job')
  })

  test('tasks', async () => {
    const freshClient = await newClient()
    await expectRecord(freshClient, '/tasks', 'Task', {
      participant_id: await createParticipant(freshClient),
    })
  })

  test('payments', async () => {
    const freshClient = await newClient()
    const participant_id = await createParticipant(freshClient)
    await expectRecord(freshClient, '/payments', 'Payment', { participant_id })
  })

  test('job applications and their event', async () => {
    const freshClient = await newClient()
    const participant_id = await createParticipant(freshClient)
    const job_id = await createJob(freshClient)
    const references = { participant_id, job_id }
    const id = await expectRecord(freshClient, '/job-applications', 'JobApplication', references)
    const events = await freshClient.get(`/events?filter[resource_id]=${id}`)
    expectExample(events, 'EventList')
    expectExample(await freshClient.get(`/events/${events.body.data[0].id}`), 'Event')
  })

  test('exports: queued at first, then complete with the file of the example', async () => {
    const freshClient = await newClient()
    await createParticipant(freshClient)
    const created = await freshClient.post('/exports', requestExample('ExportCreateBody'))
    expectExample(created, 'ExportCreated')
    const { id } = created.body
    expectExample(await freshClient.get(`/exports/${id}/file`), 'ExportNotReady')
    const states = statesOf(app)
    await states.finishFile('exports', id, new Date())
    expectExample(await freshClient.get(`/exports/${id}`), 'Export')
    expectExample(await freshClient.get('/exports'), 'ExportList')
    const { content } = contract.paths['/public/v1/exports/{export_id}/file'].get.responses['200']
    const csv = await freshClient.get(`/exports/${id}/file`)
    expect(shapeOf(csv.text)).toBe(shapeOf(content['text/csv'].example))
    const json = await freshClient.post('/exports', {
      ...requestExample('ExportCreateBody'),
      format: 'json',
    })
    await states.finishFile('exports', json.body.id, new Date())
    const { body } = await freshClient.get(`/exports/${json.body.id}/file`)
    expect(shapeOf(body)).toEqual(shapeOf(content['application/json'].example))
  })

  test('event types: the list has the type of the example', async () => {
    const { body } = await client.get('/event-types')
    const [first] = exampleOf('EventTypeList').data
    expect(body.data).toContainEqual(first)
  })

  test('the key: the same fields, also of its owner and account', async () => {
    const fieldsOf = (me: object) =>
      Object.entries(me).map(([name, part]) => [name, Object.keys(part)])
    expect(fieldsOf((await client.get('/me')).body)).toEqual(fieldsOf(exampleOf('Me')))
  })
})

describe('the examples agree with each other', () => {
  test('updated_at equals created_at, or completed_at of an export', () => {
    for (const name of Object.keys(responses)) {
      const { created_at, updated_at, completed_at } = exampleOf(name) ?? {}
      if (updated_at === undefined) continue
      expect(updated_at, name).toBe(completed_at ?? created_at)
    }
  })

  test('the size and hash of an export are those of the example of its file', () => {
    const { content } = contract.paths['/public/v1/exports/{export_id}/file'].get.responses['200']
    const file = Buffer.from(content['text/csv'].example)
    const hash = createHash('sha256').update(file)
    const { byte_size, sha256, completed_at, expires_at } = exampleOf('Export')
    expect([byte_size, sha256]).toEqual([file.length, hash.copy().digest('hex')])
    expect(headers['Repr-Digest'].example).toBe(`sha-256=:${hash.digest('base64')}:`)
    expect(Date.parse(expires_at) - Date.parse(completed_at)).toBe(7 * 24 * 60 * 60 * 1000)
  })
})

describe('errors: the messages of the examples', () => {
  const expectError = (answer: Answer, status: number, name: string) =>
    expect({ ...answer.body, status: answer.status }).toEqual({ ...exampleOf(name), status })
  const path = '/public/v1/participants'
  const unknown = '/participants/019cade2-11c0-7c41-8a15-2b6f9d3e4c81'

  test('400', async () => expectError(await client.post('/participants', '{'), 400, 'BadRequest'))

  test('401', async () => expectError(await app.call('GET', path), 401, 'Unauthorized'))

  test('403', async () => {
    const reader = app.as({ ...account, key: await app.newKey(account, 'read_only') })
    expectError(await reader.post('/participants', {}), 403, 'Forbidden')
  })

  test('404', async () => expectError(await client.get(unknown), 404, 'NotFound'))

  test('404 of an unknown path', async () =>
    expectError(await client.get('/nothing'), 404, 'UnknownPath'))

  test('405', async () =>
    expectError(await app.call('PUT', path, { key: account.key }), 405, 'MethodNotAllowed'))

  test('409 of an idempotency key', async () => {
    const body = requestExample('ParticipantCreateBody')
    statesOf(app).useIdempotencyKey(account.userId, 'in-progress')
    const answer = await client.post('/participants', body, { 'Idempotency-Key': 'in-progress' })
    expectError(answer, 409, 'IdempotencyConflict')
  })

  test('410', async () => {
    const { body } = await client.post('/exports', { resource: 'tasks', format: 'csv' })
    const longAgo = new Date(Date.now() - 8 * 24 * 60 * 60 * 1000)
    await statesOf(app).finishFile('exports', body.id, longAgo)
    expectError(await client.get(`/exports/${body.id}/file`), 410, 'ExportExpired')
  })

  test('412', async () => {
    const { body } = await client.post('/participants', { full_name: 'Grace Hopper' })
    const stale = { 'If-Match': '"stale"' }
    const answer = await client.patch(`/participants/${body.id}`, { full_name: 'Grace' }, stale)
    expectError(answer, 412, 'PreconditionFailed')
  })

  test('413', async () =>
    expectError(
      await client.post('/participants', { full_name: 'x'.repeat(1024 * 1024) }),
      413,
      'PayloadTooLarge',
    ))

  test('414', async () =>
    expectError(await client.get(`/participants?${'x'.repeat(9000)}`), 414, 'UriTooLong'))

  test('415', async () =>
    expectError(
      await client.post('/participants', 'text', { 'Content-Type': 'text/plain' }),
      415,
      'UnsupportedMediaType',
    ))

  test('422', async () =>
    expectError(await client.post('/participants', {}), 422, 'ValidationFailed'))

  test('422 of each create: every named example', async () => {
    const known = { full_name: 'Ada Lovelace', external_id: 'crm-1815' }
    const participant_id = (await client.post('/participants', known)).body.id
    const newJob = async (status: string) =>
      (await client.post('/jobs', { title: 'Tester', status })).body.id
    const [open, draft] = [await newJob('open'), await newJob('draft')]
    await client.post('/job-applications', { job_id: open, participant_id })
    const key = { key: 'speaks_german', label: 'German?', requirement: 'must_have', expected: true }
    const bodies: Partial<Record<ResponseName, [path: string, Record<string, object>]>> = {
      ParticipantInvalid: [
        '/participants',
        { missing: {}, taken: known, unknownField: { ...known, nickname: 'x', email: 'ada' } },
      ],
      TaskInvalid: [
        '/tasks',
        {
          missing: {},
          unknownParticipant: { title: 'Call', participant_id: draft },
          invalidTime: { title: 'Call', due_at: 'tomorrow' },
        },
      ],
      JobInvalid: [
        '/jobs',
        { missing: {}, repeatedKey: { title: 'Tester', screening_questions: [key, key] } },
      ],
      JobApplicationInvalid: [
        '/job-applications',
        {
          jobNotOpen: { job_id: draft, participant_id },
          applied: { job_id: open, participant_id },
        },
      ],
      PaymentInvalid: [
        '/payments',
        {
          unknownParticipant: { participant_id: draft, amount_minor: 100, currency: 'EUR' },
          missing: { participant_id, amount_minor: 100 },
        },
      ],
      ExportInvalid: [
        '/exports',
        { missing: { resource: 'tasks' }, unknownResource: { resource: 'people', format: 'csv' } },
      ],
    }
    for (const [name, [path, inputs]] of Object.entries(bodies)) {
      const { content } = responses[name as ResponseName] as ResponseObject
      const examples = content?.['application/json']?.examples ?? {}
      expect(Object.keys(inputs), name).toEqual(Object.keys(examples))
      for (const [example, input] of Object.entries(inputs)) {
        const { status, body } = await client.post(path, input)
        expect({ name, example, status, body }).toEqual({
          ...{ name, example, status: 422 },
          body: examples[example]?.value,
        })
      }
    }
  })

  test('429, except for the number of seconds', async () => {
    await using limited = await startApp({
      database: app.database,
      environment: { RATE_LIMIT_PER_MINUTE: '1' },
    })
    await limited.as(account).get('/me')
    const { status, body } = await limited.as(account).get('/me')
    const withoutNumber = (message: string) => message.replace(/\d+ seconds?/, 'seconds')
    expect([status, withoutNumber(body.message)]).toEqual([
      429,
      withoutNumber(exampleOf('TooManyRequests').message),
    ])
  })

  test('500, except for the request ID, and 503', async () => {
    await using broken = await startApp()
    const { key } = await broken.newAccount()
    await broken.db.write.raw('alter table participants rename to lost_participants')
    const { status, body } = await broken.as({ key }).get('/participants')
    expect([status, shapeOf(body)]).toEqual([500, shapeOf(exampleOf('InternalError'))])
    await broken.db.close()
    expectError(await broken.as({ key }).get('/participants'), 503, 'Unavailable')
    expectError(await broken.as({ key }).post('/participants', {}), 503, 'ChangeUnavailable')
  })

  test('503: each operation that changes records says that the change was not made', async () => {
    await using down = await startApp()
    const { key } = await down.newAccount()
    await down.db.close()
    for (const [id, { method, path, access }] of Object.entries(operations)) {
      const answer = await down.call(method.toUpperCase(), path, { key })
      const outcome = answer.headers.get('x-change-outcome')
      const expected = access === 'write' ? 'none' : null
      expect({ id, status: answer.status, outcome }).toEqual({ id, status: 503, outcome: expected })
    }
  })
})
