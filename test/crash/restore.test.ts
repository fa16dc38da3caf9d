/** A restore drill: back up under load, restore elsewhere with deliveries paused, compare, end the
 *  pause. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { expect, inject, test } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { type Muster, newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { readRunbook } from '../deploy/machine.ts'
import { newDatabase, type TestDatabase, until } from '../helpers.ts'
import { startPostgres, type TestPostgres } from '../postgres.ts'
import { startReceiver } from '../receiver.ts'
import { databaseOptions } from '../upgrade/muster-database.ts'
import { startLoad } from './load.ts'

const run = promisify(execFile)

const SETTINGS = {
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  RATE_LIMIT_PER_MINUTE: '1000000',
  // Each delivery is pending at the time of the backup, and overdue when the copy starts.
  WEBHOOK_RETRY_DELAYS: Array(9).fill(2).join(','),
}
/** Longer than a worker needs to lease an overdue attempt. */
const NOTHING_MS = 2_000

interface Drill extends AsyncDisposable {
  source: TestDatabase
  target: TestDatabase
  /** Backs up the source while a service runs on it. Returns a function that restores the backup to
   *  the target. */
  backUp(muster: Muster): Promise<() => Promise<void>>
}

async function newSqliteDrill(): Promise<Drill> {
  const [source, target] = [await newDatabase('sqlite'), await newDatabase('sqlite')]
  const directory = await mkdtemp(join(tmpdir(), 'muster-backup-'))
  const [from, to] = [source, target].map(({ environment }) =>
    'DATA_DIR' in environment ? environment.DATA_DIR : '',
  ) as [string, string]
  return {
    source,
    target,
    async backUp(muster) {
      const file = join(directory, 'backup.sqlite')
      const { environment } = source
      expect(await muster.run(['backup', file], { environment })).toMatchObject({ status: 0 })
      return async () => {
        await copyFile(file, join(to, 'muster.sqlite'))
        await copyFile(join(from, 'secret.key'), join(to, 'secret.key'))
      }
    },
    async [Symbol.asyncDispose]() {
      await source[Symbol.asyncDispose]()
      await target[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

/** pg_dump refuses servers of later versions, so the drill runs the server of the same package. */
const DEBIAN = '/usr/lib/postgresql'
const programFolder = existsSync(DEBIAN)
  ? readdirSync(DEBIAN)
      .map((version) => join(DEBIAN, version, 'bin'))
      .find((folder) => ['postgres', 'pg_dump'].every((name) => existsSync(join(folder, name))))
  : undefined

async function newPostgresDrill(folder: string): Promise<Drill> {
  const server: TestPostgres = await startPostgres({ programs: folder })
  const newServerDatabase = async (): Promise<TestDatabase & { url: string }> => {
    const url = await server.createDatabase()
    const key = 'a secret key that only tests would ever use'
    return {
      url,
      environment: { DATABASE_URL: url, SECRET_KEY: key },
      [Symbol.asyncDispose]: async () => undefined,
    }
  }
  const [source, target] = [await newServerDatabase(), await newServerDatabase()]
  const directory = await mkdtemp(join(tmpdir(), 'muster-backup-'))
  const runbook = await readRunbook()
  /** Runs the commands of the runbook that begin with `program`. */
  const follow = async (program: string, DATABASE_URL: string): Promise<void> => {
    const [block] = runbook.filter(({ commands }) => commands.startsWith(program))
    const env = { PATH: `${folder}:${process.env.PATH}`, DATABASE_URL }
    await run('sh', ['-euc', block?.commands ?? 'false'], { cwd: directory, env })
  }
  return {
    source,
    target,
    async backUp() {
      await follow('pg_dump', source.url)
      return () => follow('pg_restore', target.url)
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      await rm(directory, { recursive: true })
    },
  }
}

interface Contents {
  participants: number
  events: number
  attempts: number
  /** The IDs of the deliveries that have not arrived. */
  pending: string[]
}

async function readContents(database: TestDatabase): Promise<Contents> {
  const db = openDatabase(databaseOptions(database))
  try {
    const [participants, events, attempts] = await Promise.all(
      ['participants', 'events', 'attempts'].map(async (table) =>
        Number((await db.read(table).count({ rows: '*' }).first())?.rows),
      ),
    )
    const pending: { id: string }[] = await db
      .read('deliveries')
      .whereNot({ state: 'delivered' })
      .orderBy('id')
    return {
      participants: participants ?? 0,
      events: events ?? 0,
      attempts: attempts ?? 0,
      pending: pending.map(({ id }) => id),
    }
  } finally {
    await db.close()
  }
}

const isPostgres = inject('database') === 'postgres'
const isSkipped = isPostgres && programFolder === undefined && !process.env.REQUIRE_PG_DUMP
if (isSkipped)
  console.log(`Skipped: the restore drill needs the Debian package postgresql in ${DEBIAN}.`)

test.skipIf(isSkipped)(
  'a backup under load is restored with deliveries paused: every pending delivery arrives once, and only after unpause',
  { timeout: 180_000 },
  async () => {
    await using drill = isPostgres
      ? await newPostgresDrill(programFolder ?? '')
      : await newSqliteDrill()
    await using muster = await newMuster()
    let isBroken = true
    await using receiver = await startReceiver({ answers: () => (isBroken ? 503 : 204) })
    const serve = (environment: Record<string, string>) =>
      startServing(muster, { environment: { ...SETTINGS, ...environment } })

    const first = await serve({ ...drill.source.environment })
    const { account_id: accountId = '', token = '' } = first.ready.first_account ?? {}
    const { secret } = await muster.json(
      ['webhook', 'create', '--account', accountId, '--url', receiver.url, '--events', '*'],
      { environment: { ...SETTINGS, ...drill.source.environment } },
    )
    const load = startLoad(first.ready.url, token)
    await receiver.received(30, 60_000)
    const before = await readContents(drill.source)
    const restore = await drill.backUp(muster)
    expect(await load.stop()).toBeGreaterThan(before.participants)
    expect(load.failures).toEqual([])
    first.process.kill('SIGKILL')
    await first.ended
    await restore()

    receiver.requests.length = 0
    isBroken = false
    const restored = await readContents(drill.target)
    expect(restored.participants).toBeGreaterThanOrEqual(before.participants)
    expect(restored.events).toBe(restored.participants)
    expect(restored.pending).toHaveLength(restored.participants)
    expect(restored.pending).toEqual(expect.arrayContaining(before.pending))

    const { environment } = drill.target
    const second = await serve({ ...environment, DELIVERIES: 'paused' })
    await delay(NOTHING_MS)
    expect(receiver.requests).toHaveLength(0)
    expect(await readContents(drill.target)).toEqual(restored)
    const retry = await muster.run(['deliveries', 'retry', restored.pending[0] ?? ''], {
      environment,
    })
    expect(retry).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('All deliveries are paused.'),
    })

    await muster.json(['deliveries', 'unpause'], { environment })
    await until(
      'everything has arrived',
      async () => (await readContents(drill.target)).pending.length === 0,
      60_000,
    )
    const ids = receiver.requests.map(({ headers }) => String(headers['webhook-id']))
    expect(ids.sort()).toEqual(restored.pending)
    for (const { headers, body } of receiver.requests)
      new Webhook(secret).verify(String(body), headers as Record<string, string>)
    second.process.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ status: 0 })
  },
)
