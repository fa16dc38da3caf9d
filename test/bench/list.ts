/** The first 25 of 10,000 participants, compared with bare Koa and the same two statements. */
import { startChild } from './child.ts'
import { load } from './load.ts'
import { comparison, type Result, type Round } from './result.ts'
import type { Server } from './server.ts'
import { addParticipants, type Bench, newAccount, withRecords } from './set-up.ts'

const PARTICIPANTS = 10_000
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
  const measure = async (origin: string): Promise<number> => {
    const url = `${origin}/public/v1/participants`
    const seconds = bench.quick ? 0.5 : 2
    const { perSecond } = await load({ url, token, connections: CONNECTIONS, seconds })
    return perSecond
  }

  const rounds: Round[] = []
  // The first round warms up.
  for (let round = 0; round <= (bench.quick ? 2 : 9); round++) {
    bench.progress(`round ${round}`)
    rounds.push({ muster: await measure(serviceUrl), reference: await measure(bareUrl) })
  }
  return [
    comparison(
      { what: 'list 25 of 10,000', unit: '/s', goal: { atLeast: 0.7 } },
      'ratio',
      'bare Koa',
      rounds.slice(1),
    ),
  ]
}
