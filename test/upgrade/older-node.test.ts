/** An upgrade without downtime: a node of the previous release serves and delivers while the new
 *  version migrates the database and starts beside it. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { newMuster, PASSWORD } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { startLoad } from '../crash/load.ts'
import { newDatabase, type TestDatabase, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { databaseOptions, withDb } from './muster-database.ts'

/** The commit of release 1.1.0. */
const RELEASE = '1e30d25d3c07926913149afa1553f0a91152a822'
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SETTINGS = {
  RATE_LIMIT_PER_MINUTE: '1000000',
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
}

const isPostgres = inject('database') === 'postgres'
const hasRelease = isPostgres && hasCommit(RELEASE)
if (isPostgres && !hasRelease)
  console.log(`The test of an older node is skipped: the history of Git does not have ${RELEASE}.`)

// In embedded mode there is one node.
test.runIf(hasRelease)(
  'an upgrade under load: no request to the older or the newer node fails, and every delivery arrives',
  async () => {
    await using checkout = await checkOut(RELEASE)
    await using database = await newDatabase()
    await using muster = await newMuster()
    await using receiver = await startReceiver({ validate: false })
    const environment = { ...database.environment, ...SETTINGS }

    const { bin, lists } = checkout
    const useAll = (url: string): Promise<void> => useAllResources({ url, token, lists })
    const runOlder = async (...args: string[]): Promise<void> => {
      expect(await muster.run(args, { bin, environment })).toMatchObject({ status: 0 })
    }
    const older = await startServing(muster, { bin, environment })
    const { account_id: accountId = '', token = '' } = older.ready.first_account ?? {}
    const webhook = ['--account', accountId, '--url', receiver.url, '--events', '*']
    await runOlder('webhook', 'create', ...webhook)
    const olderLoad = startLoad(older.ready.url, token)

    expect(await muster.run(['migrate'], { environment })).toMatchObject({ status: 0 })
    await useAll(older.ready.url)
    const account = ['--name', 'Acme', '--email', 'ann@example.com', '--password', PASSWORD]
    await runOlder('account', 'create', ...account)
    const newer = await startServing(muster, { environment })
    const newLoad = startLoad(newer.ready.url, token)
    for (const { ready } of [older, newer]) await useAll(ready.url)
    await until('the older node is ready', async () => {
      return (await fetch(`${older.ready.url}/readyz`)).ok
    })
    const successes = await olderLoad.stop()
    older.process.kill('SIGTERM')
    expect(await older.ended).toMatchObject({ status: 0 })
    await useAll(newer.ready.url)

    const newSuccesses = await newLoad.stop()
    expect([...olderLoad.failures, ...newLoad.failures]).toEqual([])
    const delivered = await listDelivered(database)
    const arrived = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))
    expect(delivered.filter(({ id }) => !arrived.has(id))).toEqual([])
    // Half of the requests are creates, and each of them causes a delivery.
    expect(delivered.length).toBeGreaterThan((successes + newSuccesses) / 2)
    newer.process.kill('SIGTERM')
    expect(await newer.ended).toMatchObject({ status: 0 })
  },
  180_000,
)

function hasCommit(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

interface Checkout extends AsyncDisposable {
  bin: string
  /** The paths of the list operations in its contract. */
  lists: string[]
}

/** The files of the commit, with the packages of this checkout. */
async function checkOut(commit: string): Promise<Checkout> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-older-'))
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const contract = JSON.parse(await readFile(join(folder, 'generated/openapi.json'), 'utf8'))
  const paths = Object.entries<object>(contract.paths)
  return {
    bin: join(folder, 'bin/muster.js'),
    lists: paths
      .filter(([path, item]) => 'get' in item && !path.includes('{'))
      .map(([path]) => path),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

interface Use {
  url: string
  token: string
  /** The paths of all list operations. */
  lists: string[]
}

/** Creates, updates and lists records of every resource through the node at `url`. */
async function useAllResources({ url, token, lists }: Use): Promise<void> {
  const call = async (method: string, path: string, body?: object): Promise<{ id: string }> => {
    const response = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    expect(`${method} ${path} ${response.status} ${response.ok ? '' : text}`).toMatch(/ 20\d $/)
    return JSON.parse(text || '{}')
  }
  const post = (path: string, body: object) => call('POST', `/public/v1${path}`, body)
  const { id: participant_id } = await post('/participants', { full_name: 'Ada Lovelace' })
  const { id: task_id } = await post('/tasks', { title: 'Call', participant_id })
  const { id: job_id } = await post('/jobs', { title: 'Interpreter', status: 'open' })
  await post('/job-applications', { job_id, participant_id })
  await post('/payments', { participant_id, task_id, amount_minor: 100, currency: 'EUR' })
  await post('/exports', { resource: 'tasks', format: 'csv' })
  await call('PATCH', `/public/v1/tasks/${task_id}`, { status: 'completed' })
  for (const path of lists) await call('GET', path)
}

/** The deliveries, once all of them have been delivered. */
async function listDelivered(database: TestDatabase): Promise<{ id: string }[]> {
  return withDb(databaseOptions(database), async ({ read }) => {
    await until('all are delivered', async () => {
      return (await read('deliveries').whereNot({ state: 'delivered' })).length === 0
    })
    return read('deliveries').select('id')
  })
}
