// Keeps a copy of participants, tasks and payments in mirror.json.
// Run it again to read what has changed since.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

const BASE = `${process.env.MUSTER_URL}/public/v1`
const FILE = 'mirror.json'
// Payments need a key whose owner has the Finance permission to read.
// After a change here, delete mirror.json.
const LISTS = { participant: '/participants', task: '/tasks', payment: '/payments' }

interface Page {
  /** Only events have `resource`. */
  data: { id: string; resource: { type: string; id: string } }[]
  meta: { next_cursor: string | null; complete_until: string | null }
}

interface Mirror {
  from: string | null
  newest_event: string | null
  records: Record<string, Record<string, unknown>>
}

async function get(path: string, query: Record<string, string> = {}): Promise<Response> {
  for (;;) {
    const response = await fetch(`${BASE}${path}?${new URLSearchParams(query)}`, {
      headers: { Authorization: `Bearer ${process.env.MUSTER_API_KEY}` },
    })
    if (response.ok || response.status === 404) return response
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
    const response = await get(path, { ...query, 'page[size]': '100', ...after })
    const page: Page = await response.json()
    yield page
    cursor = page.meta.next_cursor
  }
}

const hasEvent = async (id: string): Promise<boolean> => (await get(`/events/${id}`)).status === 200

async function newestEvent(): Promise<string | null> {
  const response = await get('/events', { sort: '-created_at', 'page[size]': '1' })
  const { data }: Page = await response.json()
  return data[0]?.id ?? null
}

const mirror: Mirror = existsSync(FILE)
  ? JSON.parse(readFileSync(FILE, 'utf8'))
  : { from: null, newest_event: null, records: {} }

// If the newest event that the previous run saw is gone, the service may have deleted later ones,
// too: they are too old, or its operator restored a backup. Then read everything.
const isContinued = mirror.newest_event !== null && (await hasEvent(mirror.newest_event))
const since = isContinued ? mirror.from : null
// A run that reads everything begins with an empty copy, so deleted records are not in the new copy.
const records = since === null ? {} : mirror.records
const newestAtStart = await newestEvent()

const completeUntil: (string | null)[] = []
let read = 0
for (const [name, path] of Object.entries(LISTS)) {
  const copies = records[name] ?? {}
  records[name] = copies
  const query: Record<string, string> = since === null ? {} : { 'filter[updated_from]': since }
  for await (const { data, meta } of walk(path, query)) {
    completeUntil.push(meta.complete_until)
    for (const record of data) copies[record.id] = record
    read += data.length
  }
}

let deleted = 0
if (since !== null) {
  const types = Object.keys(LISTS).map((name) => `${name}.deleted`)
  const query = { 'filter[event_type]': types.join(), 'filter[created_from]': since }
  for await (const { data } of walk('/events', query))
    for (const { resource } of data) {
      const copies = records[resource.type] ?? {}
      if (resource.id in copies) deleted++
      delete copies[resource.id]
    }
}

if (newestAtStart !== null && !(await hasEvent(newestAtStart)))
  throw new Error('A backup was restored during this run. Run this again.')
const updated: Mirror = {
  // The next run continues from the time in the first response of this run.
  // If it is null, the old time stays.
  from: completeUntil[0] ?? since,
  newest_event: await newestEvent(),
  records,
}
// The file has either the old state or the new one, even if the program is stopped.
writeFileSync(`${FILE}.new`, JSON.stringify(updated))
renameSync(`${FILE}.new`, FILE)
const total = Object.values(records).reduce((sum, copies) => sum + Object.keys(copies).length, 0)
console.log(`${read} read, ${deleted} deleted, ${total} in the copy.`)
