/** Creating, listing, updating and deleting records by form, compared with the API. */
import { describe, expect, it } from 'vitest'
import {
  type Body,
  expectSuccess,
  newJob,
  newParticipant,
  newTask,
} from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { recordIdsIn, submitForm, type Values } from './forms.ts'
import {
  apiPath,
  createByForm,
  newOwner,
  type Owner,
  QUESTIONS,
  resourceBySlug,
} from './record-forms.ts'

const app = sharedApp()

interface Kind {
  slug: string
  create(ids: Ids): FormAndBody
  update?: FormAndBody
  /** A filter that finds the new record, and one that does not. */
  filters: [finds: string, findsNot: string]
}

/** The input of a form, and the equal body for the API. */
interface FormAndBody {
  input: Values
  body: Body
}

interface Ids {
  participant: string
  job: string
  task: string
}

const KINDS: Kind[] = [
  {
    slug: 'participants',
    create: () => ({
      input: {
        full_name: 'Ada Lovelace',
        email: 'ada@example.com',
        tags: 'vip\r\nfrench\r\n',
        status: 'inactive',
      },
      body: {
        full_name: 'Ada Lovelace',
        email: 'ada@example.com',
        tags: ['vip', 'french'],
        status: 'inactive',
      },
    }),
    update: {
      input: { email: '', tags: '', phone: '+44' },
      body: { email: null, tags: [], phone: '+44' },
    },
    filters: ['filter[search]=lovelace&filter[tag]=vip', 'filter[status]=active,archived'],
  },
  {
    slug: 'tasks',
    create: ({ participant }) => ({
      input: {
        title: 'Call',
        description: 'one\r\ntwo',
        participant_id: participant,
        due_at: '2027-03-02T09:30',
      },
      body: {
        title: 'Call',
        description: 'one\ntwo',
        status: 'open',
        participant_id: participant,
        due_at: '2027-03-02T09:30:00Z',
      },
    }),
    update: {
      input: { status: 'completed', due_at: '' },
      body: { status: 'completed', due_at: null },
    },
    filters: ['filter[status]=open,completed', 'filter[due_before]=2020-01-01T00:00:00Z'],
  },
  {
    slug: 'jobs',
    create: () => ({
      input: {
        title: 'Interpreter',
        status: 'open',
        'screening_questions.0.key': 'french',
        'screening_questions.0.label': 'French?',
        'screening_questions.0.requirement': 'must_have',
        'screening_questions.0.expected:kind': 'true',
      },
      body: { title: 'Interpreter', status: 'open', screening_questions: [QUESTIONS[0]] },
    }),
    update: {
      input: {
        'screening_questions.0.expected:kind': 'number',
        'screening_questions.0.expected': '2.5',
        'screening_questions.1.key': 'city',
        'screening_questions.1.label': 'Where?',
        'screening_questions.1.requirement': 'nice_to_have',
        'screening_questions.1.expected:kind': 'text',
        'screening_questions.1.expected': 'true',
      },
      body: {
        screening_questions: [
          { ...QUESTIONS[0], expected: 2.5 },
          { key: 'city', label: 'Where?', requirement: 'nice_to_have', expected: 'true' },
        ],
      },
    },
    filters: ['filter[search]=INTERPR', 'filter[status]=draft'],
  },
  {
    slug: 'job-applications',
    create: ({ participant, job }) => ({
      input: {
        job_id: job,
        participant_id: participant,
        'answers.french': 'true',
        'answers.years': '3',
      },
      body: { job_id: job, participant_id: participant, answers: { french: true, years: 3 } },
    }),
    update: {
      input: { status: 'shortlisted', 'answers.years': '' },
      body: { status: 'shortlisted', answers: { french: true } },
    },
    filters: ['filter[screening_outcome]=missing_nice_to_have', 'filter[status]=withdrawn'],
  },
  {
    slug: 'payments',
    create: ({ participant, task }) => ({
      input: {
        participant_id: participant,
        task_id: task,
        amount_minor: '125',
        'amount_minor:seen': '€125.00',
        currency: 'EUR',
        note: 'Travel',
      },
      body: {
        participant_id: participant,
        task_id: task,
        amount_minor: 12500,
        currency: 'EUR',
        note: 'Travel',
      },
    }),
    update: { input: { status: 'paid', task_id: '' }, body: { status: 'paid', task_id: null } },
    filters: ['filter[currency]=USD,EUR', 'filter[currency]=GBP'],
  },
  {
    slug: 'exports',
    create: () => ({
      input: {
        resource: 'tasks',
        format: 'json',
        'filters.status': ['open', 'completed'],
        'filters.due_after': '2027-01-01T00:00',
      },
      body: {
        resource: 'tasks',
        format: 'json',
        filters: { status: 'open,completed', due_after: '2027-01-01T00:00:00Z' },
      },
    }),
    filters: ['filter[resource]=tasks,jobs', 'filter[status]=failed'],
  },
]

/** Creates a participant, an open job with questions and a task. */
async function newIds(client: Client): Promise<Ids> {
  const [participant, job, task] = [
    await newParticipant(client),
    await newJob(client, { screening_questions: QUESTIONS }),
    await newTask(client),
  ]
  return { participant: participant.id, job: job.id, task: task.id }
}

