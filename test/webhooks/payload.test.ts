/** What a subscriber receives for requests to the API: service-spec §2 "Webhook delivery payload",
 *  §5 "Webhook signature" and §6. */
import { expect, test } from 'vitest'
import {
  type Body,
  newApplication,
  newJob,
  newParticipant,
  newTask,
} from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { type ReceivedRequest, signatureOf } from '../receiver.ts'
import { createOneOfEach } from '../resources.ts'
import { newSubscriber, type Subscriber } from './harness.ts'

const app = sharedApp({
  role: 'all',
  environment: { WEBHOOK_RETRY_DELAYS: Array(9).fill('0.5').join() },
})

const UUID = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
const payloadOf = (request?: ReceivedRequest): Body => JSON.parse(String(request?.body))

interface ApiSubscriber extends Subscriber {
  client: Client
  /** The signing secret. */
  secret: string
}

/** An account with a webhook, and a client of its API. */
async function subscribe(eventTypes: string[], answers?: number[]): Promise<ApiSubscriber> {
  const account = await app.newAccount()
  const ofAccount = { ...app, newAccount: async () => account }
  const subscriber = await newSubscriber(ofAccount, { eventTypes, answers })
  const secret = await subscriber.tenant.secretOf(subscriber.webhookId)
  return { ...subscriber, client: app.as(account), secret }
}

test.each([
  { type: 'participant', path: '/participants', create: newParticipant },
  { type: 'task', path: '/tasks', create: newTask },
])(
  'a new $type: the event identifies the record, contains nothing else of it, and data is an empty array',
  async ({ type, path, create }) => {
    await using subscriber = await subscribe(['*'])
    const { client, receiver, tenant } = subscriber
    const record = await create(client)
    const [request] = await receiver.received(1)
    expect(request?.method).toBe('POST')
    expect(request?.headers['content-type']).toBe('application/json')
    const payload = payloadOf(request)
    expect(payload).toEqual({
      id: UUID,
      event_type: `${type}.created`,
      resource: { type, id: record.id },
      data: [],
    })
    expect(await tenant.settled(payload.id)).toMatchObject({ state: 'delivered', attempts: 1 })
    expect((await client.get(`${path}/${payload.resource.id}`)).body).toEqual(record)
  },
)

const questions = [
  { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
  { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
]
test.each([
  { outcome: 'meets_all', screening_questions: questions, answers: { french: true, years: 5 } },
  { outcome: 'missing_must_have', screening_questions: questions, answers: { years: 5 } },
  { outcome: 'missing_nice_to_have', screening_questions: questions, answers: { french: true } },
  { outcome: null, screening_questions: [], answers: { french: true } },
])(
  'job_application.created: data.screening_outcome is $outcome, also after the answers have changed',
  async ({ outcome, screening_questions, answers }) => {
    await using subscriber = await subscribe(['job_application.created'], [500, 204])
    const { client, receiver } = subscriber
    const { id: job_id } = await newJob(client, { screening_questions })
    const { id } = await newApplication(client, { job_id, answers })
    await receiver.received(1)
    const change = { answers: { french: outcome === 'missing_must_have', years: 1 } }
    expect((await client.patch(`/job-applications/${id}`, change)).status).toBe(200)
    const [first, second] = await receiver.received(2)
    expect(payloadOf(first)).toEqual({
      id: UUID,
      event_type: 'job_application.created',
      resource: { type: 'job_application', id },
      data: { screening_outcome: outcome },
    })
    expect(second?.body).toEqual(first?.body)
  },
)

test('every event: one signed delivery with the fields of the payload and no others', async () => {
  await using subscriber = await subscribe(['*'])
  const { client, receiver, secret } = subscriber
  const ids = await createOneOfEach(client)
  await client.patch(`/tasks/${ids.task}`, { status: 'completed' })
  await client.patch(`/payments/${ids.payment}`, { status: 'paid' })
  await client.patch(`/job-applications/${ids.job_application}`, { status: 'shortlisted' })
  await client.delete(`/tasks/${ids.task}`)
  const events = (await client.get('/events?page[size]=100')).body.data
  const requests = await receiver.received(events.length)
  const payloads = requests.map(payloadOf)
  expect(new Set(payloads.map(({ id }) => id)).size).toBe(events.length)
  for (const { event_type, resource, data, id: eventId } of events) {
    const { delivery_ids } = (await client.get(`/events/${eventId}`)).body
    const index = payloads.findIndex(({ id }) => id === delivery_ids[0])
    expect(payloads[index]).toEqual({ id: delivery_ids[0], event_type, resource, data })
    expect(data).toEqual(
      event_type === 'job_application.created' ? { screening_outcome: null } : [],
    )
    const { headers, body } = requests[index] as ReceivedRequest
    expect(headers['x-service-signature']).toBe(signatureOf(secret, body))
  }
})

test('an event without a subscription: no request', async () => {
  await using subscriber = await subscribe(['task.created'])
  const { client, receiver } = subscriber
  await newParticipant(client)
  await newTask(client)
  const [request] = await receiver.received(1)
  expect(payloadOf(request).event_type).toBe('task.created')
  expect(receiver.requests).toHaveLength(1)
})
