/** A service as an operator starts it: a process of `muster serve`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { freePort } from '../postgres.ts'
import type { Environment } from './set-up.ts'

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))
const LOOK_MS = 10
const WITHIN_MS = 60_000

export interface Service extends AsyncDisposable {
  pid: number
  port: number
  secondsToReady: number
}

/** `port`: by default a free one. */
export async function startService(
  environment: Environment,
  port?: number,
  checkout = CHECKOUT,
): Promise<Service> {
  const ownPort = port ?? (await freePort())
  const started = performance.now()
  const muster = spawn(process.execPath, [join(checkout, 'bin/muster.js'), 'serve'], {
    env: { ...environment, PORT: String(ownPort), PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(muster, 'exit')
  const stop = async (): Promise<void> => {
    muster.kill('SIGTERM')
    await exited
  }
  try {
    await ready(muster, `http://127.0.0.1:${ownPort}/readyz`, started + WITHIN_MS)
  } catch (error) {
    await stop()
    throw error
  }
  const secondsToReady = (performance.now() - started) / 1000
  return { pid: Number(muster.pid), port: ownPort, secondsToReady, [Symbol.asyncDispose]: stop }
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
