/** Exports by API, and their files as workers write them. */
import { expect } from 'vitest'
import { makeExport } from '../../operations/export-job.ts'
import type { Db } from '../../records/database/open.ts'
import type { Client, TestApp } from '../helpers.ts'
import { withNulls } from './new-records.ts'

export const SECOND_MS = 1_000
export const DAY_MS = 24 * 60 * 60 * SECOND_MS

/** Returns the ID of the new export. */
export async function requestExport(client: Client, body: object): Promise<string> {
  const response = await client.post('/exports', { format: 'csv', ...body })
  expect(response).toMatchObject({ status: 201 })
  return response.body.id
}

/** Writes the file of an export, if it is due, as a worker does. Without a delivery engine, nothing
 *  else writes it. */
export function writeFile(
  { db, config }: TestApp,
  id: string,
  {
    now = () => new Date(),
    signal = new AbortController().signal,
  }: { now?: () => Date; signal?: AbortSignal } = {},
): Promise<void> {
  return makeExport({ db, now, quotas: config.quotas }, id, signal)
}

/** Returns the ID of a new export whose file is written. */
export async function newCompleteExport(
  app: TestApp,
  client: Client,
  body: object,
): Promise<string> {
  const id = await requestExport(client, body)
  await writeFile(app, id)
  return id
}

/** The text of a CSV file with these columns and lines, which the test has quoted. Columns of other
 *  nullable fields of the schema are empty. */
export function csvText(
  schema: Parameters<typeof withNulls>[0],
  columns: string,
  ...lines: string[][]
): string {
  const names = columns.split(',')
  const toRecord = (cells: string[]): object =>
    withNulls(schema, Object.fromEntries(names.map((name, index) => [name, cells[index]])))
  return [Object.keys(toRecord([])), ...lines.map((cells) => Object.values(toRecord(cells)))]
    .map((cells) => `${cells.join(',')}\r\n`)
    .join('')
}

export async function countChunks(db: Db, id: string): Promise<number> {
  const [row] = await db.read('export_chunks').where({ export_id: id }).count({ total: '*' })
  return Number(row?.total)
}
