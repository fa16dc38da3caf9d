/** Imports by API, as workers do them. */
import { expect } from 'vitest'
import { AccountQuotas } from '../../operations/account-quota.ts'
import { runImport } from '../../operations/import-job.ts'
import type { Answer, Client, TestApp } from '../helpers.ts'

export const CSV = { 'Content-Type': 'text/csv' }
export const NDJSON = { 'Content-Type': 'application/x-ndjson' }

/** `query` without the resource: participants. */
export function sendFile(
  client: Client,
  query: string,
  file: string,
  headers: Record<string, string> = CSV,
): Promise<Answer> {
  const resource = query.includes('resource=') ? '' : 'resource=participants&'
  return client.post(`/imports?${resource}${query}`, file, headers)
}

/** Does the import, if it is due, as a worker does. Without a delivery engine, nothing else does it. */
export function doImport(
  { db, config }: TestApp,
  id: string,
  {
    now = () => new Date(),
    signal = new AbortController().signal,
  }: { now?: () => Date; signal?: AbortSignal } = {},
): Promise<void> {
  const quotas = new AccountQuotas({ db, now, quotas: config.quotas })
  return runImport({ db, now, quotas }, id, signal)
}

/** Sends the file and does the import. Returns its record, and the file of refused rows. */
export async function importFile(
  app: TestApp,
  client: Client,
  query: string,
  file: string,
  headers?: Record<string, string>,
): Promise<{ record: Answer['body']; refused: string }> {
  const sent = await sendFile(client, query, file, headers)
  expect(sent).toMatchObject({ status: 201 })
  await doImport(app, sent.body.id)
  const { body: record } = await client.get(`/imports/${sent.body.id}`)
  const { text: refused } = await client.get(`/imports/${sent.body.id}/errors`)
  return { record, refused }
}

/** The counts of an import: created, updated, unchanged, refused. */
export function countsOf(record: Answer['body']): number[] {
  const { created_count, updated_count, unchanged_count, refused_count } = record
  return [created_count, updated_count, unchanged_count, refused_count]
}
