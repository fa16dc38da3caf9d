import { expect } from 'vitest'
import { makeExport } from '../../operations/export-job.ts'
import type { Db } from '../../records/database/open.ts'
import type { Client, TestAccount, TestApp } from '../helpers.ts'

export const SECOND_MS = 1_000
export const DAY_MS = 24 * 60 * 60 * SECOND_MS

export async function newClient(app: TestApp): Promise<{ account: TestAccount; client: Client }> {
  const account = await app.newAccount()
  return { account, client: app.as(account) }
}

/** Returns the ID of the new export. */
export async function requestExport(client: Client, body: object): Promise<string> {
  const response = await client.post('/exports', { format: 'csv', ...body })
  expect(response).toMatchObject({ status: 201 })
  return response.body.id
}

/** Returns the ID of a new export whose file is written. */
export async function newCompleteExport(
  app: TestApp,
  client: Client,
  body: object,
): Promise<string> {
  const id = await requestExport(client, body)
  await makeExport(
    { db: app.db, now: () => new Date(), quotas: { export_mib: 1024 } },
    id,
    new AbortController().signal,
  )
  return id
}

export async function countChunks(db: Db, id: string): Promise<number> {
  const [row] = await db.read('export_chunks').where({ export_id: id }).count({ total: '*' })
  return Number(row?.total)
}
