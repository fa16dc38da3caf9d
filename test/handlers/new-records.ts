/** Creates the records that a test starts from, by requests to the API. */
import contract from '../../generated/openapi.json' with { type: 'json' }
import type { Answer, Client } from '../helpers.ts'

export type Body = Answer['body']

/** A well-formed ID of no record. */
export const UNKNOWN_ID = '019cade2-11c0-7c41-8a15-2b6f9d3e4c81'

type RequestBody = keyof typeof contract.components.requestBodies

/** The contract's example of a request body. */
export function requestExample(name: RequestBody): Body {
  const content: Record<string, { example: Body }> = contract.components.requestBodies[name].content
  return structuredClone(content['application/json']?.example)
}

/** The contract's example of an operation's request body. Undefined if the operation takes none. */
export function operationExample({ path, method }: { path: string; method: string }): Body {
  const paths: Record<string, object> = contract.paths
  const item = paths[path] as Record<string, { requestBody?: { $ref: string } }>
  const name = item[method]?.requestBody?.$ref.split('/').at(-1)
  return name && requestExample(name as RequestBody)
}

type Properties = Record<string, { nullable?: boolean; $ref?: string }>

/** `fields` in their order, with null for each nullable field of the schema that they lack: a new
 *  record has no value there. Each such field comes after the field before it in the contract. */
export function withNulls(
  schema: keyof typeof contract.components.schemas,
  fields: object,
): object {
  const schemas: Record<string, object> = contract.components.schemas
  const { properties } = schemas[schema] as { properties: Properties }
  const names = Object.keys(properties)
  const entries = Object.entries(fields)
  for (const [index, name] of names.entries()) {
    const { $ref, ...inline } = properties[name] ?? {}
    const { nullable } = ($ref ? schemas[$ref.split('/').at(-1) ?? ''] : inline) as typeof inline
    if (!nullable || name in fields) continue
    const previous = entries.findIndex(([other]) => other === names[index - 1])
    entries.splice(previous + 1, 0, [name, null])
  }
  return Object.fromEntries(entries)
}

/** The body of a 2xx response. Throws for any other status. */
export async function expectSuccess(response: Promise<Answer>): Promise<Body> {
  const { status, body, text } = await response
  if (status >= 300) throw new Error(`${status}: ${text}`)
  return body
}

export const newParticipant = (client: Client, fields: object = {}): Promise<Body> =>
  expectSuccess(client.post('/participants', { full_name: 'Ada Lovelace', ...fields }))

export const newTask = (client: Client, fields: object = {}): Promise<Body> =>
  expectSuccess(client.post('/tasks', { title: 'Send the welcome letter', ...fields }))

export const newJob = (client: Client, fields: object = {}): Promise<Body> =>
  expectSuccess(client.post('/jobs', { title: 'Interpreter', status: 'open', ...fields }))

interface ApplicationFields {
  job_id?: string
  participant_id?: string
  answers?: object
}

/** Creates a job and a participant unless `fields` names them. */
export async function newApplicationBody(
  client: Client,
  fields: ApplicationFields = {},
): Promise<object> {
  const job_id = fields.job_id ?? (await newJob(client)).id
  const participant_id = fields.participant_id ?? (await newParticipant(client)).id
  return { ...fields, job_id, participant_id }
}

/** Creates a job and a participant unless `fields` names them. */
export async function newApplication(client: Client, fields?: ApplicationFields): Promise<Body> {
  return expectSuccess(client.post('/job-applications', await newApplicationBody(client, fields)))
}

/** Creates a participant unless `fields` names one. */
export async function newPayment(
  client: Client,
  fields: { participant_id?: string; [field: string]: unknown } = {},
): Promise<Body> {
  const participant_id = fields.participant_id ?? (await newParticipant(client)).id
  const body = { amount_minor: 12500, currency: 'EUR', ...fields, participant_id }
  return expectSuccess(client.post('/payments', body))
}

/** The types of the events of a record, oldest first. */
export async function eventsAbout(client: Client, id: string): Promise<string[]> {
  const { body } = await client.get(`/events?page[size]=100&filter[resource_id]=${id}`)
  return body.data.map((event: { event_type: string }) => event.event_type)
}

/** The status of a response and the fields that its errors name, sorted. */
export async function errorOf(
  response: Promise<Answer>,
): Promise<{ status: number; fields: string[] }> {
  const { status, body } = await response
  return { status, fields: Object.keys(body?.errors ?? {}).sort() }
}
