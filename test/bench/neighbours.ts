/** How much other accounts can slow down one account: its figure alone, and during an attack in the
 *  same run. */
import { fullQueues, hangingNames, slowEndpoints } from './neighbours-deliveries.ts'
import { largeExport } from './neighbours-exports.ts'
import { largePages, signIns } from './neighbours-requests.ts'
import type { Result } from './result.ts'
import type { Bench } from './set-up.ts'

const run: Record<string, (bench: Bench) => Promise<Result[]>> = {
  'slow-endpoints': slowEndpoints,
  'hanging-names': hangingNames,
  'sign-ins': signIns,
  'full-queues': fullQueues,
  'large-pages': largePages,
  'large-export': largeExport,
}

export const scenarios = Object.keys(run)

export async function neighbours(bench: Bench): Promise<Result[]> {
  const results: Result[] = []
  for (const scenario of bench.scenarios) {
    bench.progress(scenario)
    results.push(...((await run[scenario]?.(bench)) ?? []))
  }
  return results
}
