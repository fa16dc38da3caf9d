/** Responses that break the contract are counted and listed, without their values. */
import Koa from 'koa'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { newResponseChecker } from '../../operations/response-check.ts'
import { newViolations, type Violation } from '../../operations/violations.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { respondToErrors } from '../../server/errors.ts'
import { listen } from '../../server/http.ts'
import { checkErrorResponses } from '../../server/respond.ts'
import { emit, InvalidEvent } from '../../webhooks/emit.ts'
import { startApp, type TestAccount, type TestApp } from '../helpers.ts'

const SECRET = 'whispered'

/** Creates a task with an invalid status, as after an incomplete migration. */
async function newInvalidTask(app: TestApp): Promise<TestAccount & { path: string }> {
  const account = await app.newAccount()
  const { id } = (await app.as(account).post('/tasks', { title: 'A task' })).body
  await app.db.write('tasks').where({ id }).update({ status: SECRET })
  return { ...account, path: `/tasks/${id}` }
}

async function listViolations(app: TestApp): Promise<unknown[]> {
  return JSON.parse((await app.call('GET', '/violations')).text).violations
}

const metric = (text: string, name: string): string | undefined =>
  new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]

test('log: the response is sent; its violation is counted, and listed once without its value', async () => {
  await using app = await startApp({ environment: { VALIDATE_RESPONSES: 'log' } })
  const account = await newInvalidTask(app)
  expect(await listViolations(app)).toEqual([])
  for (let round = 0; round < 2; round++)
    expect(await app.as(account).get(account.path)).toMatchObject({
      status: 200,
      body: { status: SECRET },
    })
  expect((await app.as(account).get('/tasks')).status).toBe(200)

  const metrics = (await app.call('GET', '/metrics')).text
  expect(metric(metrics, 'muster_contract_violations_total{operation="getTask"}')).toBe('2')
  expect(metric(metrics, 'muster_contract_violations_total{operation="listTasks"}')).toBe('1')
  const { headers, text } = await app.call('GET', '/violations')
  expect(headers.get('cache-control')).toBe('no-store')
  const problem =
    'must be equal to one of the allowed values ["open","in_progress","completed","cancelled"]'
  const times = { first_seen_at: expect.any(String), last_seen_at: expect.any(String) }
  expect(JSON.parse(text)).toEqual({
    validate_responses: 'log',
    violations: [
      {
        operation: 'listTasks',
        event: null,
        status: 200,
        pointer: '/data/*/status',
        problem,
        count: 1,
        ...times,
      },
      {
        operation: 'getTask',
        event: null,
        status: 200,
        pointer: '/status',
        problem,
        count: 2,
        ...times,
      },
    ],
  })
  expect(text).not.toContain(SECRET)
})

test('enforce: 500, and the violation is listed', async () => {
  await using app = await startApp({ environment: { VALIDATE_RESPONSES: 'enforce' } })
  const account = await newInvalidTask(app)
  expect((await app.as(account).get(account.path)).status).toBe(500)
  expect(await listViolations(app)).toMatchObject([{ operation: 'getTask', count: 1 }])
})

test('off: responses are not checked', async () => {
  await using app = await startApp({ environment: { VALIDATE_RESPONSES: 'off' } })
  const account = await newInvalidTask(app)
  expect((await app.as(account).get(account.path)).status).toBe(200)
  expect(await listViolations(app)).toEqual([])
})

test('keys of a map, which users choose, are not listed', async () => {
  await using app = await startApp({ environment: { VALIDATE_RESPONSES: 'log' } })
  const account = await app.newAccount()
  const job = (await app.as(account).post('/jobs', { title: 'A job', status: 'open' })).body
  const participant = (await app.as(account).post('/participants', { full_name: 'A' })).body
  const created = await app.as(account).post('/job-applications', {
    job_id: job.id,
    participant_id: participant.id,
    answers: { years: 5 },
  })
  await app.db
    .write('job_applications')
    .where({ id: created.body.id })
    .update({ answers: JSON.stringify({ [SECRET]: [] }) })
  expect((await app.as(account).get(`/job-applications/${created.body.id}`)).status).toBe(200)
  const { text } = await app.call('GET', '/violations')
  expect(JSON.parse(text).violations).toMatchObject([
    { operation: 'getJobApplication', pointer: '/answers/*' },
  ])
  expect(text).not.toContain(SECRET)
})

