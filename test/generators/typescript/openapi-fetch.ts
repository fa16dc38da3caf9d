/** Calls the API with openapi-fetch and the types of openapi-typescript, and reports what it saw as
 *  JSON. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import createClient from 'openapi-fetch'
import type { components, paths } from './generated/openapi-fetch'
import { headers, limitHeaders, proxyUrl, screening_questions, url } from './report'

const client = createClient<paths>({ baseUrl: url, headers })

type Status = components['schemas']['NewParticipantStatus']

async function create(full_name: string, status: Status): Promise<string> {
  const body = { full_name, email: `${full_name}@example.com`, status }
  const { data } = await client.POST('/public/v1/participants', { body })
  assert(data)
  return data.id
}

await create('Ada', 'active')
await create('Grace', 'inactive')
const participant_id = await create('Alan', 'archived')

const names: string[] = []
for (let number = 1, last = 1; number <= last; number++) {
  const { data } = await client.GET('/public/v1/participants', {
    params: {
      query: {
        'page[number]': number,
        'page[size]': 1,
        'filter[status]': ['active', 'inactive'],
        sort: ['full_name'],
      },
    },
  })
  assert(data)
  names.push(...data.data.map(({ full_name }) => full_name))
  last = data.meta.last_page
}

const missing = await client.GET('/public/v1/participants/{participant}', {
  params: { path: { participant: randomUUID() } },
})
const invalid = await client.POST('/public/v1/participants', {
  body: { full_name: 'Ada', email: 'ada@example.com' },
})
assert(invalid.error && 'errors' in invalid.error)

await client.POST('/public/v1/payments', {
  body: { participant_id, amount_minor: 3_000_000_000, currency: 'VND' },
})
const job = await client.POST('/public/v1/jobs', {
  body: {
    title: 'Interpreter',
    screening_questions,
  },
})
const payments = await client.GET('/public/v1/payments')
const proxy = createClient<paths>({ baseUrl: proxyUrl, headers })
const fromProxy = await proxy.GET('/public/v1/participants')
const eventsFromProxy = await proxy.GET('/public/v1/events')

const events = await client.GET('/public/v1/events')

// A field with a default is optional in a request.
const task: components['schemas']['TaskCreate'] = { title: 'Call Ada' }
assert.equal(task.description, undefined)

let limited = await client.GET('/public/v1/participants')
while (limited.response.status !== 429) limited = await client.GET('/public/v1/participants')

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
