/** Stores requests as the API logs them, and reads the pages that show them. */
import { randomUUID } from 'node:crypto'
import { transaction } from '../../records/database/transaction.ts'
import { newId } from '../../records/ids.ts'
import { insertRequests, type LoggedRequest } from '../../records/request-log.ts'
import type { TestAccount, TestApp } from '../helpers.ts'
import { unescapeHtml } from './forms.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** A time within a bucket of any length. */
export const NOW = Math.floor(Date.now() / DAY) * DAY + 17 * HOUR + 12 * MINUTE + 34_567

export type GivenRequest = Partial<LoggedRequest>

/** Logs requests of an account. Returns their IDs in the same order. */
export async function log(
  app: TestApp,
  account: TestAccount,
  given: GivenRequest[],
): Promise<string[]> {
  const apiKeyId = await keyOf(app, account)
  const requests = given.map((request): LoggedRequest => {
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
      omittedBytes: 0,
      at: NOW - MINUTE,
      ...request,
    }
  })
  await transaction(app.db, (trx) => insertRequests(trx, requests))
  return requests.map(({ id }) => id)
}

async function keyOf(app: TestApp, { accountId }: TestAccount): Promise<string> {
  const key: { id: string } | undefined = await app.db
    .read('api_keys')
    .where({ account_id: accountId })
    .first('id')
  return key?.id ?? ''
}

/** HTML as plain text. */
export function plainText(html: string): string {
  return unescapeHtml(html.replace(/<[^>]*>/g, ''))
    .replaceAll('\u00a0', ' ')
    .trim()
}

/** The figures of a page by label. */
export function figuresOf(html: string): Record<string, string> {
  const stats = html.matchAll(/<dt>(.*?)<\/dt>\s*<dd class="stat-value">(.*?)<\/dd>/g)
  return Object.fromEntries(
    [...stats].map(([, label = '', value = '']) => [plainText(label), plainText(value)]),
  )
}

/** The cells of a table by its label, as plain text. */
export function tableOf(html: string, name: string): string[][] {
  const [, after = ''] = html.split(`role="region" aria-label="${name}"`)
  const [, body = ''] = after.slice(0, after.indexOf('</table>')).split('<tbody>')
  return [...body.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = '']) =>
      plainText(cell).replace(/\s+/g, ' '),
    ),
  )
}

/** The IDs of the requests on a page. */
export function listedIn(html: string): string[] {
  return [...html.matchAll(/<tbody id="request-([\da-f-]{36})"/g)].map(([, id = '']) => id)
}

/** The curl command that the page's copy button copies. */
export function commandIn(html: string): string {
  const copied = html.match(/data-copy="([^"]*)"\s+aria-label="Copy the curl command"/)?.[1] ?? ''
  return unescapeHtml(copied)
}
