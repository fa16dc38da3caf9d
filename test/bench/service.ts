/** A service as an operator starts it: a process of `muster serve`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import type { Environment } from './set-up.ts'

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))
const MAX_START_MS = 60_000

export interface Service extends AsyncDisposable {
  pid: number
  port: number
  secondsToReady: number
}

interface ServiceOptions {
  /** By default a free one. */
  port?: number
  /** The folder of another checkout. By default that of this file. */
  checkout?: string
}

export async function startService(
  environment: Environment,
  options: ServiceOptions = {},
): Promise<Service> {
  const { port = await freePort(), checkout = CHECKOUT } = options
  const started = performance.now()
  const muster = spawnMuster(checkout, 'serve', { ...environment, PORT: String(port) })
  const exited = once(muster, 'exit')
  const stop = async (): Promise<void> => {
    muster.kill('SIGTERM')
    await exited
  }
  try {
    await waitUntilReady(muster, `http://127.0.0.1:${port}/readyz`)
  } catch (error) {
    await stop()
    throw error
  }
  const secondsToReady = (performance.now() - started) / 1000
  return { pid: Number(muster.pid), port, secondsToReady, [Symbol.asyncDispose]: stop }
}

async function waitUntilReady(muster: ChildProcess, url: string): Promise<void> {
  await until(
    'muster serve is ready',
    async () => {
      if (muster.exitCode !== null) throw new Error(`muster serve ended with ${muster.exitCode}`)
      return (await findStatus(url)) === 200
    },
    MAX_START_MS,
  )
}

/** The status of a GET. Undefined if there is no response. */
export async function findStatus(
  url: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  try {
    const { statusCode, body } = await request(url, { headers })
    await body.dump()
    return statusCode
  } catch {
    return undefined
  }
}

/** Starts `muster <command>` in a checkout, and drops its standard output. */
export function spawnMuster(
  checkout: string,
  command: string,
  environment: Environment = {},
): ChildProcess {
  return spawn(process.execPath, [join(checkout, 'bin/muster.js'), command], {
    cwd: checkout,
    env: { ...environment, PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

/** The seconds that `muster <command>` takes in a checkout. */
export async function secondsOf(checkout: string, command: string): Promise<number> {
  const started = performance.now()
  const [status] = await once(spawnMuster(checkout, command), 'exit')
  if (status !== 0) throw new Error(`muster ${command} failed`)
  return (performance.now() - started) / 1000
}
