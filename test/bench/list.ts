/** The first 25 of 10,000 participants, compared with bare Koa and the same two statements. Then the
 *  last 25 by cursor, compared with the first. */
import { startChild } from './child.ts'
import { load } from './load.ts'
import { comparison, type Result, type Round } from './result.ts'
import type { Server } from './server.ts'
import { addParticipants, type Bench, newAccount, withRecords } from './set-up.ts'

const PARTICIPANTS = 10_000
const PAGE_SIZE = 25
const CONNECTIONS = 8

export async function list(bench: Bench): Promise<Result[]> {
  await using service = startChild<Server>('server.ts')
  await using bareKoa = startChild<Server>('server.ts')
  const environment = await bench.newEnvironment()
  const { accountId, token } = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    await addParticipants(scope, PARTICIPANTS)
    return { accountId: scope.accountId, token }
  })
  const serviceUrl = await service.call('start', 'service', environment, accountId)
  const bareUrl = await bareKoa.call('start', 'firstPage', environment, accountId)
  const path = '/public/v1/participants'
  const measure = async (url: string): Promise<number> => {
    const seconds = bench.quick ? 0.5 : 2
    const { perSecond } = await load({ url, token, connections: CONNECTIONS, seconds })
    return perSecond
  }

  const rounds: Round[] = []
  // The first round warms up.
  for (let round = 0; round <= (bench.quick ? 2 : 9); round++) {
    bench.progress(`round ${round}`)
    rounds.push({
      muster: await measure(serviceUrl + path),
      reference: await measure(bareUrl + path),
    })
  }
  const firstPage = `${serviceUrl}${path}?sort=-updated_at`
  const lastPage = `${firstPage}&page[after]=${await readLastCursor(firstPage, token)}`
  const depths: Round[] = []
  for (let round = 0; round <= (bench.quick ? 2 : 9); round++) {
    bench.progress(`round ${round} of the last page`)
    depths.push({ muster: await measure(lastPage), reference: await measure(firstPage) })
  }
  return [
    comparison(
      { what: 'list 25 of 10,000', unit: '/s', goal: { atLeast: 0.7 } },
      'ratio',
      'bare Koa',
      rounds.slice(1),
    ),
    comparison(
      { what: 'the last 25 of 10,000, by cursor', unit: '/s', goal: { atLeast: 0.9 } },
      'ratio',
      'the first 25',
      depths.slice(1),
    ),
  ]
}

/** The cursor of the last page but one. */
async function readLastCursor(firstPage: string, token: string): Promise<string> {
  const response = await fetch(`${firstPage}&page[number]=${PARTICIPANTS / PAGE_SIZE - 1}`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  const { meta } = (await response.json()) as { meta: { next_cursor: string } }
  return meta.next_cursor
}
