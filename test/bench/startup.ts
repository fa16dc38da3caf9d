/** The time from the start of `muster serve` until it is ready. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { figure, median, type Result } from './result.ts'
import type { Bench, Environment } from './set-up.ts'

const BIN = fileURLToPath(new URL('../../bin/muster.js', import.meta.url))
const LOOK_MS = 10
const WITHIN_MS = 60_000

export async function startup(bench: Bench): Promise<Result[]> {
  const environment = {
    ...(await bench.newEnvironment()),
    PORT: String(await freePort()),
    PATH: process.env.PATH ?? '',
  }
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
  const started = performance.now()
  const muster = spawn(process.execPath, [BIN, 'serve'], {
    env: environment,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(muster, 'exit')
  try {
    await ready(muster, `http://127.0.0.1:${environment.PORT}/readyz`, started + WITHIN_MS)
    return (performance.now() - started) / 1000
  } finally {
    muster.kill('SIGTERM')
    await exited
  }
}

async function ready(muster: ChildProcess, url: string, deadline: number): Promise<void> {
  for (;;) {
    const status = await request(url).then(
      async ({ statusCode, body }) => body.dump().then(() => statusCode),
      () => undefined,
    )
    if (status === 200) return
    if (muster.exitCode !== null || performance.now() > deadline)
      throw new Error('muster serve did not become ready')
    await delay(LOOK_MS)
  }
}

/** A port that was free just now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
