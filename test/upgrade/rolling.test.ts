/** A rolling upgrade: a node of the previous version works before and after the migration, beside one of this version. */
import { describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { expectSuccess, newApplication, newPayment } from '../handlers/new-records.ts'
import { type Client, clientOf, newDatabase, startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { readBothCounts } from '../records/record-counts.ts'
import { ENVIRONMENT, subscribe } from './populate.ts'
import { hasPreviousVersion, newPreviousVersion } from './previous-version.ts'

type Ids = Record<'participants' | 'jobs' | 'tasks' | 'payments' | 'job-applications', string>

let keys = 0

/** Creates a record of each kind. */
async function createAll(client: Client): Promise<Ids> {
  const key = { 'Idempotency-Key': `rolling-${++keys}` }
  const participant = { full_name: 'Ada', email: `ada-${keys}@example.com`, tags: ['vip', 'new'] }
  const { id: participant_id } = await expectSuccess(client.post('/participants', participant, key))
  // The response is the stored one.
  const again = await expectSuccess(client.post('/participants', participant, key))
  expect(again.id).toBe(participant_id)
  const question = { key: 'fr', label: 'French?', requirement: 'must_have', expected: true }
  const job = { title: 'Interpreter', status: 'open', screening_questions: [question] }
  const { id: job_id } = await expectSuccess(client.post('/jobs', job))
  const answers = { fr: true }
  const application = await newApplication(client, { job_id, participant_id, answers })
  expect(application).toMatchObject({ screening_outcome: 'meets_all' })
  const task = await expectSuccess(client.post('/tasks', { title: 'Call', participant_id }))
  const payment = await newPayment(client, { participant_id, task_id: task.id })
  const ids = { participants: participant_id, jobs: job_id, tasks: task.id }
  return { ...ids, payments: payment.id, 'job-applications': application.id }
}

/** Updates and reads each record. */
async function updateAll(client: Client, ids: Ids, note: string): Promise<void> {
  const changes: Record<keyof Ids, object> = {
    participants: { full_name: note, tags: [note, 'vip'] },
    jobs: { title: note },
    tasks: { title: note },
    payments: { amount_minor: 1_000 + note.length },
    'job-applications': { answers: { fr: note.length > 5 } },
  }
  for (const [slug, change] of Object.entries(changes)) {
    const id = ids[slug as keyof Ids]
    expect(await expectSuccess(client.patch(`/${slug}/${id}`, change))).toMatchObject(change)
    expect(await expectSuccess(client.get(`/${slug}/${id}`))).toMatchObject(change)
    const { data } = await expectSuccess(client.get(`/${slug}?page[size]=100`))
    expect(data.map((record: { id: string }) => record.id)).toContain(id)
  }
  const { data } = await expectSuccess(client.get(`/participants?filter[tag]=${note}`))
  expect(data.map(({ id }: { id: string }) => id)).toContain(ids.participants)
}

/** Refusals come from keys of the database, whose names the migration may change. */
async function expectRefusals(client: Client, ids: Ids): Promise<void> {
  const { participants: participant_id, jobs: job_id } = ids
  const answers = { fr: true }
  const second = await client.post('/job-applications', { job_id, participant_id, answers })
  expect(second).toMatchObject({
    status: 422,
    body: { errors: { participant_id: expect.anything() } },
  })
  const { email } = await expectSuccess(client.get(`/participants/${participant_id}`))
  const sameEmail = await client.post('/participants', { full_name: 'Other', email })
  expect(sameEmail).toMatchObject({ status: 422, body: { errors: { email: expect.anything() } } })
  expect((await client.delete(`/participants/${participant_id}`)).status).toBe(422)
}

async function deleteAll(client: Client, ids: Ids): Promise<void> {
  for (const slug of ['payments', 'tasks', 'job-applications', 'jobs', 'participants'] as const) {
    await expectSuccess(client.delete(`/${slug}/${ids[slug]}`))
    expect((await client.get(`/${slug}/${ids[slug]}`)).status).toBe(404)
  }
}

describe.runIf(inject('database') === 'postgres' && hasPreviousVersion())(
  'a rolling upgrade',
  () => {
    test('nodes of both versions change the same records', {
      timeout: 240_000,
    }, async () => {
      await using database = await newDatabase()
      await using previous = await newPreviousVersion()
      await using muster = await newMuster()
      await using receiver = await startReceiver({ validate: false })
      const startOld = () =>
        startServing(muster, {
          bin: previous.bin,
          environment: {
            ...ENVIRONMENT,
            ...database.environment,
            RATE_LIMIT_PER_MINUTE: '1000000',
            WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
          },
        })
      const old = await startOld()
      if (!old.ready.first_account) throw new Error('The database was not empty')
      const { token: key, account_id: accountId, user_id: userId } = old.ready.first_account
      const oldClient = clientOf(old.ready.url, { key })
      const early = await createAll(oldClient)
      await updateAll(oldClient, early, 'before')

      await using app = await startApp({ database, role: 'all', environment: ENVIRONMENT })
      const client = app.as({ key })
      await subscribe(app, { accountId, userId, key }, { url: receiver.url })
      const clients = [oldClient, client]
      for (const [index, creating] of clients.entries()) {
        const ids = await createAll(creating)
        await updateAll(oldClient, early, `early-${index}`)
        for (const [other, updating] of clients.entries()) {
          await updateAll(updating, ids, `${index}-${other}`)
          await expectRefusals(updating, ids)
        }
        await deleteAll(clients[(index + 1) % clients.length] as Client, ids)
      }
      await deleteAll(oldClient, early)

      const csv = { 'Content-Type': 'text/csv' }
      const file = 'full_name,tags\r\nImported,"[""imported""]"\r\n'
      const sent = await expectSuccess(
        client.post('/imports?resource=participants&mode=create', file, csv),
      )
      await until('the import is completed', async () => {
        const { status, created_count } = await expectSuccess(client.get(`/imports/${sent.id}`))
        return status === 'completed' && created_count === 1
      })
      const { data } = await expectSuccess(oldClient.get('/participants?filter[tag]=imported'))
      expect(data).toMatchObject([{ full_name: 'Imported' }])
      await updateAll(
        oldClient,
        { ...(await createAll(oldClient)), participants: data[0].id },
        'imported',
      )

      const events = (await app.db.read('events')).length
      const first = (await app.db.read('events').join('deliveries', 'event_id', 'events.id')).length
      expect(first).toBeGreaterThan(events / 2)
      await until('all is delivered', async () => {
        const states = await app.db.read('deliveries').pluck('state')
        return states.every((state) => state === 'delivered')
      })
      const exported = await expectSuccess(
        oldClient.post('/exports', { resource: 'participants', format: 'csv' }),
      )
      await until('the export is completed', async () => {
        const { status } = await expectSuccess(oldClient.get(`/exports/${exported.id}`))
        return status === 'completed'
      })
      for (const reading of clients)
        expect((await reading.get(`/exports/${exported.id}/file`)).text).toContain('imported')
      const { stored, counted } = await readBothCounts(app.db)
      expect(stored).toEqual(counted)
      expect(
        old.output.stderr.split('\n').filter((line) => line.includes('"level":"error"')),
      ).toEqual([])
      // It compares all keys, so a load balancer sends its requests to the new node.
      const isReady = async () => (await fetch(`${old.ready.url}/readyz`)).ok
      await until('the old node has compared the keys', async () => !(await isReady()))
    })
  },
)
