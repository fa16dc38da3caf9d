/** The time of the tool chain for a contract with many operations. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyRepository, withCopies } from '../repository.ts'
import { figure, median, type Result } from './result.ts'
import { secondsOf, startService } from './service.ts'
import type { Bench } from './set-up.ts'

/** The measurement adds this many copies of each operation to the contract. */
const COPIES = 11

export async function operations(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const generate: number[] = []
  const lint: number[] = []
  const start: number[] = []
  const root = await copyRepository()
  try {
    const openapi = join(root, 'openapi.yaml')
    await writeFile(openapi, withCopies(await readFile(openapi, 'utf8'), COPIES))
    // Creates the database and the handlers, which are not measured.
    await secondsOf(root, 'generate')
    const first = await startService(environment, { checkout: root })
    await first[Symbol.asyncDispose]()
    const rounds = bench.quick ? 1 : 3
    for (let round = 1; round <= rounds; round++) {
      bench.progress(`generate, lint and start, round ${round}`)
      await rm(join(root, 'generated'), { recursive: true })
      generate.push(await secondsOf(root, 'generate'))
      lint.push(await secondsOf(root, 'lint'))
      await using service = await startService(environment, { checkout: root })
      start.push(service.secondsToReady)
    }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
  const parts = { generate: median(generate), lint: median(lint), start: median(start) }
  const total = parts.generate + parts.lint + parts.start
  return [
    ...Object.entries(parts).map(([what, seconds]) => figure({ what, unit: 's' }, seconds)),
    figure({ what: 'generate, lint and start', unit: 's', goal: { atMost: 5 } }, total),
  ]
}
