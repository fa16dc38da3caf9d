/** The cost of the contract for each request, compared with the same work written by hand. */
import type { App } from './apps.ts'
import { startChild } from './child.ts'
import { load } from './load.ts'
import { comparison, figure, median, type Result } from './result.ts'
import type { Server } from './server.ts'
import { addParticipants, type Bench, newAccount, withRecords } from './set-up.ts'

const CONNECTIONS = 4
const GOAL = { atMost: 60 }

/** In microseconds. */
interface PerRequest {
  cpu: number
  time: number
}

export async function contract(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const { accountId, token, path } = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    const [id] = await addParticipants(scope, 100)
    return { accountId: scope.accountId, token, path: `/public/v1/participants/${id}` }
  })
  await using servers = new AsyncDisposableStack()

  /** Starts an app. Each call of the returned function sends requests for about a second. */
  async function newMeasurement(app: App): Promise<() => Promise<PerRequest>> {
    const server = servers.use(startChild<Server>('server.ts'))
    const url = (await server.call('start', app, environment, accountId)) + path
    return async () => {
      const before = await server.call('cpuMicros')
      const { requests, perSecond } = await load({
        url,
        token,
        connections: CONNECTIONS,
        seconds: bench.quick ? 0.5 : 1,
      })
      return { cpu: ((await server.call('cpuMicros')) - before) / requests, time: 1e6 / perSecond }
    }
  }

  const measureOperations = await newMeasurement('operations')
  const measureHandwritten = await newMeasurement('handwritten')
  const measureBareKoa = await newMeasurement('bareKoa')
  const rounds: Record<'muster' | 'reference' | 'bareKoa', PerRequest>[] = []
  // The first two rounds warm up.
  for (let round = -1; round <= (bench.quick ? 2 : 16); round++) {
    bench.progress(`round ${round}`)
    const figures = {
      muster: await measureOperations(),
      reference: await measureHandwritten(),
      bareKoa: await measureBareKoa(),
    }
    if (round > 0) rounds.push(figures)
  }
  const compared = (what: keyof PerRequest) =>
    rounds.map(({ muster, reference }) => ({ muster: muster[what], reference: reference[what] }))
  return [
    comparison(
      { what: 'contract, CPU of a request', unit: 'µs', goal: GOAL },
      'difference',
      'handwritten',
      compared('cpu'),
    ),
    comparison(
      { what: 'contract, time of a request', unit: 'µs', goal: GOAL },
      'difference',
      'handwritten',
      compared('time'),
    ),
    figure(
      { what: 'bare Koa, CPU of a request', unit: 'µs' },
      median(rounds.map(({ bareKoa }) => bareKoa.cpu)),
    ),
  ]
}
