/** The time from a change of the contract until `muster generate` and `muster dev` apply it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { freePort } from '../postgres.ts'
import { copyRepository, withPing } from '../repository.ts'
import { figure, median, type Result } from './result.ts'
import { type Bench, type Environment, newAccount, withRecords } from './set-up.ts'

const LOOK_MS = 10
const WITHIN_MS = 60_000
const ADDRESS = '/public/v1/ping'
const HANDLER = 'export async function getPing(): Promise<void> {}\n'

export async function regenerate(bench: Bench): Promise<Result[]> {
  const rounds = bench.quick ? 1 : 3
  const root = await copyRepository()
  try {
    const generated: number[] = []
    for (let round = 1; round <= rounds; round++) {
      bench.progress(`generating, round ${round}`)
      await rm(join(root, 'generated'), { recursive: true })
      generated.push(await secondsToGenerate(root))
    }
    const { contract, code } = await followed(bench, root, rounds)
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

async function secondsToGenerate(root: string): Promise<number> {
  const started = performance.now()
  const [status] = await once(run(root, 'generate', {}), 'exit')
  if (status !== 0) throw new Error('muster generate failed')
  return (performance.now() - started) / 1000
}

/** Adds an operation, writes its handler, and removes both. */
async function followed(
  bench: Bench,
  root: string,
  rounds: number,
): Promise<{ contract: number[]; code: number[] }> {
  const contract: number[] = []
  const code: number[] = []
  const PORT = String(await freePort())
  const environment = { ...(await bench.newEnvironment()), PORT }
  const { token } = await withRecords(environment, (trx) => newAccount(trx))
  const dev = run(root, 'dev', environment)
  const exited = once(dev, 'exit')
  const secondsTo = async (change: () => Promise<unknown>, status: number): Promise<number> => {
    const started = performance.now()
    await change()
    await answered(`http://127.0.0.1:${PORT}${ADDRESS}`, token, status, started + WITHIN_MS)
    return (performance.now() - started) / 1000
  }
  try {
    const openapi = join(root, 'openapi.yaml')
    const handler = join(root, 'handlers', 'getPing.ts')
    const text = await readFile(openapi, 'utf8')
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

function run(root: string, command: string, environment: Environment): ChildProcess {
  const settings = { PATH: process.env.PATH, ...environment }
  return spawn(process.execPath, [join(root, 'bin/muster.js'), command], {
    cwd: root,
    env: settings,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

async function answered(
  url: string,
  token: string,
  status: number,
  deadline: number,
): Promise<void> {
  for (;;) {
    const seen = await request(url, { headers: { authorization: `Bearer ${token}` } }).then(
      async ({ statusCode, body }) => body.dump().then(() => statusCode),
      () => undefined,
    )
    if (seen === status) return
    if (performance.now() > deadline)
      throw new Error(`${url} was answered with ${seen} and not with ${status}`)
    await delay(LOOK_MS)
  }
}
