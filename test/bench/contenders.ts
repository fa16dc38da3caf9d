/** The programs that `changes` compares. Each has processes and a PostgreSQL server of its own, so
 *  that its counters contain nothing of the others. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { BareChanges, BareStore } from './bare-changes.ts'
import { startChild } from './child.ts'
import { type Counters, countSocketWrites, startCounters } from './counters.ts'
import { startService } from './service.ts'
import * as ownSetUp from './set-up.ts'

export interface Contender {
  name: string
  /** Creates participants. */
  url: string
  /** The key of an account with one webhook. */
  token: string
  tokenWithoutWebhook: string
  counters(): Promise<Counters>
  analyze(): Promise<void>
  countSocketWrites(work: () => Promise<unknown>): Promise<number | undefined>
}

export interface Contenders extends AsyncDisposable {
  /** Muster is the first. */
  list: Contender[]
}

type SetUp = typeof ownSetUp

interface Installation {
  environment: ownSetUp.Environment
  accountId: string
  token: string
  tokenWithoutWebhook: string
}

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

  async function install(setUp: SetUp): Promise<Installation> {
    const databases = starting.use(await ownSetUp.openDatabases([database], ownSetUp.STATISTICS))
    const environment = await databases.newEnvironment(database)
    const endpoint = `${origins[list.length]}/webhooks`
    const accounts = await setUp.withRecords(environment, async (trx, config) => {
      const { scope, token } = await setUp.newAccount(trx)
      await setUp.addWebhooks(scope, [endpoint], config)
      const other = await setUp.newAccount(trx)
      return { accountId: scope.accountId, token, tokenWithoutWebhook: other.token }
    })
    return { environment, ...accounts }
  }

  async function add(
    name: string,
    { environment, token, tokenWithoutWebhook }: Installation,
    { url, pid }: { url: string; pid: number },
  ): Promise<void> {
    const counters = starting.use(await startCounters(pid, environment.DATABASE_URL))
    list.push({
      name,
      url,
      token,
      tokenWithoutWebhook,
      counters: counters.read,
      analyze: counters.analyze,
      countSocketWrites: (work) => countSocketWrites(pid, work),
    })
  }

  async function addMuster(name: string, setUp: SetUp, checkout?: string): Promise<void> {
    const installation = await install(setUp)
    const service = await startService(installation.environment, { checkout })
    const { port, pid } = starting.use(service)
    await add(name, installation, { url: `http://127.0.0.1:${port}/public/v1/participants`, pid })
  }

  async function addBare(name: string, store: BareStore): Promise<void> {
    const installation = await install(ownSetUp)
    const child = starting.use(startChild<BareChanges>('bare-changes.ts'))
    const { environment, accountId } = installation
    const url = await child.call('start', store, environment.DATABASE_URL ?? '', accountId)
    await add(name, installation, { url, pid: await child.call('pid') })
  }

  await addMuster('Muster', ownSetUp)
  if (before !== undefined) await addMuster('before', await importSetUp(before), resolve(before))
  if (database === 'postgres')
    for (const [name, store] of Object.entries(BARE_STORES)) await addBare(name, store)
  const started = starting.move()
  return { list, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** The set-up of another checkout, which has the migrations of its version. */
function importSetUp(checkout: string): Promise<SetUp> {
  return import(pathToFileURL(resolve(checkout, 'test/bench/set-up.ts')).href)
}
