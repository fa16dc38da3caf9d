/** Stores requests as the API logs them. */
import { randomUUID } from 'node:crypto'
import { transaction } from '../../records/database/transaction.ts'
import { newId } from '../../records/ids.ts'
import { insertRequests, type LoggedRequest } from '../../records/request-log.ts'
import type { TestAccount, TestApp } from '../helpers.ts'

/** In milliseconds, as are `HOUR` and `DAY`. */
export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** A time today, in epoch milliseconds, at which no bucket of a chart starts. */
export const NOW = Math.floor(Date.now() / DAY) * DAY + 17 * HOUR + 12 * MINUTE + 34_567

/** What differs from a successful `listTasks` a minute before `NOW`. */
export type RequestInput = Partial<LoggedRequest>

/** Logs requests of an account. Returns their IDs in the same order. */
export async function logRequests(
  app: TestApp,
  account: TestAccount,
  inputs: RequestInput[],
): Promise<string[]> {
  const apiKeyId = await findKeyId(app, account)
  const requests = inputs.map((input): LoggedRequest => {
    return {
      id: newId(),
      accountId: account.accountId,
      userId: account.userId,
      apiKeyId,
      requestId: randomUUID(),
      operationId: 'listTasks',
      method: 'GET',
      path: '/public/v1/tasks',
      status: 200,
      durationMs: 12.5,
      ip: '203.0.113.7',
      requestBody: null,
      responseBody: null,
      requestHeaders: null,
      responseHeaders: null,
      omittedBytes: 0,
      at: NOW - MINUTE,
      ...input,
    }
  })
  await transaction(app.db, (trx) => insertRequests(trx, requests))
  return requests.map(({ id }) => id)
}

async function findKeyId(app: TestApp, { accountId }: TestAccount): Promise<string> {
  const key: { id: string } | undefined = await app.db
    .read('api_keys')
    .where({ account_id: accountId })
    .first('id')
  return key?.id ?? ''
}
