/** The time from a change of the contract until `muster generate` and `muster dev` apply it. */
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { copyRepository, withPing } from '../repository.ts'
import { figure, median, type Result } from './result.ts'
import { findStatus, secondsOf, spawnMuster } from './service.ts'
import { type Bench, newAccount, withRecords } from './set-up.ts'

const MAX_CHANGE_MS = 60_000
const PATH = '/public/v1/ping'
const HANDLER = 'export async function getPing(): Promise<void> {}\n'

export async function regenerate(bench: Bench): Promise<Result[]> {
  const rounds = bench.quick ? 1 : 3
  const root = await copyRepository()
  try {
    const generated: number[] = []
    for (let round = 1; round <= rounds; round++) {
      bench.progress(`generating, round ${round}`)
      await rm(join(root, 'generated'), { recursive: true })
      generated.push(await secondsOf(root, 'generate'))
    }
    const { contract, code } = await measureDev(bench, root, rounds)
    return [
      figure({ what: 'generate, from nothing', unit: 's', goal: { atMost: 3 } }, median(generated)),
      figure(
        { what: 'dev: a change of the contract served', unit: 's', goal: { atMost: 2 } },
        median(contract),
      ),
      figure(
        { what: 'dev: a change of the code served', unit: 's', goal: { atMost: 2 } },
        median(code),
      ),
    ]
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

/** Starts `muster dev`, then adds an operation, writes its handler, and removes both. Returns the
 *  seconds until each change is served. */
async function measureDev(
  bench: Bench,
  root: string,
  rounds: number,
): Promise<{ contract: number[]; code: number[] }> {
  const contract: number[] = []
  const code: number[] = []
  const PORT = String(await freePort())
  const environment = { ...(await bench.newEnvironment()), PORT }
  const { token } = await withRecords(environment, (trx) => newAccount(trx))
  const url = `http://127.0.0.1:${PORT}${PATH}`
  const headers = { authorization: `Bearer ${token}` }
  const dev = spawnMuster(root, 'dev', environment)
  const exited = once(dev, 'exit')
  const secondsTo = async (change: () => Promise<unknown>, status: number): Promise<number> => {
    const started = performance.now()
    await change()
    await until(
      `GET ${PATH} is ${status}`,
      async () => (await findStatus(url, headers)) === status,
      MAX_CHANGE_MS,
    )
    return (performance.now() - started) / 1000
  }
  try {
    const openapi = join(root, 'openapi.yaml')
    const handler = join(root, 'handlers', 'getPing.ts')
    const text = await readFile(openapi, 'utf8')
    // Waits until the service has started.
    await secondsTo(async () => undefined, 404)
    for (let round = 1; round <= rounds; round++) {
      bench.progress(`changing the contract and the code, round ${round}`)
      contract.push(await secondsTo(() => writeFile(openapi, withPing(text)), 501))
      code.push(await secondsTo(() => writeFile(handler, HANDLER), 204))
      await rm(handler)
      contract.push(await secondsTo(() => writeFile(openapi, text), 404))
    }
  } finally {
    dev.kill('SIGTERM')
    await exited
  }
  return { contract, code }
}
