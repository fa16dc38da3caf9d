/** Test data of every resource of the contract, for the tests that cover all resources. */
import { type OperationId, operations } from '../generated/operations.ts'
import { type Resource, resources } from '../generated/resources.ts'
import {
  type Body,
  expectSuccess,
  newApplicationBody,
  newParticipant,
  newPayment,
  newTask,
  UNKNOWN_ID,
} from './handlers/new-records.ts'
import type { Answer, Client } from './helpers.ts'

/** Seeded records by the type of their resource, each with its fields at its creation. */
export type Seeded = Record<string, Body[]>

/** A value of a filter, and whether a list filtered by this value must contain a record. */
export type FilterCase = [
  value: string | ((seeded: Seeded) => string),
  matches: (record: Body, seeded: Seeded) => boolean,
]

export interface ResourceFixture {
  /** The body of a create request that succeeds. Creates the records that the body refers to. */
  newBody(client: Client): object | Promise<object>
  /** Sends the create request, if its body is not JSON. */
  create?(client: Client, body: object): Promise<Answer>
  /** Creates a record that refers to the record with this ID, and whose reference is set to null
   *  when that record is deleted. */
  addReference?(client: Client, id: string): Promise<unknown>
  /** Bodies of create requests for the tests of lists. Some records are equal in a sort field, and
   *  some have null in it if it is nullable. */
  seed(seeded: Seeded): object[]
  /** Updates of seeded records. `index` is the index in `seed`. */
  changes?: [index: number, change: object][]
  /** By the name of the filter. At least one value of each filter must match some records, but not
   *  all. */
  filterCases: Record<string, FilterCase[]>
}

const START_MS = Date.parse('2026-03-02T09:00:00.000Z')
const MINUTE_MS = 60_000
const CHANGES_MINUTE = 20

export const minuteToMs = (minute: number): number => START_MS + minute * MINUTE_MS
const at = (minute: number): string => new Date(minuteToMs(minute)).toISOString()

const adaId = ({ participant }: Seeded): string => participant?.[0].id
const zoeId = ({ participant }: Seeded): string => participant?.[1].id
const interpreterId = ({ job }: Seeded): string => job?.[0].id
const ofAda: FilterCase = [adaId, ({ participant_id }, seeded) => participant_id === adaId(seeded)]

/** Every second record of a seed has one. */
const externalId = (i: number): string | null => (i % 2 ? null : i === 2 ? 'crm,2' : `crm-${i}`)

const EXTERNAL_ID_CASES: FilterCase[] = [
  ['crm-4', ({ external_id }) => external_id === 'crm-4'],
  ['crm%2C2,crm-4', ({ external_id }) => ['crm,2', 'crm-4'].includes(external_id)],
  ['crm,2', () => false],
  ['CRM-4', () => false],
]

/** The cases of the filters by ID and time. */
function recordCases(type: string, changed = at(CHANGES_MINUTE)): Record<string, FilterCase[]> {
  const idOf = (seeded: Seeded, index: number): string => seeded[type]?.[index]?.id
  return {
    id: [
      [(seeded) => idOf(seeded, 0), ({ id }, seeded) => id === idOf(seeded, 0)],
      [
        (seeded) => `${idOf(seeded, 0)},${idOf(seeded, 1)?.toUpperCase()}`,
        ({ id }, seeded) => [idOf(seeded, 0), idOf(seeded, 1)].includes(id),
      ],
    ],
    created_after: [
      [at(1), ({ created_at }) => created_at > at(1)],
      // A nanosecond after at(1), in another time zone.
      ['2026-03-02T10:01:00.000000001%2B01:00', ({ created_at }) => created_at > at(1)],
    ],
    created_before: [[at(1), ({ created_at }) => created_at < at(1)]],
    created_from: [
      [at(1), ({ created_at }) => created_at >= at(1)],
      ['2026-03-02T09:01:00.000000001Z', ({ created_at }) => created_at > at(1)],
    ],
    created_until: [
      [at(1), ({ created_at }) => created_at < at(1)],
      ['2026-03-02T09:01:00.000000001Z', ({ created_at }) => created_at <= at(1)],
    ],
    updated_after: [[at(1), ({ updated_at }) => updated_at > at(1)]],
    updated_before: [[changed, ({ updated_at }) => updated_at < changed]],
    updated_from: [[changed, ({ updated_at }) => updated_at >= changed]],
    updated_until: [[changed, ({ updated_at }) => updated_at < changed]],
  }
}

