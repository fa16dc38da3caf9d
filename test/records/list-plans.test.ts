/** What PostgreSQL reads for a filter in an account with many records, beside another such account. */
import { expect, inject, test } from 'vitest'
import { type Client, sharedApp } from '../helpers.ts'
import { withRowsRead } from './plans.ts'

const RECORDS = 20_000
/** Far more than the indexes need for 26 rows, and far less than the records of an account. */
const MAX_ROWS_READ = 2_000
const SECOND_MS = 1_000
const newestAt = Date.now()
const startAt = newestAt - RECORDS * SECOND_MS
const isoAt = (ms: number): string => new Date(ms).toISOString()
const app = sharedApp()

/** One record a second, until now. Ten old ones were updated a minute ago, and the last ten have no participant. */
const INSERT = `
  insert into tasks (id, account_id, title, description, status, participant_id, external_id, created_at, updated_at)
  select (lpad(to_hex(at), 12, '0') || '7' || lpad(to_hex(i % 4096), 3, '0') || '8' || substr(md5(account || i), 1, 15))::uuid,
    account::uuid, 'Task ' || i, '', 'open', case when i <= :records - 10 then participant::uuid end, 'ext-' || i, at,
    case when i % 2000 = 1 then :newestAt::bigint - 60000 else at end
  from (values (:account, :participant)) as a (account, participant), generate_series(1, :records) as i,
    lateral (select :startAt::bigint + i * 1000 as at) as times`

/** The most rows that a statement of the request reads. */
async function findMostRead(
  client: Client,
  path: string,
  maxTotal = MAX_ROWS_READ,
): Promise<number> {
  const { result, statements } = await withRowsRead(
    app.db,
    { statement: /from tasks/, node: /Scan$/ },
    () => client.get(path),
  )
  const { total } = result.body.meta
  expect(statements.some(({ sql }) => /order by/.test(sql))).toBe(true)
  expect(total).toBeGreaterThan(0)
  expect(total).toBeLessThan(maxTotal)
  return Math.max(...statements.map(({ rowsRead }) => rowsRead))
}

test.runIf(inject('database') === 'postgres')(
  'listTasks: an index answers each filter',
  async () => {
    const accounts = [await app.newAccount(), await app.newAccount()] as const
    for (const account of accounts) {
      const { body } = await app.as(account).post('/participants', { full_name: 'Ada' })
      const values = { account: account.accountId, participant: body.id, records: RECORDS }
      await app.db.write.raw(INSERT, { ...values, newestAt, startAt })
    }
    await app.db.write.raw('vacuum analyze tasks')
    const client = app.as(accounts[0])
    const { data } = (await client.get('/tasks?page[size]=1')).body
    const late = isoAt(newestAt - 300 * SECOND_MS)
    const early = isoAt(startAt + 300 * SECOND_MS)
    const filters = [
      ...['created_from', 'created_after', 'updated_from', 'updated_after'].map((name) => [
        name,
        late,
      ]),
      ...['created_until', 'created_before', 'updated_until'].map((name) => [name, early]),
      ['id', data[0].id],
      ['external_id', 'ext-17,ext-18'],
      ['participant_id', 'null'],
    ]
    const read = new Map<string, number>()
    for (const [name = '', value] of filters)
      read.set(name, await findMostRead(client, `/tasks?filter[${name}]=${value}`))
    expect([...read].filter(([, rows]) => rows > MAX_ROWS_READ)).toEqual([])
  },
)

test.runIf(inject('database') === 'postgres')(
  'listTasks: reads no rows of an account whose rows come first',
  async () => {
    const insert = async (records: number, from: number): Promise<Client> => {
      const account = await app.newAccount()
      const client = app.as(account)
      const { body } = await client.post('/participants', { full_name: 'Ada' })
      const values = { account: account.accountId, participant: body.id, records }
      await app.db.write.raw(INSERT, { ...values, newestAt, startAt: from })
      return client
    }
    // PostgreSQL prefers the primary key only if nearly all rows are of the account.
    await app.db.write('tasks').delete()
    const firstAt = Date.parse('2001-01-01')
    await insert(2 * MAX_ROWS_READ, firstAt)
    const client = await insert(4 * RECORDS, firstAt + RECORDS * SECOND_MS)
    await app.db.write.raw('vacuum analyze tasks')
    expect(await findMostRead(client, '/tasks', Number.POSITIVE_INFINITY)).toBeLessThan(100)
  },
)
