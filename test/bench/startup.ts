/** The time from the start of `muster serve` until it is ready. */
import { figure, median, type Result } from './result.ts'
import { startService } from './service.ts'
import type { Bench, Environment } from './set-up.ts'

export async function startup(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  bench.progress('first start')
  // Like a new installation, without a compile cache.
  const first = await secondsToReady({ ...environment, NODE_DISABLE_COMPILE_CACHE: '1' })
  const later: number[] = []
  for (let start = 1; start <= (bench.quick ? 1 : 3); start++) {
    bench.progress(`later start ${start}`)
    later.push(await secondsToReady(environment))
  }
  return [
    figure({ what: 'first start', unit: 's', goal: { atMost: 8 } }, first),
    figure({ what: 'later start', unit: 's', goal: { atMost: 4 } }, median(later)),
  ]
}

async function secondsToReady(environment: Environment): Promise<number> {
  await using service = await startService(environment)
  return service.secondsToReady
}
