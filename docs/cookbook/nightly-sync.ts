// Keeps a copy of all participants in mirror.json. Run it again to read what has changed since.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'

const BASE = `${process.env.MUSTER_URL}/public/v1`
const FILE = 'mirror.json'

interface Page {
  data: Record<string, unknown>[]
  meta: { next_cursor: string | null; complete_until: string }
}

async function get(path: string, query: Record<string, string>): Promise<Page> {
  for (;;) {
    const response = await fetch(`${BASE}${path}?${new URLSearchParams(query)}`, {
      headers: { Authorization: `Bearer ${process.env.MUSTER_API_KEY}` },
    })
    if (response.ok) return await response.json()
    const seconds = Number(response.headers.get('Retry-After'))
    if (![429, 503].includes(response.status) || !seconds)
      throw new Error(`${response.status}: ${await response.text()}`)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  }
}

/** All pages of a list. */
async function* walk(path: string, query: Record<string, string>): AsyncGenerator<Page> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const after: Record<string, string> = cursor === '' ? {} : { 'page[after]': cursor }
    const page = await get(path, { ...query, 'page[size]': '100', ...after })
    yield page
    cursor = page.meta.next_cursor
  }
}

function readMirror(): { until: string | null; records: Record<string, unknown> } {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'))
  } catch {
    return { until: null, records: {} }
  }
}

const { until: since, records } = readMirror()
let until: string | null = null
let changed = 0
const updatedSince: Record<string, string> = since === null ? {} : { 'filter[updated_from]': since }
for await (const { data, meta } of walk('/participants', updatedSince)) {
  // The next run continues from here: no change before this time can appear later.
  until ??= meta.complete_until
  for (const record of data) records[String(record.id)] = record
  changed += data.length
}

let deleted = 0
if (since !== null)
  for await (const { data } of walk('/events', {
    'filter[event_type]': 'participant.deleted',
    'filter[created_from]': since,
  }))
    for (const event of data) {
      const { id } = event.resource as { id: string }
      if (id in records) deleted++
      delete records[id]
    }

// The file has either the old state or the new one, even if the program is stopped.
writeFileSync(`${FILE}.new`, JSON.stringify({ until, records }))
renameSync(`${FILE}.new`, FILE)
console.log(`${changed} read, ${deleted} deleted, ${Object.keys(records).length} in the copy.`)
