/** The counts of records are those of `count(*)`, however their transactions end. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { repairCounts } from '../../records/count-repairs.ts'
import { type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { countedColumns } from '../../records/record-counts.ts'
import { type Body, newParticipant } from '../handlers/new-records.ts'
import { type Client, sharedApp, type TestAccount, until } from '../helpers.ts'
import { seedAll } from '../resources.ts'
import { newTenant } from '../webhooks/harness.ts'
import { readBothCounts } from './record-counts.ts'

const onPostgres = inject('database') === 'postgres'
const app = sharedApp()

async function expectRightCounts(): Promise<void> {
  const { stored, counted } = await readBothCounts(app.db)
  expect(stored).toEqual(counted)
}

interface Run {
  account: TestAccount
  client: Client
  ids: string[]
}

const status = fc.constantFrom('active', 'inactive', 'archived')
const index = fc.nat()
const idAt = ({ ids }: Run, position: number): string | undefined => ids[position % ids.length]

/** Changes rows of the run without the API, in a transaction that `end` ends. */
function changeAndEnd(run: Run, end: (scope: WriteScope) => Promise<unknown>): Promise<unknown> {
  return transaction(app.db, async (trx) => {
    const scope = writeScope(trx, run.account.accountId)
    await scope.rows('participants').update({ status: 'archived' })
    await scope.rows('events').delete()
    await end(scope)
  }).catch(() => undefined)
}

const fail = (): Promise<never> => Promise.reject(new Error('no'))

/** What happens. Steps of one group happen at the same time. */
const step = fc.oneof(
  status.map((status) => async ({ client, ids }: Run) => {
    ids.push((await newParticipant(client, { status })).id)
  }),
  fc.tuple(index, status).map(([position, status]) => async (run: Run) => {
    await run.client.patch(`/participants/${idAt(run, position)}`, { status })
  }),
  index.map((position) => async (run: Run) => {
    await run.client.delete(`/participants/${idAt(run, position)}`)
  }),
  fc.tuple(fc.boolean(), index, status).map(([atomic, position, status]) => async (run: Run) => {
    const items = [
      { action: 'create', data: { full_name: 'Ada', status } },
      { action: 'update', id: idAt(run, position) ?? randomUUID(), data: { status } },
      // Refused: undone alone, or with the whole batch.
      { action: 'create', data: { full_name: 'Bo', email: 'taken@example.com' } },
      { action: 'create', data: { full_name: 'Cy', email: 'taken@example.com' } },
    ]
    const { body } = await run.client.post('/participants/batch', { items, atomic })
    for (const { record } of body.results ?? []) if (record) run.ids.push(record.id)
  }),
  fc.constant(async (run: Run) => void (await changeAndEnd(run, fail))),
  fc.constant(
    async (run: Run) =>
      void (await changeAndEnd(run, async ({ trx, rows }) => {
        await trx.savepoint(() => rows('participants').delete().then(fail)).catch(() => undefined)
      })),
  ),
  // A crash of the connection, and the sum of rows while others add some.
  ...(onPostgres
    ? [
        fc.constant(async (run: Run) => {
          await changeAndEnd(run, ({ sql }) =>
            sql.raw('select pg_terminate_backend(pg_backend_pid())'),
          )
        }),
        fc.constant(async ({ account }: Run) => {
          await app.db.write.raw("select add_up_record_counts(?, 'participants')", [
            account.accountId,
          ])
        }),
      ]
    : []),
)

test('random changes, rollbacks and crashes → the counts of count(*), and exact totals', async () => {
  const groups = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), {
    minLength: 3,
    maxLength: 6,
  })
  await fc.assert(
    fc.asyncProperty(groups, async (steps) => {
      const account = await app.newAccount()
      const run: Run = { account, client: app.as(account), ids: [] }
      for (const group of steps) {
        await Promise.all(group.map((one) => one(run)))
        await expectRightCounts()
      }
      const { body } = await run.client.get('/participants?page[size]=100')
      expect(body.meta.total).toBe(body.data.length)
      for (const value of ['active', 'inactive', 'archived', 'active,archived']) {
        const filtered = await run.client.get(
          `/participants?page[size]=100&filter[status]=${value}`,
        )
        const isListed = (record: Body): boolean => value.split(',').includes(record.status)
        expect(filtered.body.meta.total).toBe(body.data.filter(isListed).length)
      }
    }),
    { numRuns: 8 },
  )
})

test('every counted table: its records, their updates and their deletion are counted', async () => {
  const account = await app.newAccount()
  await seedAll(app.as(account), () => undefined)
  const { stored } = await readBothCounts(app.db)
  const tables = Object.keys(stored)
    .filter((key) => key.startsWith(account.accountId))
    .map((key) => key.split(' ')[1])
  expect(new Set(tables)).toEqual(new Set(Object.keys(countedColumns)))
  await expectRightCounts()
})

test('doctor --counts corrects counts, and changes none that is right', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  await newParticipant(client)
  await newParticipant(client, { status: 'archived' })
  const rows = () => app.db.write('record_counts').where({ account_id: account.accountId })
  await rows().where({ list: 'participants', value: 'active' }).increment('records', 5)
  await rows().where({ list: 'events' }).delete()
  const repair = { account_id: account.accountId }
  expect(await repairCounts(app.db, account.accountId)).toEqual([
    { ...repair, list: 'participants', value: 'active', difference: -5 },
    { ...repair, list: 'events', value: 'participant.created', difference: 2 },
  ])
  await expectRightCounts()
  expect(await repairCounts(app.db, account.accountId)).toEqual([])
  expect((await client.get('/events')).body.meta.total).toBe(2)
})

test.runIf(onPostgres)(
  'a webhook is deleted while its counts are added up: nothing is left of them',
  async () => {
    const tenant = await newTenant(app)
    const webhook_id = await tenant.subscribe('http://127.0.0.1:1/')
    const row = { id: randomUUID(), webhook_id, event_type: 'task.created', body: '{}' }
    const times = { state: 'delivered', attempts: 1, created_at: 1, updated_at: 1 }
    await tenant.write((scope) => scope.insert('deliveries', { ...row, ...times }))
    const adding = await app.db.write.transaction()
    await adding.raw('select add_up_record_counts(?, ?)', [tenant.scope.accountId, 'deliveries'])
    await tenant.write((scope) => scope.rows('deliveries').delete())
    const deletion = tenant.write((scope) => scope.rows('webhooks').delete())
    await until('the deletion waits', async () => {
      const waiting = app.db.read('pg_stat_activity').whereLike('query', 'delete from "webhooks"%')
      return (await waiting.where({ wait_event_type: 'Lock' }).first('pid')) !== undefined
    })
    await adding.commit()
    await deletion
    await expectRightCounts()
  },
)
