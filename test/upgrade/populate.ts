/** Fills a database through the API: records of every resource, deliveries in every state, and an
 *  export. Two databases that `populate` has filled have the same rows, except for IDs and times. */
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { expectSuccess, newApplication, newPayment } from '../handlers/new-records.ts'
import {
  type AppOptions,
  startApp,
  type TestAccount,
  type TestApp,
  type TestDatabase,
  until,
} from '../helpers.ts'
import { startReceiver } from '../receiver.ts'

/** For all apps on stored databases, and on the databases that these are compared with. */
export const ENVIRONMENT = {
  SECRET_KEY: 'a secret key that only tests would ever use',
  // A test may run years after the database was stored.
  EVENT_RETENTION_DAYS: '36500',
  ATTEMPT_RETENTION_DAYS: '36500',
}

/** Longer than it takes to populate, so that no delivery gets its second attempt. */
const RETRY_DELAYS = Array(9).fill(300).join(',')

export async function populate(database: TestDatabase): Promise<void> {
  const account = await createAttempted(database)
  await createPending(database, account)
}

/** Creates an account with records, and makes the first attempt of each delivery. The endpoint
 *  accepts only events of participants. */
async function createAttempted(database: TestDatabase): Promise<TestAccount> {
  await using receiver = await startReceiver({
    answers: ({ body }) => (body.includes('"participant.') ? 204 : 503),
  })
  await using app = await startApp({
    database,
    role: 'all',
    environment: { ...ENVIRONMENT, WEBHOOK_RETRY_DELAYS: RETRY_DELAYS },
  })
  const account = await app.newAccount()
  await subscribe(app, account, { url: receiver.url })
  await subscribe(app, account, { url: receiver.url, ordering: 'by_resource' })
  const client = app.as(account)
  const { id: adaId } = await expectSuccess(
    client.post(
      '/participants',
      { full_name: 'Ada Lovelace', email: 'Ada@example.com', tags: ['vip'], external_id: 'crm-1' },
      { 'Idempotency-Key': 'populate-1' },
    ),
  )
  const { id: jobId } = await expectSuccess(
    client.post('/jobs', {
      title: 'Interpreter',
      status: 'open',
      screening_questions: [
        { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
      ],
    }),
  )
  const answers = { french: true }
  await newApplication(client, { job_id: jobId, participant_id: adaId, answers })
  const task = await expectSuccess(
    client.post('/tasks', { title: 'Call', participant_id: adaId, due_at: '2026-12-01T09:00:00Z' }),
  )
  await expectSuccess(client.patch(`/tasks/${task.id}`, { status: 'completed' }))
  await newPayment(client, { participant_id: adaId, task_id: task.id })
  await expectSuccess(client.post('/exports', { resource: 'tasks', format: 'csv' }))
  // Asks the database: requests to the API would be in the request log, more of them in some runs.
  await until(
    'the export is completed',
    async () => (await app.db.read('exports').where({ status: 'completed' })).length === 1,
  )
  await until('each delivery that may be sent has an attempt', async () => {
    const waiting = app.db.read('deliveries').where({ attempts: 0 }).whereNotNull('next_attempt_at')
    return (await waiting).length === 0
  })
  return account
}

/** Creates deliveries that stay pending, because no worker runs. */
async function createPending(database: TestDatabase, account: TestAccount): Promise<void> {
  await using app = await startApp({ database, role: 'api', environment: ENVIRONMENT })
  const client = app.as(account)
  const { id } = await expectSuccess(client.post('/participants', { full_name: 'Zoë' }))
  await expectSuccess(client.patch(`/participants/${id}`, { status: 'inactive' }))
  await expectSuccess(client.delete(`/participants/${id}`))
}

export async function subscribe(
  app: TestApp,
  { accountId, userId }: TestAccount,
  options: { url: string; ordering?: 'by_resource' },
): Promise<void> {
  const webhook = { description: '', eventTypes: ['*'], createdBy: userId, ...options }
  const seal = (id: string): string => sealSecret(app.config.secretKeys.newest(), id, newSecret())
  await transaction(app.db, (trx) =>
    insertWebhook(writeScope(trx, accountId), webhook, seal, new Date()),
  )
}

/** Starts a node on a database that `populate` has filled. */
export function startOn(database: TestDatabase, role: AppOptions['role']): Promise<TestApp> {
  return startApp({ database, role, environment: ENVIRONMENT })
}
