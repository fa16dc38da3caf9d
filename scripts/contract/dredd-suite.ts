/** Dredd, with records for each transaction and a way to bring about every status that the contract documents. */
import { randomUUID } from 'node:crypto'
import type { OperationId } from '../../generated/operations.ts'
import { makeExport } from '../../operations/export-job.ts'
import { idempotencyFingerprint } from '../../operations/idempotency.ts'
import type { AccessLevel } from '../../records/api-keys.ts'
import type { Db } from '../../records/database/open.ts'
import { accountScope } from '../../records/database/scope.ts'
import { claimIdempotencyKey } from '../../records/idempotency-keys.ts'
import type { Contract } from '../model/contract.ts'
import {
  type Declared,
  declaredFor,
  expectSchema,
  runDredd,
  type Transaction,
  transactionCount,
} from './dredd.ts'

interface Account {
  accountId: string
  userId: string
  /** Full Access, of the Owner. */
  key: string
}

interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: its schema is Dredd's to check.
  body: any
  text: string
}

/** A running service, and what it takes to prepare its records. */
export interface Server {
  url: string
  db: Db
  newAccount(): Promise<Account>
  newUser(accountId: string): Promise<{ userId: string }>
  newKey(account: { accountId: string; userId: string }, accessLevel?: AccessLevel): Promise<string>
  call(
    method: string,
    path: string,
    options?: { key?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answer>
}

export interface Servers {
  /** The service as it is. */
  app: Server
  /** The same with one request a minute, on the same database. */
  limited: Server
  /** One whose keys cannot be read, and one of the keys. */
  broken: Server
  brokenKey: string
  /** One whose database is gone. */
  down: Server
}

export interface DreddResult {
  failures: string[]
  /** What was declared and came out so. */
  passed: { operation: OperationId; status: number }[]
}

/** Sends every transaction that the contract declares for these operations and holds the whole answer to it. */
export async function runDreddSuite(
  contract: Contract,
  servers: Servers,
  ids: readonly string[],
): Promise<DreddResult> {
  const declared = new Map<string, Declared>()
  const { statistics, passed, failures } = await runDredd(servers.app.url, async (transaction) => {
    const one = declaredFor(contract, transaction)
    transaction.skip = !ids.includes(one.operation.id)
    if (transaction.skip) return
    declared.set(transaction.id, one)
    await prepare(contract, servers, transaction)
  })
  // Dredd drops what it does not understand, and says nothing.
  const expected = transactionCount({
    ...contract,
    operations: contract.operations.filter(({ id }) => ids.includes(id)),
  })
  if (statistics.passes + failures.length !== expected)
    failures.push(
      `Dredd: ${statistics.passes} transactions passed, and the contract declares ${expected}`,
    )
  return {
    failures,
    passed: passed.flatMap((id) => {
      const one = declared.get(id)
      return one === undefined
        ? []
        : [{ operation: one.operation.id as OperationId, status: one.response.status }]
    }),
  }
}

/** Records for one transaction, each by the name of its path parameter. */
interface Fixtures {
  account: Account
  ids: Record<string, string>
}

async function newFixtures(app: Server): Promise<Fixtures> {
  const account = await app.newAccount()
  const create = async (path: string, body: object): Promise<string> => {
    const {
      status,
      body: record,
      text,
    } = await app.call('POST', `/public/v1${path}`, { key: account.key, body })
    if (status !== 201) throw new Error(`${path} answered ${status}: ${text}`)
    return record.id
  }
  const participant = await create('/participants', { full_name: 'Grace Hopper' })
  const task = await create('/tasks', { title: 'Find the moth' })
  const job = await create('/jobs', { title: 'Navigator', status: 'open' })
  const applicant = await create('/participants', { full_name: 'Katherine Johnson' })
  const job_application = await create('/job-applications', {
    job_id: job,
    participant_id: applicant,
  })
  const payment = await create('/payments', {
    participant_id: applicant,
    amount_minor: 100,
    currency: 'EUR',
  })
  const exported = await create('/exports', { resource: 'participants', format: 'csv' })
  const event = (await app.call('GET', '/public/v1/events', { key: account.key })).body.data[0].id
  return {
    account,
    ids: { participant, task, job, job_application, payment, export: exported, event },
  }
}

async function prepare(
  contract: Contract,
  servers: Servers,
  transaction: Transaction,
): Promise<void> {
  const declared = declaredFor(contract, transaction)
  expectSchema(contract, transaction, declared)
  const { account, ids } = await newFixtures(servers.app)
  // Dredd sends header parameters empty.
  for (const parameter of declared.operation.parameters)
    if (parameter.in === 'header') delete transaction.request.headers[parameter.name]
  transaction.request.headers.Authorization = `Bearer ${account.key}`
  for (const [name, id] of Object.entries(ids)) {
    const example = exampleOf(declared, name)
    if (example) transaction.fullPath = transaction.fullPath.replace(example, id)
  }
  if (declared.operation.body) {
    transaction.request.headers['Content-Type'] = 'application/json'
    transaction.request.body = JSON.stringify({
      ...JSON.parse(transaction.request.body),
      ...references(declared.operation.id, ids),
    })
  }
  await provoke(servers, transaction, declared, { account, ids })
}

function exampleOf({ operation }: Declared, name: string): string | undefined {
  if (!operation.path.includes(`{${name}}`)) return undefined
  return transactionExamples[name]
}

/** The ids that the contract's examples name. */
const transactionExamples: Record<string, string> = {
  participant: '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81',
  task: '0193d7a1-1b6d-7e52-9c30-4f8a2e7d5b19',
  job: '0193d7a2-38c4-7a16-b7d9-6e1f5c3a9d02',
  job_application: '0193d7a3-90ee-7d28-8b41-7c2e6f4d1a53',
  export: '0193d7a4-c2f7-7f63-a905-1d3b8e6c4f70',
  payment: '0193d7a5-47ab-7c95-9e12-3a5d7f8b2c64',
  event: '0193d7a6-6d10-7b87-8f3c-5b9e1d4a7c28',
}

function references(operationId: string, ids: Record<string, string>): object {
  if (operationId === 'createTask' || operationId === 'createPayment')
    return { participant_id: ids.participant }
  if (operationId === 'createJobApplication')
    return { participant_id: ids.participant, job_id: ids.job }
  return {}
}

const to = (transaction: Transaction, { url }: Server): void => {
  const { hostname, port } = new URL(url)
  Object.assign(transaction, { host: hostname, port })
}

/** Makes the request get the status that the transaction is about. */
async function provoke(
  { app, limited, broken, brokenKey, down }: Servers,
  transaction: Transaction,
  { operation, response, mediaType }: Declared,
  { account, ids }: Fixtures,
): Promise<void> {
  const { request } = transaction
  const isFile = operation.id === 'getExportFile'
  const url = (): string => transaction.fullPath
  switch (response.status) {
    case 200:
      if (isFile && ids.export) {
        const format = mediaType === 'text/csv' ? 'csv' : 'json'
        await app.db.write('exports').where({ id: ids.export }).update({ format })
        await makeExport(app.db, ids.export, () => new Date(), new AbortController().signal)
        transaction.expected.headers['Content-Type'] = mediaType ?? ''
      }
      return
    case 204:
      if (operation.id === 'deleteJob' && ids.job_application)
        await app.call('DELETE', `/public/v1/job-applications/${ids.job_application}`, {
          key: account.key,
        })
      return
    case 304:
      request.headers['If-None-Match'] =
        (await app.call('GET', url(), { key: account.key })).headers.get('etag') ?? ''
      return
    case 400:
      if (operation.body) request.body = '{"broken"'
      else transaction.fullPath += `${url().includes('?') ? '&' : '?'}x=%E0%A4%A`
      return
    case 401:
      delete request.headers.Authorization
      return
    case 403: {
      const reader = await app.newUser(account.accountId)
      const userId = operation.permission || isFile ? reader.userId : account.userId
      if (isFile && ids.export)
        await accountScope({ dialect: app.db.dialect, sql: app.db.write }, account.accountId)
          .rows('exports')
          .update({ resource: 'payments' })
      request.headers.Authorization = `Bearer ${await app.newKey({ ...account, userId }, operation.permission ? 'full_access' : 'read_only')}`
      return
    }
    case 404:
      for (const id of Object.values(ids)) transaction.fullPath = url().replace(id, randomUUID())
      return
    case 409: {
      if (isFile) return
      const key = randomUUID()
      request.headers['Idempotency-Key'] = key
      await claimIdempotencyKey(
        app.db,
        account.userId,
        key,
        idempotencyFingerprint(request.method, url(), request.body),
        Date.now(),
      )
      return
    }
    case 410:
      await makeExport(
        app.db,
        ids.export ?? '',
        () => new Date(Date.now() - 8 * 86_400_000),
        new AbortController().signal,
      )
      return
    case 412:
      request.headers['If-Match'] = '"another-version"'
      return
    case 413:
      request.body = JSON.stringify({ full_name: 'x'.repeat(1024 * 1024) })
      return
    case 415:
      request.headers['Content-Type'] = 'text/plain'
      return
    case 422:
      if (operation.body) request.body = '{"unknown": true}'
      else transaction.fullPath += `${url().includes('?') ? '&' : '?'}unknown=1`
      return
    case 429:
      await limited.call('GET', '/public/v1/event-types', { key: account.key })
      return to(transaction, limited)
    case 500:
      request.headers.Authorization = `Bearer ${brokenKey}`
      return to(transaction, broken)
    case 503:
      return to(transaction, down)
    case 201:
      return
    default:
      throw new Error(`There is no way yet to provoke ${response.status} of ${operation.id}`)
  }
}
