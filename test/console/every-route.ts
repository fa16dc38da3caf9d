/** A request for every route of the console, and the records that their paths name. */
import { startSession } from '../../auth/session.ts'
import { accountScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { listDeliveries } from '../../records/deliveries.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { routes } from '../../web/console/routes.ts'
import { selectFailedDeliveries, startBulkJob } from '../../webhooks/bulk.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { type TestAccount, type TestApp, until } from '../helpers.ts'
import { logRequests } from './logged-requests.ts'
import { newConsoleUser } from './visitors.ts'

/** By the path segment of the resource: job applications belong to jobs, payments to Finance. */
export const MODULES = {
  participants: 'participants',
  tasks: 'tasks',
  jobs: 'jobs',
  'job-applications': 'jobs',
  exports: 'exports',
  imports: 'exports',
  payments: 'finance',
} as const

export interface ConsoleRequest {
  method: 'GET' | 'POST'
  /** The path of the route. `path` has the values of `params` in place of its parameters. */
  template: string
  path: string
  params: Record<string, string>
}

/** The contract has no operation that updates or exports an export or import, and only these have a
 *  file. The form of a new import has its own route, and its list has no filter for selected rows. */
const isPossible = ({ template, params: { resource } }: ConsoleRequest): boolean => {
  const hasFile = resource === 'exports' || resource === 'imports'
  if (resource === 'imports' && /:resource\/(new|delete)$/.test(template)) return false
  return (
    !(hasFile && /(edit|set-status|export)$/.test(template)) &&
    !(template.endsWith('/file') && !hasFile)
  )
}

/** A request for every route of signed-in users, with the IDs of existing records, which have this
 *  name. */
export async function requestsOf(
  app: TestApp,
  account: TestAccount,
  name: string,
): Promise<ConsoleRequest[]> {
  const { key, ...ids } = await createTargets(app, account, name)
  const records: Record<string, string> = ids.records
  return routes
    .filter(({ access }) => access)
    .flatMap(({ method, path: template }) => {
      const resources = template.includes(':resource') ? Object.keys(MODULES) : [undefined]
      const requests = resources.map((resource): ConsoleRequest => {
        const params: Record<string, string> = {
          ...ids.params,
          key,
          ...(resource !== undefined && { resource, record: records[resource] ?? '' }),
        }
        const path = template.replace(
          /:([a-z]+)/g,
          (_, parameter: string) => params[parameter] ?? `no-${parameter}`,
        )
        return { method, template, path, params }
      })
      return requests.filter(isPossible)
    })
}

/** Creates what the parameters of routes name. Returns the IDs: of an API key, of records by
 *  resource, and of the rest by parameter. */
async function createTargets(app: TestApp, account: TestAccount, name: string) {
  const { accountId, userId } = account
  const api = app.as(account)
  const now = new Date()
  const { db } = app
  const seal = (id: string): string => sealSecret(app.config.secretKeys.newest(), id, newSecret())
  const webhook = await transaction(db, (trx) => {
    const input = {
      url: 'http://127.0.0.1:9/',
      description: name,
      eventTypes: ['*'],
      createdBy: userId,
    }
    return insertWebhook(writeScope(trx, accountId), input, seal, now)
  })
  const create = async (path: string, body: object | string, headers = {}): Promise<string> =>
    (await api.post(path, body, headers)).body.id
  const participants = await create('/participants', {
    full_name: name,
    email: 'ada@example.com',
    tags: ['vip', 'w'.repeat(50)],
  })
  const tasks = await create('/tasks', {
    title: name,
    participant_id: participants,
    due_at: '2026-12-01T09:00:00Z',
  })
  const jobs = await create('/jobs', {
    title: name,
    status: 'open',
    description: `${name}\n${name}`,
    screening_questions: [
      { key: 'french', label: 'Do you speak French?', requirement: 'must_have', expected: true },
      {
        key: 'city',
        label: 'Where?',
        requirement: 'nice_to_have',
        operator: 'one_of',
        expected: [name, 'Lyon'],
      },
    ],
  })
  const applications = await create('/job-applications', {
    job_id: jobs,
    participant_id: participants,
    answers: { french: false, other: name },
  })
  const payments = await create('/payments', {
    participant_id: participants,
    task_id: tasks,
    amount_minor: 1,
    currency: 'EUR',
    note: name,
  })
  const exports = await create('/exports', { resource: 'participants', format: 'csv' })
  const query = 'resource=participants&mode=create'
  const imports = await create(`/imports?${query}`, `full_name\n${name}`, {
    'Content-Type': 'text/csv',
  })
  const scope = accountScope({ dialect: db.dialect, sql: db.write }, accountId)
  const [delivery] = await listDeliveries(scope, { webhookId: webhook.id, limit: 1 })
  // Requests that are logged later would make two readings of the tables differ.
  await until('the seven API requests are in the log', async () => {
    const logged = await scope.rows('request_log').pluck('id')
    return logged.length === 7
  })
  const [request = ''] = await logRequests(app, account, [
    {
      operationId: 'listParticipants',
      path: `/public/v1/participants?filter[search]=${name}`,
      at: now.getTime(),
    },
  ])
  const selection = selectFailedDeliveries(
    webhook.id,
    null,
    { since: new Date(now.getTime() - 1_000) },
    now,
  )
  const job = await startBulkJob(db, accountId, { selection, rate: 1, createdBy: userId }, now)
  const device = { userId, ip: '127.0.0.1', userAgent: name }
  const { id: session } = await transaction(db, (trx) =>
    startSession(writeScope(trx, accountId), device, now),
  )
  return {
    key: (await scope.rows('api_keys').first('id')).id as string,
    params: {
      webhook: webhook.id,
      delivery: delivery?.id ?? '',
      event: delivery?.eventId ?? '',
      job: job.id,
      request,
      user: (await newConsoleUser(app, accountId, { fullName: name })).userId,
      session,
      upload: imports,
    },
    records: {
      participants,
      tasks,
      jobs,
      'job-applications': applications,
      payments,
      exports,
      imports,
    },
  }
}