test('an event that breaks asyncapi.yaml is not emitted; the violation is counted and listed', async () => {
  await using app = await startApp()
  const { accountId } = await app.newAccount()
  const invalidData = { screening_outcome: SECRET } as never
  const emitted = transaction(app.db, (trx) =>
    emit(
      writeScope(trx, accountId),
      { eventType: 'job_application.created', resourceId: accountId, data: invalidData },
      new Date(),
    ),
  )
  await expect(emitted).rejects.toThrow(InvalidEvent)
  expect(await app.db.read('events')).toEqual([])
  expect(
    metric(
      (await app.call('GET', '/metrics')).text,
      'muster_event_violations_total{event="job_application.created"}',
    ),
  ).toBe('1')
  const { text } = await app.call('GET', '/violations')
  expect(JSON.parse(text).violations).toMatchObject([
    {
      operation: null,
      event: 'job_application.created',
      status: null,
      pointer: '/data/screening_outcome',
      count: 1,
    },
  ])
  expect(text).not.toContain(SECRET)
})

test('documented error responses are no violations', async () => {
  await using app = await startApp({ environment: { VALIDATE_RESPONSES: 'log' } })
  const account = await app.newAccount()
  expect((await app.as(account).get('/tasks?bogus=1')).status).toBe(422)
  expect((await app.as({ key: 'nobody' }).get('/tasks')).status).toBe(401)
  expect((await app.as(account).get('/tasks/none')).status).toBe(404)
  expect(await listViolations(app)).toEqual([])
})

test.each([
  ['log', 418],
  ['enforce', 500],
] as const)(
  'an undocumented error with VALIDATE_RESPONSES=%s: %i, and a violation',
  async (mode, status) => {
    const log = pino({ level: 'silent' })
    const seen: Violation[] = []
    const app = new Koa()
    // The order of server/app.ts.
    app.use(respondToErrors(log))
    app.use(
      checkErrorResponses(
        newResponseChecker({
          mode,
          log,
          onViolation: (violation) => seen.push(violation),
        }),
      ),
    )
    app.use(respondToErrors(log))
    app.use((ctx) => {
      ctx.state.operationId = 'getTask'
      ctx.throw(418, 'I am a teapot.')
    })
    const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 })
    try {
      const response = await fetch(`http://127.0.0.1:${server.port}/`)
      expect(response.status).toBe(status)
      expect(seen).toEqual([
        {
          operation: 'getTask',
          status: 418,
          pointer: '',
          problem: 'status 418 is not in the contract',
        },
      ])
    } finally {
      await server.stop(0)
    }
  },
)

test('more than 100 violations: the least recent ones are removed', () => {
  const violations = newViolations()
  const see = (number: number) =>
    violations.record(
      { operation: 'getTask', status: 200, pointer: `/${number}`, problem: '' },
      new Date(number),
    )
  for (let number = 0; number < 100; number++) see(number)
  see(0)
  see(100)
  const pointers = violations.list().map(({ pointer }) => pointer)
  expect(pointers).toHaveLength(100)
  expect(pointers.slice(0, 2)).toEqual(['/100', '/0'])
  expect(pointers).not.toContain('/1')
  expect(violations.list()[1]).toMatchObject({ count: 2, first_seen_at: new Date(0).toISOString() })
})

test('If-None-Match for a response without a version: the whole response', async () => {
  await using app = await startApp()
  const account = await app.newAccount()
  expect((await app.as(account).get('/tasks', { 'If-None-Match': '*' })).status).toBe(200)
})
