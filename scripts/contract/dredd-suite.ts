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
import type { Request } from './request.ts'
import { prepareRecords } from './test-records.ts'

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

async function prepare(
  contract: Contract,
  servers: Servers,
  transaction: Transaction,
): Promise<void> {
  const declared = declaredFor(contract, transaction)
  expectSchema(contract, transaction, declared)
  const { operation } = declared
  const account = await servers.app.newAccount()
  const records = await prepareRecords(
    contract,
    (request) => send(servers.app, request),
    account.key,
  )
  // Dredd sends header parameters empty.
  for (const parameter of operation.parameters)
    if (parameter.in === 'header') delete transaction.request.headers[parameter.name]
  transaction.request.headers.Authorization = `Bearer ${account.key}`
  const [, query = ''] = /(\?.*)?$/.exec(transaction.fullPath) ?? []
  transaction.fullPath = (await records.newPath(operation)) + query
  if (operation.body) {
    const example = JSON.parse(transaction.request.body)
    transaction.request.headers['Content-Type'] = 'application/json'
    transaction.request.body = JSON.stringify(await records.withReferences(operation, example))
  }
  await provoke(servers, transaction, declared, account)
}

async function send(app: Server, { method, path, headers, body, key }: Request) {
  const { body: json, ...response } = await app.call(method, path, {
    headers,
    body,
    key: key ?? undefined,
  })
  return { ...response, json }
}

/** The ID of the record in a path. */
const ID = /[0-9a-f-]{36}/

const to = (transaction: Transaction, { url }: Server): void => {
  const { hostname, port } = new URL(url)
  Object.assign(transaction, { host: hostname, port })
}

/** Makes the request get the status that the transaction is about. */
async function provoke(
  { app, limited, broken, brokenKey, down }: Servers,
  transaction: Transaction,
  { operation, response, mediaType }: Declared,
  account: Account,
): Promise<void> {
  const { request } = transaction
  const isFile = operation.id === 'getExportFile'
  const url = (): string => transaction.fullPath
  const [recordId = ''] = ID.exec(url()) ?? []
  switch (response.status) {
    case 200:
      if (isFile) {
        const format = mediaType === 'text/csv' ? 'csv' : 'json'
        await app.db.write('exports').where({ id: recordId }).update({ format })
        await makeExport(app.db, recordId, () => new Date(), new AbortController().signal)
        transaction.expected.headers['Content-Type'] = mediaType ?? ''
      }
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
      if (isFile)
        await accountScope({ dialect: app.db.dialect, sql: app.db.write }, account.accountId)
          .rows('exports')
          .update({ resource: 'payments' })
      request.headers.Authorization = `Bearer ${await app.newKey({ ...account, userId }, operation.permission ? 'full_access' : 'read_only')}`
      return
    }
    case 404:
      transaction.fullPath = url().replace(ID, randomUUID())
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
        recordId,
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
    case 204:
      return
    default:
      throw new Error(`There is no way yet to provoke ${response.status} of ${operation.id}`)
  }
}
