/** Calls the API with a client that @hey-api/openapi-ts generated, and reports what it saw as
 *  JSON. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  createJob,
  createParticipant,
  createPayment,
  getParticipant,
  listEvents,
  listParticipants,
  listPayments,
  type NewParticipantStatus,
} from './generated/hey-api'
import { createClient } from './generated/hey-api/client'
import { headers, limitHeaders, proxyUrl, screening_questions, url } from './report'

const client = createClient({ baseUrl: url, headers })

async function create(full_name: string, status: NewParticipantStatus): Promise<string> {
  const email = `${full_name}@example.com`
  const { data } = await createParticipant({ client, body: { full_name, email, status } })
  assert(data)
  return data.id
}

await create('Ada', 'active')
await create('Grace', 'inactive')
const participant_id = await create('Alan', 'archived')

const names: string[] = []
for (let number = 1, last = 1; number <= last; number++) {
  const { data } = await listParticipants({
    client,
    query: {
      'page[number]': number,
      'page[size]': 1,
      'filter[status]': ['active', 'inactive'],
      sort: ['full_name'],
    },
  })
  assert(data)
  names.push(...data.data.map(({ full_name }) => full_name))
  last = data.meta.last_page
}

const missing = await getParticipant({ client, path: { participant: randomUUID() } })
const invalid = await createParticipant({
  client,
  body: { full_name: 'Ada', email: 'ada@example.com' },
})
assert(invalid.error && 'errors' in invalid.error)

await createPayment({
  client,
  body: { participant_id, amount_minor: 3_000_000_000, currency: 'VND' },
})
const payments = await listPayments({ client })
const job = await createJob({
  client,
  body: {
    title: 'Interpreter',
    screening_questions,
  },
})
const events = await listEvents({ client })
const proxy = createClient({ baseUrl: proxyUrl, headers })
const fromProxy = await listParticipants({ client: proxy })
const eventsFromProxy = await listEvents({ client: proxy })

let limited = await listParticipants({ client })
while (limited.response?.status !== 429) limited = await listParticipants({ client })

console.log(
  JSON.stringify({
    names,
    not_found: missing.error?.message,
    invalid: invalid.error.errors,
    amount_minor: payments.data?.data[0]?.amount_minor,
    event_types: events.data?.data.map(({ event_type }) => event_type),
    questions: job.data?.screening_questions,
    new_status: fromProxy.data?.data[0]?.status,
    new_event_type: eventsFromProxy.data?.data[0]?.event_type,
    too_many_requests: limited.error?.message,
    headers: limitHeaders(limited.response.headers),
  }),
)
