// Makes the webhooks of the account those of webhooks.json, compared by URL. Webhooks that are not in
// the file are deleted. Prints the signing secret of each new webhook: nothing shows it again.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

const BASE = `${process.env.MUSTER_URL}/public/v1`

interface Webhook {
  url: string
  description?: string
  event_types: string[]
}

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = {
    Authorization: `Bearer ${process.env.MUSTER_API_KEY}`,
    'Content-Type': 'application/json',
    ...(method === 'POST' && { 'Idempotency-Key': randomUUID() }),
  }
  for (;;) {
    const response = await fetch(BASE + path, { method, headers, body: JSON.stringify(body) })
    const text = await response.text()
    if (response.ok) return text === '' ? undefined : JSON.parse(text)
    const seconds = Number(response.headers.get('Retry-After'))
    if (![429, 503].includes(response.status) || !seconds)
      throw new Error(`${method} ${path}: ${response.status}: ${text}`)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  }
}

const wanted: Webhook[] = JSON.parse(readFileSync('webhooks.json', 'utf8'))
// An account has at most 50 webhooks by default, so one page has all of them.
const { data } = await call<{ data: (Webhook & { id: string })[] }>(
  'GET',
  '/webhooks?page[size]=100',
)
const existing = new Map(data.map((webhook) => [webhook.url, webhook]))

for (const { url, description = '', event_types } of wanted) {
  const found = existing.get(url)
  existing.delete(url)
  if (!found) {
    const body = { url, description, event_types }
    const { secret } = await call<{ secret: string }>('POST', '/webhooks', body)
    console.log(`created ${url} ${secret}`)
  } else if (
    found.description !== description ||
    String(found.event_types.toSorted()) !== String(event_types.toSorted())
  ) {
    await call('PATCH', `/webhooks/${found.id}`, { description, event_types })
    console.log(`updated ${url}`)
  } else console.log(`unchanged ${url}`)
}
for (const { id, url } of existing.values()) {
  await call('DELETE', `/webhooks/${id}`)
  console.log(`deleted ${url}`)
}