/** By the resource's type. A resource stands below those that its seed refers to. */
const FIXTURES: Record<string, ResourceFixture> = {
  participant: {
    newBody: () => ({ full_name: 'Ada Lovelace' }),
    addReference: (client, id) => newTask(client, { participant_id: id }),
    seed: () =>
      ['Ada Lovelace', 'zoë', 'Ángel', '～tilde', '𝔄da', 'Ada Lovelace', 'ada b.', '100%_\\'].map(
        (full_name, i) => ({
          full_name,
          email: i % 3 === 2 ? null : `Person${i % 2 ? 'B' : 'a'}${i}@Example.com`,
          tags: [['vip', 'Vip'], ['vip'], []][i % 3],
          external_id: externalId(i),
        }),
      ),
    changes: [
      [0, { status: 'inactive' }],
      [3, { status: 'archived' }],
      [6, { phone: '1' }],
    ],
    filterCases: {
      status: [
        ['inactive', ({ status }) => status === 'inactive'],
        ['inactive,archived', ({ status }) => status !== 'active'],
      ],
      email: [
        ['PERSONa0@example.COM', ({ email }) => email === 'Persona0@Example.com'],
        ['persona', () => false],
      ],
      external_id: EXTERNAL_ID_CASES,
      ...recordCases('participant'),
      tag: [
        ['vip', ({ tags }) => tags.includes('vip')],
        ['Vip', ({ tags }) => tags.includes('Vip')],
        ['vi', () => false],
      ],
      search: [
        ['ADA', ({ full_name }) => /ada/i.test(full_name)],
        ['ÁNGEL', ({ full_name }) => full_name === 'Ángel'],
        ['personb', ({ email }) => /personb/i.test(email ?? '')],
        ['a l', ({ full_name }) => full_name === 'Ada Lovelace'],
        ['%25', ({ full_name }) => full_name.includes('%')],
        ['_', ({ full_name }) => full_name.includes('_')],
        ['\\', ({ full_name }) => full_name.includes('\\')],
      ],
    },
  },
  job: {
    newBody: () => ({ title: 'Interpreter', status: 'open' }),
    seed: () =>
      ['Interpreter', 'Driver', 'Interpreter', 'cook', 'Ärztin'].map((title, i) => ({
        title,
        status: i === 3 ? 'draft' : 'open',
        description: i === 1 ? 'For INTERPRETERS.' : '',
        external_id: externalId(i),
        screening_questions: i
          ? [
              { key: 'french', label: 'French?', requirement: 'must_have', expected: true },
              { key: 'years', label: 'Years?', requirement: 'nice_to_have', expected: 5 },
            ]
          : [],
      })),
    changes: [[1, { status: 'closed' }]],
    filterCases: {
      status: [
        ['closed', ({ status }) => status === 'closed'],
        ['draft,closed', ({ status }) => status !== 'open'],
      ],
      search: [
        ['interPRETER', ({ title, description }) => /interpreter/i.test(title + description)],
        ['ärztin', ({ title }) => title === 'Ärztin'],
      ],
      external_id: EXTERNAL_ID_CASES,
      ...recordCases('job'),
    },
  },
  job_application: {
    newBody: newApplicationBody,
    seed: ({ job = [], participant = [] }) =>
      participant.slice(0, 4).flatMap(({ id: participant_id }, i) =>
        job.slice(0, 2).map(({ id: job_id }, j) => ({
          job_id,
          participant_id,
          external_id: externalId(2 * i + j),
          answers: [
            { french: true, years: 5 },
            { french: true },
            { years: 5 },
            { french: true, years: '5' },
          ][i],
        })),
      ),
    changes: [
      [0, { status: 'shortlisted' }],
      [3, { status: 'withdrawn' }],
    ],
    filterCases: {
      status: [
        ['shortlisted', ({ status }) => status === 'shortlisted'],
        ['shortlisted,withdrawn', ({ status }) => status !== 'submitted'],
      ],
      job_id: [[interpreterId, ({ job_id }, seeded) => job_id === interpreterId(seeded)]],
      participant_id: [ofAda],
      screening_outcome: [
        ['meets_all', ({ screening_outcome }) => screening_outcome === 'meets_all'],
        [
          'missing_must_have,missing_nice_to_have',
          ({ screening_outcome }) => /missing/.test(screening_outcome),
        ],
        ['null', ({ screening_outcome }) => screening_outcome === null],
      ],
      external_id: EXTERNAL_ID_CASES,
      ...recordCases('job_application'),
    },
  },
  task: {
    newBody: () => ({ title: 'Send the welcome letter' }),
    addReference: (client, id) => newPayment(client, { task_id: id }),
    seed: (seeded) =>
      ['Write', 'write', 'Call', 'Write', 'Übersetzen', 'Call', 'Pay'].map((title, i) => ({
        title,
        due_at: i % 3 === 0 ? null : at(10 - Math.floor(i / 3)),
        participant_id: i % 2 ? adaId(seeded) : null,
        external_id: externalId(i),
      })),
    changes: [
      [1, { status: 'completed' }],
      [2, { status: 'cancelled' }],
    ],
    filterCases: {
      status: [
        ['completed', ({ status }) => status === 'completed'],
        ['completed,cancelled', ({ status }) => status !== 'open'],
      ],
      participant_id: [
        ofAda,
        [(seeded) => adaId(seeded).toUpperCase(), ofAda[1]],
        [(seeded) => `urn:uuid:${adaId(seeded)}`, ofAda[1]],
        [UNKNOWN_ID, () => false],
        ['null', ({ participant_id }) => participant_id === null],
      ],
      external_id: EXTERNAL_ID_CASES,
      ...recordCases('task'),
      due_after: [[at(9), ({ due_at }) => due_at !== null && due_at > at(9)]],
      due_before: [[at(10), ({ due_at }) => due_at !== null && due_at < at(10)]],
    },
  },
  payment: {
    newBody: async (client) => ({
      participant_id: (await newParticipant(client)).id,
      amount_minor: 12500,
      currency: 'EUR',
    }),
    seed: (seeded) =>
      [500, 70, 500, 9000, 999999999999, 70].map((amount_minor, i) => ({
        participant_id: i % 2 ? adaId(seeded) : zoeId(seeded),
        task_id: i === 3 ? seeded.task?.[0].id : null,
        external_id: externalId(i),
        amount_minor,
        currency: ['EUR', 'USD', 'JPY'][i % 3],
      })),
    changes: [
      [0, { status: 'paid' }],
      [3, { status: 'paid' }],
      [1, { status: 'paid' }],
    ],
    filterCases: {
      status: [
        ['paid', ({ status }) => status === 'paid'],
        ['cancelled', () => false],
      ],
      participant_id: [ofAda],
      task_id: [
        [({ task }) => task?.[0].id, ({ task_id }, { task }) => task_id === task?.[0].id],
        ['null', ({ task_id }) => task_id === null],
      ],
      external_id: EXTERNAL_ID_CASES,
      ...recordCases('payment'),
      currency: [
        ['JPY', ({ currency }) => currency === 'JPY'],
        ['JPY,EUR', ({ currency }) => currency !== 'USD'],
      ],
    },
  },
  export: {
    newBody: () => ({ resource: 'participants', format: 'csv' }),
    seed: () =>
      ['participants', 'tasks', 'jobs', 'participants', 'tasks'].map((resource) => ({
        resource,
        format: 'csv',
      })),
    filterCases: {
      status: [['queued', ({ status }) => status === 'queued']],
      resource: [['participants', ({ resource }) => resource === 'participants']],
      // Exports cannot be updated.
      ...recordCases('export', at(2)),
    },
  },
  import: {
    newBody: () => ({ resource: 'participants', mode: 'create' }),
    create: (client, query) =>
      client.post(`/imports?${new URLSearchParams({ ...query })}`, 'full_name\r\nAda\r\n', {
        'Content-Type': 'text/csv',
      }),
    seed: () => [{ resource: 'participants', mode: 'create' }],
    filterCases: {
      status: [['queued', ({ status }) => status === 'queued']],
      resource: [['participants', ({ resource }) => resource === 'participants']],
    },
  },
}

