/** A commit whose result does not arrive: the change may have been made, and its 503 says so. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import { FORM_KEY } from '../../web/console/idempotent-form.ts'
import { newMuster } from '../cli/muster.ts'
import { mainText } from '../console/forms.ts'
import { newConsoleUser, PASSWORD, type Visitor, visitor } from '../console/visitors.ts'
import { connectTo } from '../contract/postgres-client.ts'
import {
  type Answer,
  type Client,
  databaseUrlOf,
  newDatabase,
  startApp,
  until,
} from '../helpers.ts'
import { startPostgres } from '../postgres.ts'
import { type CutTime, startTcpProxy } from './proxy.ts'

const onPostgres = inject('database') === 'postgres'

const SEND_AGAIN = 'The change may have been made. Send it again with the same Idempotency-Key.'
const READ_FIRST = 'The change may have been made. Read the record before you send it again.'
const TRY_AGAIN = 'The service is temporarily unavailable. Try again in a few seconds.'

const outcomeOf = ({ status, headers, body }: Answer) => ({
  status,
  outcome: headers.get('x-change-outcome'),
  message: body.message,
})
const unavailable = (outcome: 'none' | 'unknown', message: string) => ({
  status: 503,
  outcome,
  message,
})

const namesOf = async (client: Client): Promise<string[]> =>
  (await client.get('/participants')).body.data.map((one: { full_name: string }) => one.full_name)

/** A node that reaches PostgreSQL through a proxy. */
async function startCuttable() {
  const databaseUrl = databaseUrlOf(await newDatabase())
  const proxy = await startTcpProxy(databaseUrl, 0)
  await until('the proxy listens', () =>
    connectTo(proxy.url).then(
      (probe) => probe.end().then(() => true),
      () => false,
    ),
  )
  const node = await startNode(proxy.url)
  return {
    proxy,
    node,
    async [Symbol.asyncDispose]() {
      await node[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

const startNode = (DATABASE_URL: string, environment = {}) =>
  startApp({
    database: {
      environment: { DATABASE_URL, SECRET_KEY: 'a secret key that only tests would ever use' },
      [Symbol.asyncDispose]: async () => undefined,
    },
    environment,
  })

test.runIf(onPostgres).each<[CutTime, boolean]>([
  ['before', false],
  ['after', true],
])('the connection is lost %s the commit: unknown', async (when, isCommitted) => {
  await using cuttable = await startCuttable()
  const { proxy, node } = cuttable
  const client = await node.newClient()
  const key = { 'Idempotency-Key': 'key-1' }
  proxy.cutCommitOf('With Key', when)
  const create = () => client.post('/participants', { full_name: 'With Key' }, key)
  expect(outcomeOf(await create())).toEqual(unavailable('unknown', SEND_AGAIN))
  const repeated = await create()
  expect([repeated.status, repeated.headers.get('idempotent-replayed')]).toEqual([
    201,
    isCommitted ? 'true' : null,
  ])
  expect(await namesOf(client)).toEqual(['With Key'])

  proxy.cutCommitOf('No Key', when)
  const withoutKey = await client.post('/participants', { full_name: 'No Key' })
  expect(outcomeOf(withoutKey)).toEqual(unavailable('unknown', READ_FIRST))
  expect((await namesOf(client)).includes('No Key')).toBe(isCommitted)

  const path = `/participants/${repeated.body.id}`
  proxy.cutCommitOf(repeated.body.id, when)
  const changed = await client.patch(path, { full_name: 'New' }, key)
  expect(outcomeOf(changed)).toEqual(unavailable('unknown', READ_FIRST))
  expect((await client.get(path)).body.full_name).toBe(isCommitted ? 'New' : 'With Key')

  proxy.cutCommitOf(repeated.body.id, when)
  expect(outcomeOf(await client.delete(path))).toEqual(unavailable('unknown', READ_FIRST))
  expect((await client.get(path)).status).toBe(isCommitted ? 404 : 200)
})

test.runIf(onPostgres)(
  'the connection of a command is lost after the commit: it says so, and exits with 1',
  async () => {
    await using cuttable = await startCuttable()
    const { proxy, node } = cuttable
    const { accountId } = await node.newAccount()
    const { email } = await newConsoleUser(node, accountId)
    await using muster = await newMuster()
    proxy.cutCommitOf('Cut Key', 'after')
    const key = ['--email', email, '--name', 'Cut Key', '--access', 'read_only']
    const { status, stdout, stderr } = await muster.run(['key', 'create', ...key], {
      environment: node.database.environment,
    })
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toContain(
      'The change may have been made. Check before you run the command again.',
    )
    expect(await node.db.read('api_keys').pluck('name')).toContain('Cut Key')
  },
)

test.runIf(onPostgres)('PostgreSQL ends the statement of a change: none', async () => {
  await using database = await newDatabase()
  await using node = await startApp({
    database,
    environment: { DATABASE_LOCK_TIMEOUT_MS: '500' },
  })
  const client = await node.newClient()
  await using admin = await connectTo(databaseUrlOf(database))
  await admin.query('begin; lock table participants in share mode')
  const refused = await client.post('/participants', { full_name: 'Ada' })
  expect(outcomeOf(refused)).toEqual(unavailable('none', TRY_AGAIN))
  await admin.query('rollback')
  expect(await namesOf(client)).toEqual([])
})

test.runIf(onPostgres)(
  'no standby confirms the commit: unknown, also for each repeat of request and form, until one does',
  async () => {
    const server = await startPostgres()
    await using _ = { [Symbol.asyncDispose]: server.stop }
    await using node = await startNode(await server.createDatabase(), {
      DATABASE_STATEMENT_TIMEOUT_MS: '500',
    })
    const account = await node.newAccount()
    const client = node.as(account)
    const user = await visitor(node, account)
    await using admin = await connectTo(server.url('postgres'))
    const setStandby = async (names: string): Promise<void> => {
      await admin.query(`alter system set synchronous_standby_names = '${names}'`)
      await admin.query('select pg_reload_conf()')
    }
    await setStandby('nosuch')
    const create = () =>
      client.post('/participants', { full_name: 'Ada' }, { 'Idempotency-Key': 'key-1' })
    expect(outcomeOf(await create())).toEqual(unavailable('unknown', SEND_AGAIN))
    // PostgreSQL shows the change as soon as it no longer waits.
    await until('the change is visible', async () => (await namesOf(client)).length === 1)
    expect(outcomeOf(await create())).toEqual(unavailable('unknown', SEND_AGAIN))

    const form = { [FORM_KEY]: randomUUID(), name: 'Import', access_level: 'read_only' }
    for (let times = 0; times < 2; times++) {
      const { status, text } = await user.post('/api-keys', form)
      expect([status, mainText(text)]).toEqual([
        503,
        expect.stringContaining('Look at the record before you try again.'),
      ])
    }

    await setStandby('')
    const repeated = await create()
    expect([repeated.status, repeated.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect(await namesOf(client)).toEqual(['Ada'])
    expect((await user.post('/api-keys', form)).to).toMatch(/^\/api-keys\/[0-9a-f-]{36}$/)
  },
)

test.runIf(onPostgres)(
  'a step of the console fails after the commit of the change: unknown',
  async () => {
    await using database = await newDatabase()
    await using node = await startApp({
      database,
      environment: { DATABASE_LOCK_TIMEOUT_MS: '500' },
    })
    const account = await node.newAccount()
    const [user, guest] = [await visitor(node, account), await visitor(node)]
    await using admin = await connectTo(databaseUrlOf(database))
    // No notice and no session can be stored.
    await admin.query('begin; lock table sessions in share mode')
    const changes: [Visitor, string, Record<string, string>][] = [
      [user, '/me', { full_name: 'Ada Lovelace' }],
      [user, '/records/participants/new', { full_name: 'Grace Hopper' }],
      [
        guest,
        '/sign-up',
        {
          account_name: 'Northwind',
          full_name: 'Mara Keller',
          email: 'mara@northwind.example',
          password: PASSWORD,
        },
      ],
    ]
    for (const [visits, path, form] of changes) {
      const { status, text } = await visits.post(path, form)
      expect([path, status, mainText(text)]).toEqual([
        path,
        503,
        expect.stringContaining('Look at the record before you try again.'),
      ])
    }
    await admin.query('rollback')
    expect(await node.db.read('users').pluck('full_name')).toEqual(
      expect.arrayContaining(['Ada Lovelace', 'Mara Keller']),
    )
    expect(await namesOf(node.as(account))).toEqual(['Grace Hopper'])
  },
)

/** The largest file that this process can write. */
function limitFileSize(bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])
}

test.skipIf(onPostgres || process.platform !== 'linux')(
  'the commits of several changes fail with an I/O error: unknown',
  async () => {
    await using node = await startApp()
    const client = await node.newClient()
    const create = (name: string, key?: string) =>
      client.post('/participants', { full_name: name }, key ? { 'Idempotency-Key': key } : {})
    await create('Before')
    limitFileSize(1)
    const answers = await Promise.all([create('Ada', 'key-1'), create('Grace')]).finally(() =>
      limitFileSize('unlimited'),
    )
    expect(answers.map(outcomeOf)).toEqual([
      unavailable('unknown', SEND_AGAIN),
      unavailable('unknown', READ_FIRST),
    ])
    expect((await create('Ada', 'key-1')).status).toBe(201)
    expect((await namesOf(client)).filter((name) => name === 'Ada')).toHaveLength(1)
  },
)

test.skipIf(onPostgres)('the disk is full before the commit: none', async () => {
  await using node = await startApp()
  const client = await node.newClient()
  await node.db.write.raw('pragma max_page_count = 1')
  const note = 'x'.repeat(10_000)
  let refused: Answer
  do refused = await client.post('/tasks', { title: 'Call Ada', description: note })
  while (refused.status === 201)
  expect(outcomeOf(refused)).toEqual(unavailable('none', TRY_AGAIN))
})