/** The events of an account without the first `skipped`, and their deliveries. Replaces IDs by the
 *  names in `ids`. */
async function emittedAfter(
  { tenant: { scope } }: Owner,
  skipped: number,
  ids: Record<string, string>,
) {
  const events: Record<string, string>[] = (await scope.rows('events').orderBy('id')).slice(skipped)
  const deliveries: Record<string, string>[] = await scope.rows('deliveries').orderBy('id')
  const withNames = (text: string): string => {
    let result = text
    for (const [name, id] of Object.entries(ids)) result = result.replaceAll(id, name)
    return result
  }
  return {
    actors: new Set(events.map(({ actor_type, user_id }) => `${actor_type} ${user_id}`)),
    events: events.map(({ event_type, resource_type, resource_id = '', data }) => [
      event_type,
      resource_type,
      withNames(resource_id),
      data,
    ]),
    deliveries: deliveries
      .filter(({ event_id }) => events.some(({ id }) => id === event_id))
      .map(({ event_type, state, body = '', id = '' }) => [
        event_type,
        state,
        withNames(Buffer.from(body).toString().replace(id, 'delivery')),
      ]),
  }
}

const eventCount = async ({ tenant: { scope } }: Owner): Promise<number> =>
  (await scope.rows('events').select('id')).length

const ID_OR_SERVER_TIME = /^((.+_)?id|(created|updated|paid|completed)_at)$/

/** The record with one text in place of all IDs and times of the server, which differ between any
 *  two records. */
function comparable(record: Body): Body {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      ID_OR_SERVER_TIME.test(name) && value !== null ? 'of this record' : value,
    ]),
  )
}

/** The query of the page with the create form. */
const QUERIES: Record<string, (ids: Ids) => string> = {
  'job-applications': ({ job }) => `?job_id=${job}`,
  exports: () => '?resource=tasks',
}

describe.each(KINDS)(
  'a record of $slug',
  ({ slug, create, update, filters: [finds, findsNot] }) => {
    it('is created, listed, updated and deleted by form, with the records, events and deliveries of the API', async () => {
      const resource = resourceBySlug(slug)
      const path = apiPath(resource)
      // The twin makes by API the changes that the owner makes by form.
      const [owner, twin] = [await newOwner(app), await newOwner(app)]
      const { client, visits } = owner
      for (const { tenant } of [owner, twin])
        await tenant.subscribe('https://receiver.example.com/')
      const [ids, twinIds] = [await newIds(client), await newIds(twin.client)]
      const [before, twinBefore] = [await eventCount(owner), await eventCount(twin)]

      const id = await createByForm(
        visits,
        `/records/${slug}/new${QUERIES[slug]?.(ids) ?? ''}`,
        create(ids).input,
      )
      const twinRecord = await expectSuccess(twin.client.post(path, create(twinIds).body))
      const twinId = twinRecord.id
      const read = async () => (await client.get(`${path}/${id}`)).body
      expect(comparable(await read())).toEqual(comparable(twinRecord))

      for (const [query, isFound] of [
        [finds, true],
        [findsNot, false],
        ['', true],
      ] as const) {
        const page = await visits.get(`/records/${slug}?${query}`)
        expect([query, page.status, recordIdsIn(page.text, slug).includes(id)]).toEqual([
          query,
          200,
          isFound,
        ])
      }
      if (update) {
        expect(await submitForm(visits, `/records/${slug}/${id}/edit`, update.input)).toMatchObject(
          {
            status: 303,
            to: `/records/${slug}/${id}`,
          },
        )
        const record = await read()
        expect(comparable(record)).toEqual(
          comparable(await expectSuccess(twin.client.patch(`${path}/${twinId}`, update.body))),
        )
        // The form without changes saves nothing.
        const unchanged = await submitForm(visits, `/records/${slug}/${id}/edit`, {})
        expect((await visits.get(unchanged.to ?? '')).text).toContain('No changes to save.')
        expect(await read()).toEqual(record)
      }
      if (resource.operations.delete) {
        expect((await visits.get(`/records/${slug}/${id}/delete`)).text).toContain(
          'This cannot be undone.',
        )
        expect((await client.get(`${path}/${id}`)).status).toBe(200)
        expect(await submitForm(visits, `/records/${slug}/${id}/delete`, {})).toMatchObject({
          status: 303,
          to: `/records/${slug}`,
        })
        expect((await twin.client.delete(`${path}/${twinId}`)).status).toBe(204)
        expect((await client.get(`${path}/${id}`)).status).toBe(404)
        expect((await visits.get(`/records/${slug}/${id}`)).status).toBe(404)
      }
      const { actors, ...byForm } = await emittedAfter(owner, before, { ...ids, record: id })
      expect([...actors]).toEqual([`user ${owner.account.userId}`])
      expect(byForm.events.length).toBeGreaterThan(0)
      expect(byForm.deliveries).toHaveLength(byForm.events.length)
      const ofTwin = await emittedAfter(twin, twinBefore, { ...twinIds, record: twinId })
      expect(byForm).toEqual({ events: ofTwin.events, deliveries: ofTwin.deliveries })
    })
  },
)
