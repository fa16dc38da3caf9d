/** `include` and `fields`: what lists and single records embed and leave out. */
import { describe, expect, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { statusAndFields } from './checks.ts'
import { sendFile } from './import-helpers.ts'
import {
  type Body,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from './new-records.ts'

const app = sharedApp()

const read = async (client: Client, path: string): Promise<Body> => (await client.get(path)).body

/** A record of each list with references, and what its `include` must embed. */
async function newReferring(client: Client): Promise<Record<string, [id: string, Body]>> {
  const { id: participant_id } = await newParticipant(client, { email: 'ada@example.com' })
  const task = await newTask(client, { participant_id })
  const payment = await newPayment(client, { participant_id, task_id: task.id })
  const job = await newJob(client)
  const application = await newApplication(client, { job_id: job.id, participant_id })
  const participant = await read(client, `/participants/${participant_id}`)
  const counts = { submitted: 1, shortlisted: 0, accepted: 0, rejected: 0, withdrawn: 0 }
  return {
    tasks: [task.id, { participant }],
    payments: [payment.id, { task, participant }],
    jobs: [job.id, { counts: { job_applications: counts } }],
    'job-applications': [application.id, { job, participant }],
  }
}

describe('include', () => {
  test('embeds the records as GETs return them, in lists and single records', async () => {
    const client = await app.newClient()
    for (const [slug, [id, embedded]] of Object.entries(await newReferring(client))) {
      const plain = await read(client, `/${slug}/${id}`)
      const include = Object.keys(embedded).join(',')
      expect(await read(client, `/${slug}/${id}?include=${include}`)).toEqual({
        ...plain,
        ...embedded,
      })
      expect((await read(client, `/${slug}?include=${include}`)).data).toEqual([
        { ...plain, ...embedded },
      ])
      for (const name of Object.keys(embedded)) {
        expect(plain).not.toHaveProperty(name)
        const [one] = (await read(client, `/${slug}?include=${name}`)).data
        expect(one).toEqual({ ...plain, [name]: embedded[name] })
      }
    }
  })

  test('a null reference → nothing embedded', async () => {
    const client = await app.newClient()
    const { participant_id, task_id } = await newPayment(client)
    const { id } = await newTask(client)
    expect([participant_id, task_id]).toEqual([expect.any(String), null])
    const [payment] = (await read(client, '/payments?include=participant,task')).data
    expect(payment.participant.id).toBe(participant_id)
    expect(payment).not.toHaveProperty('task')
    expect(await read(client, `/tasks/${id}?include=participant`)).toEqual(
      await read(client, `/tasks/${id}`),
    )
  })

  test('counts of several jobs, by status', async () => {
    const client = await app.newClient()
    const [one, other] = [await newJob(client), await newJob(client)]
    const applications = [1, 2, 3].map(() => newApplication(client, { job_id: one.id }))
    const [first, second] = await Promise.all(applications)
    await client.patch(`/job-applications/${first.id}`, { status: 'rejected' })
    await client.patch(`/job-applications/${second.id}`, { status: 'shortlisted' })
    const none = { submitted: 0, shortlisted: 0, accepted: 0, rejected: 0, withdrawn: 0 }
    const { data } = await read(client, '/jobs?include=counts')
    expect(data.map(({ id, counts }: Body) => [id, counts.job_applications])).toEqual([
      [one.id, { ...none, submitted: 1, shortlisted: 1, rejected: 1 }],
      [other.id, none],
    ])
  })

  test('one more statement, however many records the page has', async () => {
    const client = await app.newClient()
    const countStatements = async (path: string): Promise<number> => {
      let count = 0
      // At most once a second, a list also reads the open transactions for complete_until.
      const note = ({ sql }: { sql: string }): void => {
        if (!sql.includes('pg_stat_activity')) count++
      }
      app.db.read.on('query', note)
      await read(client, path)
      app.db.read.off('query', note)
      return count
    }
    await newApplication(client)
    const alone = await countStatements('/job-applications')
    expect(await countStatements('/job-applications?include=job,participant')).toBe(alone + 2)
    await newApplication(client)
    await newApplication(client)
    expect(await countStatements('/job-applications?include=job,participant')).toBe(alone + 2)
  })

  test.each([
    ['tasks', 'include=job'],
    ['tasks', 'include='],
    ['tasks', 'include=participant,participant'],
    ['participants', 'include=tasks'],
  ])('GET /%s?%s → 422', async (slug, query) =>
    expect(statusAndFields(await (await app.newClient()).get(`/${slug}?${query}`))).toEqual([
      422,
      ['include'],
    ]),
  )
})

describe('the ETag with include', () => {
  test('changes with the embedded record; If-Match compares only the record itself', async () => {
    const client = await app.newClient()
    const participant = await newParticipant(client)
    const { id } = await newTask(client, { participant_id: participant.id })
    const path = `/tasks/${id}?include=participant`
    const etagOf = async (): Promise<string> => (await client.get(path)).headers.get('etag') ?? ''
    const before = await etagOf()
    expect((await client.get(path, { 'If-None-Match': before })).status).toBe(304)
    await client.patch(`/participants/${participant.id}`, { full_name: 'Grace Hopper' })
    const after = await etagOf()
    expect(after).not.toBe(before)
    expect((await client.get(path, { 'If-None-Match': before })).status).toBe(200)
    const patch = async (title: string, tag: string): Promise<number> =>
      (await client.patch(`/tasks/${id}`, { title }, { 'If-Match': tag })).status
    expect(await patch('One', before)).toBe(200)
    expect(await patch('Two', after)).toBe(412)
  })
})

describe('fields', () => {
  test('only the named fields, `id` and what is embedded, with the same ETag', async () => {
    const client = await app.newClient()
    const { id: participant_id } = await newParticipant(client)
    const { id, title } = await newTask(client, { participant_id })
    const plain = await client.get(`/tasks/${id}`)
    const selected = await client.get(`/tasks/${id}?fields=status,title`)
    expect(selected.body).toEqual({ id, title, status: 'open' })
    expect(selected.headers.get('etag')).toBe(plain.headers.get('etag'))
    const { data, meta } = await read(client, '/tasks?fields=title&include=participant')
    expect(data).toEqual([
      { id, title, participant: await read(client, `/participants/${participant_id}`) },
    ])
    const { meta: plainMeta } = await read(client, '/tasks')
    expect(meta).toEqual({ ...plainMeta, complete_until: expect.any(String) })
    expect((await read(client, '/tasks?fields=id')).data).toEqual([{ id }])
  })

  test('imports, webhooks, deliveries and events', async () => {
    const client = await app.newClient()
    await client.post('/webhooks', { url: 'http://localhost:9/', event_types: ['*'] })
    await newParticipant(client)
    await sendFile(client, 'mode=create', 'full_name\r\nAda\r\n')
    for (const [slug, name] of [
      ['imports', 'status'],
      ['webhooks', 'url'],
      ['deliveries', 'attempts'],
      ['events', 'changes'],
    ] as const) {
      const { data } = await read(client, `/${slug}`)
      const select = (record: Body): Body =>
        Object.fromEntries(Object.entries(record).filter(([key]) => ['id', name].includes(key)))
      expect((await read(client, `/${slug}?fields=${name}`)).data).toEqual(data.map(select))
      const path = `/${slug}/${data[0].id}`
      const plain = await client.get(path)
      const selected = await client.get(`${path}?fields=${name}`)
      expect(selected.body).toEqual(select(plain.body))
      expect(Object.keys(selected.body)).toEqual(['id', name])
      expect(selected.headers.get('etag')).toBe(plain.headers.get('etag'))
    }
  })

  test.each(['fields=participant', 'fields=', 'fields=title,title', 'fields=account_id'])(
    'GET /tasks?%s → 422',
    async (query) =>
      expect(statusAndFields(await (await app.newClient()).get(`/tasks?${query}`))).toEqual([
        422,
        ['fields'],
      ]),
  )
})
