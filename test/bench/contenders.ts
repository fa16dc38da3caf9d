/** The programs that `changes` compares. Each has processes and a PostgreSQL server of its own, so
 *  that its counters contain nothing of the others. Their databases are new: nothing has analyzed
 *  the tables yet, as in the first minute of a user. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Trx } from '../../records/database/transaction.ts'
import type { Config } from '../../server/config.ts'
import type { BareChanges, BareStore } from './bare-changes.ts'
import { startChild } from './child.ts'
import { type Counters, countSocketWrites, startCounters } from './counters.ts'
import { startService } from './service.ts'
import type { DatabaseKind } from './set-up.ts'
import * as ownSetUp from './set-up.ts'

export type ContenderName = 'Muster' | 'before' | keyof typeof BARE_STORES

export interface Contender {
  name: ContenderName
  /** Creates participants. */
  url: string
  /** The key of an account with one webhook. */
  token: string
  tokenWithoutWebhook: string
  counters(): Promise<Counters>
  countSocketWrites(work: () => Promise<unknown>): Promise<number | undefined>
}

export interface Contenders extends AsyncDisposable {
  /** Muster is the first. */
  list: Contender[]
}

type SetUp = typeof ownSetUp

const BARE_STORES = {
  'bare Koa, four inserts': 'fourInserts',
  'bare Koa, one statement': 'oneStatement',
} satisfies Record<string, BareStore>

/** Each contender delivers to an origin of its own. */
export async function startContenders(
  { database, before }: ownSetUp.Bench,
  origins: string[],
): Promise<Contenders> {
  await using starting = new AsyncDisposableStack()
  const list: Contender[] = []

  async function newEnvironment(kind: DatabaseKind): Promise<ownSetUp.Environment> {
    const databases = starting.use(await ownSetUp.openDatabases([kind], ownSetUp.STATISTICS))
    return databases.newEnvironment(kind)
  }

  const endpoint = (): string => `${origins[list.length]}/webhooks`

  async function add(
    contender: Pick<Contender, 'name' | 'url' | 'token' | 'tokenWithoutWebhook'>,
    pid: number,
    { DATABASE_URL }: ownSetUp.Environment,
  ): Promise<void> {
    const counters = starting.use(await startCounters(pid, DATABASE_URL))
    list.push({
      ...contender,
      counters: counters.read,
      countSocketWrites: (work) => countSocketWrites(pid, work),
    })
  }

  async function addMuster(name: ContenderName, setUp: SetUp, checkout?: string): Promise<void> {
    const environment = await newEnvironment(database)
    const addAccounts = async (trx: Trx, config: Config) => {
      const { scope, token } = await setUp.newAccount(trx)
      await setUp.addWebhooks(scope, [endpoint()], config)
      const other = await setUp.newAccount(trx)
      return { token, tokenWithoutWebhook: other.token }
    }
    const tokens = await setUp.withRecords(environment, addAccounts, { analyze: false })
    const { port, pid } = starting.use(await startService(environment, { checkout }))
    const url = `http://127.0.0.1:${port}/public/v1/participants`
    await add({ name, url, ...tokens }, pid, environment)
  }

  async function addBare(name: ContenderName, store: BareStore): Promise<void> {
    const environment = await newEnvironment('postgres')
    const child = starting.use(startChild<BareChanges>('bare-changes.ts'))
    const url = await child.call('start', store, environment.DATABASE_URL ?? '', endpoint())
    const tokens = { token: '', tokenWithoutWebhook: '' }
    await add({ name, url, ...tokens }, await child.call('pid'), environment)
  }

  await addMuster('Muster', ownSetUp)
  if (before !== undefined) await addMuster('before', await importSetUp(before), resolve(before))
  for (const [name, store] of Object.entries(BARE_STORES))
    await addBare(name as keyof typeof BARE_STORES, store)
  const started = starting.move()
  return { list, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** The set-up of another checkout, which has the migrations of its version. */
function importSetUp(checkout: string): Promise<SetUp> {
  return import(pathToFileURL(resolve(checkout, 'test/bench/set-up.ts')).href)
}
