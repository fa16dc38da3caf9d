/** `muster account delete` beside a running service. */
import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it } from 'vitest'
import { createFirstAccount } from '../../auth/first-account.ts'
import { ERASED_TABLES } from '../../records/account-erasure.ts'
import { deleteAccount } from '../../records/account-suspension.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { readExpectedSchema } from '../../records/database/schema.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { holdNotices, storeDigestAt } from '../../records/notices.ts'
import { setQuota } from '../../records/quotas.ts'
import { readConfig } from '../../server/config.ts'
import { selectFailedDeliveries, startBulkJob } from '../../webhooks/bulk.ts'
import { newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { linkIn, newConsoleUser, visitor } from '../console/visitors.ts'
import { newDatabase, startApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import { createOneOfEach } from '../resources.ts'
import { newSubscriber, type Subscriber } from '../webhooks/harness.ts'

/** For each table without `account_id`, the condition for the rows of an account. */
const ROWS_OF_ACCOUNT: Record<string, string> = {
  attempt_counts: 'webhook_id in (select id from webhooks where account_id = ?)',
  webhook_health: 'webhook_id in (select id from webhooks where account_id = ?)',
}

async function listTablesWithAccountId(db: Db): Promise<string[]> {
  const schema = await readExpectedSchema(db.dialect)
  return Object.keys(schema).filter((table) => 'account_id' in (schema[table]?.columns ?? {}))
}

/** The number of rows of an account by table. */
async function countRows(db: Db, accountId: string): Promise<Record<string, number>> {
  const count = async (table: string): Promise<number> => {
    const where = ROWS_OF_ACCOUNT[table] ?? 'account_id = ?'
    const [row] = await db.read(table).whereRaw(where, [accountId]).count({ rows: '*' })
    return Number(row?.rows)
  }
  const tables = [...(await listTablesWithAccountId(db)), ...Object.keys(ROWS_OF_ACCOUNT)]
  return Object.fromEntries(
    await Promise.all(tables.map(async (table) => [table, await count(table)])),
  )
}

/** An account with rows in every table. */
async function newFullAccount(app: TestApp): Promise<Subscriber & { account: TestAccount }> {
  const account = await app.newAccount()
  const subscriber = await newSubscriber({ ...app, newAccount: async () => account })
  const { tenant, webhookId } = subscriber
  const client = app.as(account)
  const ids = await createOneOfEach(client)
  await until('the test event was attempted', async () => {
    const { state } = await tenant.find(ids.delivery ?? '')
    return state !== 'pending'
  })
  // Its next attempts would add rows during the test.
  await client.delete(`/webhooks/${ids.webhook}`)
  const headers = { 'Idempotency-Key': randomUUID() }
  await client.post('/participants', { full_name: 'Ada', tags: ['vip'] }, headers)
  const owner = await visitor(app, account)
  const invited = await newConsoleUser(app, account.accountId)
  linkIn(await owner.post(`/people/${invited.userId}/link`))
  await tenant.write((scope) => setQuota(scope, 'records', 1_000))
  const notice = { type: 'muster.import_ended', resourceId: randomUUID(), text: 'Ended' } as const
  await tenant.write(async (scope) => {
    await holdNotices(scope, [{ ...notice, webhookId }])
    // So the notice waits for an hour.
    await storeDigestAt(scope, webhookId, new Date())
  })
  const selection = selectFailedDeliveries(webhookId, null, { since: new Date(0) }, new Date())
  await startBulkJob(
    app.db,
    account.accountId,
    { selection, rate: 50, createdBy: account.userId },
    new Date(),
  )
  for (const list of ['exports', 'imports'])
    await until(`the ${list} are complete`, async () =>
      (await client.get(`/${list}`)).body.data.every(
        ({ status }: { status: string }) => status === 'completed',
      ),
    )
  await until('everything is delivered', async () => {
    const rows: { state: string }[] = await app.db
      .read('deliveries')
      .where({ webhook_id: webhookId })
    return rows.every(({ state }) => state === 'delivered')
  })
  await until('all attempts are counted', async () => {
    const succeeded = tenant.scope.rows('attempts').where({ outcome: 'success' })
    const [attempts] = await succeeded.count({ total: '*' })
    const counts = app.db.read('attempt_counts').where({ webhook_id: webhookId })
    const [sums] = await counts.sum({ succeeded: 'succeeded' })
    // Each attempt counts in its 5 minutes and in its hour.
    return Number(sums?.succeeded) === 2 * Number(attempts?.total)
  })
  const last = randomUUID()
  await client.get('/me', { 'X-Request-Id': last })
  await until('all requests are logged', async () =>
    app.db.read('request_log').where({ request_id: last }).first('id'),
  )
  return { ...subscriber, account }
}

describe('account delete', () => {
  it('erases every row of the account and no other, and keeps one entry without personal data', async () => {
    await using app = await startApp({ role: 'all' })
    await using muster = await newMuster()
    const options = { environment: app.database.environment }
    await using gone = await newFullAccount(app)
    await using other = await newFullAccount(app)
    expect(
      (await listTablesWithAccountId(app.db)).concat(Object.keys(ROWS_OF_ACCOUNT)).toSorted(),
    ).toEqual(ERASED_TABLES.toSorted())
    const [before, otherBefore] = [
      await countRows(app.db, gone.account.accountId),
      await countRows(app.db, other.account.accountId),
    ]
    for (const [table, rows] of Object.entries(before)) expect(rows, table).toBeGreaterThan(0)

    const { accountId } = gone.account
    const started = Date.now()
    const deletion = await muster.json(
      ['account', 'delete', accountId, '--confirm', 'Test account'],
      options,
    )
    expect(deletion).toMatchObject({ id: accountId, completed_at: expect.any(String) })
    expect(Date.parse(deletion.requested_at)).toBeGreaterThanOrEqual(started - 1_000)
    expect(await countRows(app.db, accountId)).toEqual(
      Object.fromEntries(Object.keys(before).map((table) => [table, 0])),
    )
    expect(await app.db.read('accounts').where({ id: accountId })).toEqual([])
    expect(await countRows(app.db, other.account.accountId)).toEqual(otherBefore)
    expect((await app.as(gone.account).get('/me')).status).toBe(401)
    expect((await app.as(other.account).get('/me')).status).toBe(200)

    const entries = await app.db.read('account_deletions')
    expect(entries).toEqual([
      {
        id: accountId,
        requested_at: Date.parse(deletion.requested_at),
        removed_rows: deletion.removed_rows,
        completed_at: Date.parse(deletion.completed_at),
      },
    ])
    const rows = Object.values(before).reduce((sum, count) => sum + count, 0)
    // The suspension has removed the sessions before. The row of the account itself counts, too. The counts of
    // its records do not.
    const { sessions = 0, record_counts: counts = 0 } = before
    expect(deletion.removed_rows).toBe(rows - sessions - counts + 1)
    expect(await muster.json(['account', 'list', '--deleted'], options)).toEqual([deletion])
    // A repeated command reports the same.
    expect(await muster.json(['account', 'delete', accountId], options)).toEqual(deletion)
  })

  it('refuses without the name of the account; without a worker the account stays suspended', async () => {
    await using app = await startApp({ role: 'api' })
    await using muster = await newMuster()
    const run = (...args: string[]) =>
      muster.run(['account', ...args], { environment: app.database.environment })
    const account = await app.newAccount()
    const { accountId } = account
    for (const confirm of [[], ['--confirm', 'test account']])
      expect(await run('delete', accountId, ...confirm)).toEqual({
        status: 1,
        stdout: '',
        stderr:
          'This erases the account Test account with everything in it, and cannot be undone. ' +
          "To confirm, add --confirm 'Test account'\n",
      })
    expect((await app.as(account).get('/me')).status).toBe(200)

    const { status, stdout } = await run(
      'delete',
      accountId,
      '--confirm',
      'Test account',
      '--no-wait',
    )
    expect(status).toBe(0)
    expect(stdout).toContain(
      `The account ${accountId} is suspended, and 0 of its rows are erased so far.`,
    )
    expect((await app.as(account).get('/me')).status).toBe(401)
    expect((await run('list')).stdout).toContain('deleting since')
    expect((await run('resume', accountId)).stderr).toBe(
      'The account is being deleted, which cannot be undone.\n',
    )
  })
})

const PARTICIPANTS = 10_000

/** Adds rows that take some seconds to erase. */
async function addParticipants(db: Db, accountId: string): Promise<void> {
  const participants = Array.from({ length: PARTICIPANTS }, (_, index) => ({
    id: randomUUID(),
    full_name: `Person ${index}`,
    status: 'active',
    tags: '[]',
    search_text: '',
    created_at: index,
    updated_at: index,
  }))
  await transaction(db, (trx) => writeScope(trx, accountId).insert('participants', participants))
}

it('account delete: Ctrl-C ends only the command, and after SIGKILL the next start continues', async () => {
  await using database = await newDatabase(inject('database'))
  await using muster = await newMuster()
  const environment: Record<string, string> = database.environment
  const first = await startServing(muster, { environment })
  const { account_id: id = '' } = first.ready.first_account ?? {}
  const db = openDatabase(readConfig(environment).database)
  const deletion = async () => (await db.read('account_deletions').where({ id }))[0]
  try {
    await addParticipants(db, id)
    const command = muster.start(['account', 'delete', id, '--confirm', 'My account'], {
      environment,
    })
    await until('progress is shown', () => /Erased \d+ rows\./.test(command.output.stdout), 30_000)
    command.process.kill('SIGINT')
    const { status, stdout } = await command.ended
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringContaining('Running workers continue.'),
    })
    const { removed_rows: atCtrlC } = await deletion()
    await until('workers continue', async () => (await deletion()).removed_rows > atCtrlC)
    first.process.kill('SIGKILL')
    await first.ended
    const { removed_rows: atKill, completed_at: completedAt } = await deletion()
    expect([completedAt, atKill < PARTICIPANTS]).toEqual([null, true])

    const again = await startServing(muster, { environment })
    const done = await until(
      'the next start continues',
      async () => {
        const row = await deletion()
        return row.completed_at !== null && row
      },
      60_000,
    )
    expect(done.removed_rows).toBeGreaterThan(PARTICIPANTS)
    expect(Object.values(await countRows(db, id)).every((rows) => rows === 0)).toBe(true)
    // A later start does not create a first account again.
    expect(await createFirstAccount(db, new Date())).toBeUndefined()
    again.process.kill('SIGKILL')
    await again.ended
  } finally {
    await db.close()
  }
}, 120_000)

it.skipIf(inject('database') !== 'postgres')(
  'account delete: erases the account also when PostgreSQL needs longer than the limit of a statement',
  async () => {
    const environment = { DATABASE_STATEMENT_TIMEOUT_MS: '500' }
    await using app = await startApp({ role: 'all', environment })
    const { accountId } = await app.newAccount()
    // With large tables the deletion takes long, because PostgreSQL looks for references to the
    // account in each of them. Here a trigger takes as long.
    await app.db.write.raw(`create function wait() returns trigger language plpgsql
      as 'begin perform pg_sleep(2); return old; end'`)
    await app.db.write.raw(
      'create trigger slow before delete on accounts for each row execute function wait()',
    )
    await transaction(app.db, (trx) => deleteAccount(writeScope(trx, accountId), new Date()))
    const isErased = async () => {
      const row = await app.db.read('account_deletions').where({ id: accountId }).first()
      return row.completed_at !== null
    }
    await until('the account is erased', isErased)
    expect(await app.db.read('accounts').where({ id: accountId })).toEqual([])
  },
)
