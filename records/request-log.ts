import { setImmediate } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import type { Db, Sql } from './db.ts'

const REQUEST_LOG_DAYS = 30
const BATCH_ROWS = 500

/** One request made with a key of the account: what the API Dashboard shows. */
export interface LoggedRequest {
  accountId: string
  userId: string
  apiKeyId: string
  requestId: string
  operationId: string | null
  method: string
  /** With the query string. */
  path: string
  status: number
  durationMs: number
  ip: string
  requestBody: string | null
  responseBody: string | null
  at: number
}

export async function insertRequests(sql: Sql, requests: LoggedRequest[]): Promise<void> {
  const rows = requests.map((request) => ({
    id: uuidv7(),
    account_id: request.accountId,
    user_id: request.userId,
    api_key_id: request.apiKeyId,
    request_id: request.requestId,
    operation_id: request.operationId,
    method: request.method,
    path: request.path,
    status: request.status,
    duration_ms: request.durationMs,
    ip: request.ip,
    request_body: request.requestBody,
    response_body: request.responseBody,
    created_at: request.at,
  }))
  for (let from = 0; from < rows.length; from += BATCH_ROWS) await sql('request_log').insert(rows.slice(from, from + BATCH_ROWS))
}

/** Removes what is older than 30 days, in batches that hold up nobody. */
export async function deleteOldRequests(db: Db, now: number): Promise<void> {
  const old = db
    .write('request_log')
    .select('id')
    .where('created_at', '<', now - REQUEST_LOG_DAYS * 86_400_000)
    .limit(BATCH_ROWS)
  while ((await db.write('request_log').whereIn('id', old.clone()).delete()) === BATCH_ROWS) await setImmediate()
}