const EVENT_FILTER_CASES: ResourceFixture['filterCases'] = {
  event_type: [
    ['payment.paid', ({ event_type }) => event_type === 'payment.paid'],
    [
      'task.completed,job.created',
      ({ event_type }) => ['task.completed', 'job.created'].includes(event_type),
    ],
  ],
  resource_id: [
    [adaId, ({ resource }, seeded) => resource.id === adaId(seeded)],
    [
      (seeded) => adaId(seeded).toUpperCase(),
      ({ resource }, seeded) => resource.id === adaId(seeded),
    ],
  ],
  id: [[({ event }) => event?.[0].id, ({ id }, { event }) => id === event?.[0].id]],
  created_after: [[at(CHANGES_MINUTE), ({ created_at }) => created_at > at(CHANGES_MINUTE)]],
  created_before: [[at(1), ({ created_at }) => created_at < at(1)]],
  created_from: [[at(CHANGES_MINUTE), ({ created_at }) => created_at >= at(CHANGES_MINUTE)]],
  created_until: [[at(1), ({ created_at }) => created_at < at(1)]],
}

const DELIVERY_FILTER_CASES: ResourceFixture['filterCases'] = {
  webhook_id: [
    [
      ({ webhook }) => webhook?.[1].id,
      ({ webhook_id }, { webhook }) => webhook_id === webhook?.[1].id,
    ],
  ],
  state: [
    ['failed', ({ state }) => state === 'failed'],
    ['failed,delivered', ({ state }) => state === 'failed'],
  ],
  event_type: [['webhook.test', ({ event_type }) => event_type === 'webhook.test']],
  created_after: [[at(1), ({ created_at }) => created_at > at(1)]],
  created_before: [[at(1), ({ created_at }) => created_at < at(1)]],
}

