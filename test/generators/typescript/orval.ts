/** Calls the API with a client that orval generated, and reports what it saw as JSON. */
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
} from './generated/orval'
import { limitHeaders, proxyUrl, screening_questions } from './report'

async function create(full_name: string, status: NewParticipantStatus): Promise<string> {
  const email = `${full_name}@example.com`
  const created = await createParticipant({ full_name, email, status })
  assert(created.status === 201)
  return created.data.id
}

await create('Ada', 'active')
await create('Grace', 'inactive')
const participant_id = await create('Alan', 'archived')

const names: string[] = []
for (let number = 1, last = 1; number <= last; number++) {
  const page = await listParticipants({
    'page[number]': number,
    'page[size]': 1,
    'filter[status]': ['active', 'inactive'],
    sort: ['full_name'],
  })
  assert(page.status === 200)
  names.push(...page.data.data.map(({ full_name }) => full_name))
  last = page.data.meta.last_page
}

const missing = await getParticipant(randomUUID())
assert(missing.status === 404)
const invalid = await createParticipant({ full_name: 'Ada', email: 'ada@example.com' })
assert(invalid.status === 422)

await createPayment({ participant_id, amount_minor: 3_000_000_000, currency: 'VND' })
const payments = await listPayments()
assert(payments.status === 200)
const job = await createJob({
  title: 'Interpreter',
  screening_questions,
})
assert(job.status === 201)
const events = await listEvents()
assert(events.status === 200)
const fromProxy = await listParticipants({}, { baseUrl: proxyUrl })
assert(fromProxy.status === 200)
const eventsFromProxy = await listEvents({}, { baseUrl: proxyUrl })
assert(eventsFromProxy.status === 200)

let limited = await listParticipants()
while (limited.status !== 429) limited = await listParticipants()

console.log(
  JSON.stringify({
    names,
    not_found: missing.data.message,
    invalid: invalid.data.errors,
    amount_minor: payments.data.data[0]?.amount_minor,
    event_types: events.data.data.map(({ event_type }) => event_type),
    questions: job.data.screening_questions,
    new_status: fromProxy.data.data[0]?.status,
    new_event_type: eventsFromProxy.data.data[0]?.event_type,
    too_many_requests: limited.data.message,
    headers: limitHeaders(limited.headers),
  }),
)
