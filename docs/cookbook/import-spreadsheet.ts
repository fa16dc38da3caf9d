// Imports people.csv, saved by a spreadsheet program as CSV in UTF-8. Its first row names fields of a
// participant, for example full_name,email,external_id. Writes refused rows to refused.csv.
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'

const BASE = `${process.env.MUSTER_URL}/public/v1`
const POLL_MS = 2_000

async function call(method: string, path: string, body?: Buffer): Promise<Response> {
  const headers = {
    Authorization: `Bearer ${process.env.MUSTER_API_KEY}`,
    ...(body && { 'Content-Type': 'text/csv', 'Idempotency-Key': randomUUID() }),
  }
  for (;;) {
    const response = await fetch(BASE + path, { method, headers, body })
    if (response.ok) return response
    const seconds = Number(response.headers.get('Retry-After'))
    if (![429, 503].includes(response.status) || !seconds)
      throw new Error(`${response.status}: ${await response.text()}`)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  }
}

const start = await call(
  'POST',
  '/imports?resource=participants&mode=upsert',
  readFileSync('people.csv'),
)
let found = await start.json()
while (['queued', 'processing'].includes(found.status)) {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  found = await (await call('GET', `/imports/${found.id}`)).json()
}
const { status, error, created_count, updated_count, unchanged_count, refused_count } = found
console.log(
  `${created_count} created, ${updated_count} updated, ${unchanged_count} unchanged, ${refused_count} refused.`,
)
if (refused_count > 0) {
  const rows = await call('GET', `/imports/${found.id}/errors`)
  writeFileSync('refused.csv', Buffer.from(await rows.arrayBuffer()))
  console.error('Correct the rows in refused.csv, and import them again.')
}
if (status === 'failed') throw new Error(error)