/** The fixtures of lists that are no resources of the console. */
const OTHER_FILTER_CASES: Partial<Record<OperationId, ResourceFixture['filterCases']>> = {
  listEvents: EVENT_FILTER_CASES,
  listDeliveries: DELIVERY_FILTER_CASES,
}

/** Throws when test/resources.ts has no entry for the resource. */
export function fixtureFor({ type, slug }: Pick<Resource, 'type' | 'slug'>): ResourceFixture {
  const fixture = FIXTURES[type]
  if (fixture === undefined)
    throw new Error(`Add ${slug} to test/resources.ts: tests of all resources need "${type}".`)
  return fixture
}

/** The cases of each filter of a list. Throws when test/resources.ts lacks a filter of the
 *  contract. */
export function filterCasesFor(id: OperationId): ResourceFixture['filterCases'] {
  const resource = resources.find(({ operations }) => operations.list === id)
  const cases = resource ? fixtureFor(resource).filterCases : (OTHER_FILTER_CASES[id] ?? {})
  for (const name of Object.keys(operations[id].filters))
    if (cases[name] === undefined)
      throw new Error(`Add filter "${name}" of ${id} to test/resources.ts.`)
  return cases
}

/** The resources in the order of FIXTURES. Throws when a resource has no entry. */
function orderedResources(): Resource[] {
  for (const resource of resources) fixtureFor(resource)
  const types = Object.keys(FIXTURES)
  return resources.toSorted((a, b) => types.indexOf(a.type) - types.indexOf(b.type))
}

/** The body of a create request that succeeds. Creates the records that the body refers to. */
export async function newBody(client: Client, type: string): Promise<Body> {
  return fixtureFor({ type, slug: slugOf(type) }).newBody(client)
}

/** Creates a record and the records that it refers to. `fields` replace fields of its body. */
export async function newRecord(client: Client, type: string, fields: object = {}): Promise<Body> {
  const body = { ...(await newBody(client, type)), ...fields }
  return expectSuccess(sendCreate(client, { type, slug: slugOf(type) }, body))
}

