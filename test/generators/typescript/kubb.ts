/** Calls the API with a client that kubb generated, and reports what it saw as JSON. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setConfig } from '@kubb/plugin-client/clients/fetch'
import {
  type ApiError,
  type ApiValidationError,
  createJob,
  createParticipant,
  createPayment,
  getParticipant,
  listEvents,
  listParticipants,
  listPayments,
  type NewParticipantStatus,
} from './generated/kubb'
import { headers, limitHeaders, proxyUrl, screening_questions, url } from './report'

setConfig({ baseURL: url, headers: { ...headers, 'Content-Type': 'application/json' } })

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
  const { data } = await listParticipants({
    'page[number]': number,
    'page[size]': 1,
    'filter[status]': ['active', 'inactive'],
    sort: ['full_name'],
  })
  names.push(...data.data.map(({ full_name }) => full_name))
  last = data.meta.last_page
}

// The type of `data` is that of the successful response.
const missing: { status: number; data: unknown } = await getParticipant(randomUUID())
assert(missing.status === 404)
const invalid: { status: number; data: unknown } = await createParticipant({
  full_name: 'Ada',
  email: 'ada@example.com',
})
assert(invalid.status === 422)

await createPayment({ participant_id, amount_minor: 3_000_000_000, currency: 'VND' })
const payments = await listPayments()
const job = await createJob({
  title: 'Interpreter',
  screening_questions,
})
const events = await listEvents()
const fromProxy = await listParticipants({}, { baseURL: proxyUrl })
const eventsFromProxy = await listEvents({}, { baseURL: proxyUrl })

let limited: { status: number; data: unknown; headers: Headers } = await listParticipants()
while (limited.status !== 429) limited = await listParticipants()

console.log(
  JSON.stringify({
    names,
    not_found: (missing.data as ApiError).message,
    invalid: (invalid.data as ApiValidationError).errors,
    amount_minor: payments.data.data[0]?.amount_minor,
    event_types: events.data.data.map(({ event_type }) => event_type),
    questions: job.data.screening_questions,
    new_status: fromProxy.data.data[0]?.status,
    new_event_type: eventsFromProxy.data.data[0]?.event_type,
    too_many_requests: (limited.data as ApiError).message,
    headers: limitHeaders(limited.headers),
  }),
)
