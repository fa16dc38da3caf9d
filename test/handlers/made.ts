/** Records that tests need before they begin, made through the front door. */
import contract from '../../generated/openapi.json' with { type: 'json' }
import type { Answer, Client } from '../helpers.ts'

export type Body = Answer['body']

/** A well-formed id of no record. */
export const UNKNOWN_ID = '0193d7a0-5f02-7c41-8a15-2b6f9d3e4c81'

/** The contract's own example of a request body. */
export function exampleOf(name: keyof typeof contract.components.requestBodies): Body {
  return structuredClone(
    contract.components.requestBodies[name].content['application/json'].example,
  )
}

/** The body of a 2xx answer. Throws for any other. */
export async function made(answer: Promise<Answer>): Promise<Body> {
  const { status, body, text } = await answer
  if (status >= 300) throw new Error(`${status}: ${text}`)
  return body
}

export const newParticipant = (client: Client, given: object = {}): Promise<Body> =>
  made(client.post('/participants', { full_name: 'Ada Lovelace', ...given }))

export const newTask = (client: Client, given: object = {}): Promise<Body> =>
  made(client.post('/tasks', { title: 'Send the welcome letter', ...given }))

export const newJob = (client: Client, given: object = {}): Promise<Body> =>
  made(client.post('/jobs', { title: 'Interpreter', status: 'open', ...given }))

/** For a job and by a participant of its own, unless they are given. */
export async function newApplication(
  client: Client,
  given: { job_id?: string; participant_id?: string; answers?: object } = {},
) {
  const job_id = given.job_id ?? (await newJob(client)).id
  const participant_id = given.participant_id ?? (await newParticipant(client)).id
  return made(client.post('/job-applications', { ...given, job_id, participant_id }))
}

/** To a participant of its own, unless one is given. */
export async function newPayment(
  client: Client,
  given: { participant_id?: string; [field: string]: unknown } = {},
): Promise<Body> {
  const participant_id = given.participant_id ?? (await newParticipant(client)).id
  return made(
    client.post('/payments', { amount_minor: 12500, currency: 'EUR', ...given, participant_id }),
  )
}

/** The types of the events about a record, in their order. */
export async function eventsAbout(client: Client, id: string): Promise<string[]> {
  const { body } = await client.get(`/events?page[size]=100&filter[resource_id]=${id}`)
  return body.data.map((event: { event_type: string }) => event.event_type)
}

/** What a 422 says: its status and the fields that it names. */
export async function refused(
  answer: Promise<Answer>,
): Promise<{ status: number; fields: string[] }> {
  const { status, body } = await answer
  return { status, fields: Object.keys(body?.errors ?? {}).sort() }
}