/** Sends a create request of the resource. */
export function sendCreate(
  client: Client,
  resource: Pick<Resource, 'type' | 'slug'>,
  body: object,
): Promise<Answer> {
  return fixtureFor(resource).create?.(client, body) ?? client.post(`/${resource.slug}`, body)
}

/** The name of a type's collection in paths, for example `job-applications`. Reads the paths of the
 *  contract, because `resources` omits a resource without a list. */
export function slugOf(type: string): string {
  const recordPath = new RegExp(`/([^/]+)/\\{${type}(_id)?\\}$`)
  for (const { path } of Object.values(operations)) {
    const slug = recordPath.exec(path)?.[1]
    if (slug !== undefined) return slug
  }
  throw new Error(`No path of the contract ends with the ID of a ${type}.`)
}

/** For every resource, creates a record that no other record refers to. Returns the IDs of these
 *  records and of one event, by type. */
export async function createOneOfEach(client: Client): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const { type } of orderedResources()) ids[type] = (await newRecord(client, type)).id
  ids.event = (await client.get('/events?page[size]=1')).body.data[0].id
  // An account may have 50 webhooks, and tests call this more often.
  for (const { id, url } of (await client.get('/webhooks?page[size]=100')).body.data)
    if (url === WEBHOOK_URL) await client.delete(`/webhooks/${id}`)
  const webhook = await newWebhook(client, 'export.failed')
  return { ...ids, webhook: webhook.id, ...(await newWebhookRecords(client, webhook)) }
}

const WEBHOOK_URL = 'https://example.com/'

/** A webhook for the events of one type. */
const newWebhook = (client: Client, type: string): Promise<Body> =>
  expectSuccess(client.post('/webhooks', { url: WEBHOOK_URL, event_types: [type] }))

/** The IDs of a delivery of the webhook, and of a bulk job. */
async function newWebhookRecords(
  client: Client,
  { id }: Body,
): Promise<{ delivery: string; bulk_job: string }> {
  const post = (path: string, body?: object): Promise<Body> =>
    expectSuccess(client.post(`/webhooks/${id}/${path}`, body))
  const job = await post('retry-failed', { since: '2026-03-02T09:30:00Z' })
  return { delivery: (await post('test')).id, bulk_job: job.id }
}

/** The path with the ID of a record for each parameter, for example `{task}` or `{export_id}`. */
export function fillPath(path: string, ids: Record<string, string>): string {
  return path.replace(/\{(.*?)(_id)?\}/g, (_, type: string) => ids[type] ?? '')
}

/** Creates the seed records of each resource, two of them in each minute. Then makes the
 *  updates: the last one of each resource a minute after `CHANGES_MINUTE`, the others in
 *  `CHANGES_MINUTE`. */
export async function seedAll(
  client: Client,
  setMinute: (minute: number) => void,
): Promise<Seeded> {
  const seeded: Seeded = {}
  setMinute(0)
  // The seeds of payments cause deliveries of the first webhook.
  const webhooks = [await newWebhook(client, 'payment.created')]
  for (const resource of orderedResources()) {
    const records: Body[] = []
    for (const [i, body] of fixtureFor(resource).seed(seeded).entries()) {
      setMinute(Math.floor(i / 2))
      records.push(await expectSuccess(sendCreate(client, resource, body)))
    }
    seeded[resource.type] = records
  }
  for (const resource of orderedResources()) {
    const { changes = [] } = fixtureFor(resource)
    for (const [i, [index, change]] of changes.entries()) {
      setMinute(i === changes.length - 1 ? CHANGES_MINUTE + 1 : CHANGES_MINUTE)
      const record = seeded[resource.type]?.[index]
      await expectSuccess(client.patch(`/${resource.slug}/${record.id}`, change))
    }
  }
  webhooks.push(await newWebhook(client, 'payment.created'))
  const { delivery, bulk_job } = await newWebhookRecords(client, webhooks[1])
  const cancelled = await expectSuccess(client.post(`/deliveries/${delivery}/cancel`, undefined))
  const event = (await client.get('/events?page[size]=1')).body.data
  return {
    ...seeded,
    event,
    webhook: webhooks,
    delivery: [cancelled],
    bulk_job: [{ id: bulk_job }],
  }
}
