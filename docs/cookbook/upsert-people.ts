// Creates or updates a participant for each entry of people.json, by `external_id`.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

const BASE = `${process.env.MUSTER_URL}/public/v1`
const MAX_ITEMS = 100

interface Result {
  status: number
  message?: string
  errors?: Record<string, string[]>
}

async function post(path: string, body: string): Promise<{ results: Result[] }> {
  // The repeats of a batch have the same key, so nothing is done twice.
  const key = randomUUID()
  for (;;) {
    const response = await fetch(BASE + path, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${process.env.MUSTER_API_KEY}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
      },
      body,
    })
    if (response.ok) return await response.json()
    const seconds = Number(response.headers.get('Retry-After'))
    if (![429, 503].includes(response.status) || !seconds)
      throw new Error(`${response.status}: ${await response.text()}`)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  }
}

const people: Record<string, unknown>[] = JSON.parse(readFileSync('people.json', 'utf8'))
const counts = { created: 0, updated: 0, refused: 0 }
for (let start = 0; start < people.length; start += MAX_ITEMS) {
  const part = people.slice(start, start + MAX_ITEMS)
  const items = part.map((data) => ({ action: 'upsert', data }))
  const { results } = await post('/participants/batch', JSON.stringify({ items }))
  for (const [index, { status, message, errors }] of results.entries()) {
    if (status === 201) counts.created++
    else if (status === 200) counts.updated++
    else {
      counts.refused++
      console.error(`${part[index]?.external_id}: ${JSON.stringify(errors ?? message)}`)
    }
  }
}
console.log(`${counts.created} created, ${counts.updated} updated, ${counts.refused} refused.`)
if (counts.refused > 0) process.exitCode = 1
