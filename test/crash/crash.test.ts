/** `kill -9` at random moments while events are made: what was acknowledged arrives. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { newDatabase, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'

const BIN = fileURLToPath(new URL('../../bin/muster.js', import.meta.url))
const KILLS = 3
const CLIENTS = 8
/** Attempts that a process may hold at the moment that it is killed. */
const MAX_REPEATS_PER_KILL = 512

/** What `serve --json` prints when it is ready. */
interface Ready {
  url: string
  first_account: { account_id: string; token: string } | null
}

interface Served extends Ready {
  process: ChildProcess
}

async function serve(environment: Record<string, string>): Promise<Served> {
  const child = spawn(process.execPath, [BIN, 'serve', '--json'], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let log = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  const ready = await until(
    'serve is ready',
    () => {
      if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}: ${log}`)
      return output.includes('\n') && (JSON.parse(output) as Ready)
    },
    30_000,
  )
  return { process: child, ...ready }
}

function kill({ process }: Served, signal: NodeJS.Signals): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => process.once('exit', (code) => resolve(code)))
  process.kill(signal)
  return ended
}

test('SIGKILL while events are made: every acknowledged event arrives, repeats are few, the last stop is clean', async () => {
  await using receiver = await startReceiver()
  await using database = await newDatabase()
  const environment: Record<string, string> = {
    PORT: '0',
    RATE_LIMIT_PER_MINUTE: '1000000',
    WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
    WEBHOOK_RETRY_DELAYS: '0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5',
    LOG_LEVEL: 'warn',
    ...database.environment,
  }
  let server = await serve(environment)
  const { account_id: account, token } = server.first_account ?? { account_id: '', token: '' }
  // Beside the running server: it counts from the next event on.
  await promisify(execFile)(process.execPath, [BIN, 'webhook', 'create', '--account', account, '--url', receiver.url, '--events', '*'], {
    env: environment,
  })

  const acknowledged: string[] = []
  let isOver = false
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (!isOver) {
      try {
        const response = await fetch(`${server.url}/public/v1/participants`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify({ full_name: 'Ada Lovelace' }),
        })
        const { id } = (await response.json()) as { id: string }
        if (response.status === 201) acknowledged.push(id)
      } catch {
        // The server is down: nothing was acknowledged.
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  })

  for (let i = 0; i < KILLS; i++) {
    const enough = acknowledged.length + 40 + Math.floor(Math.random() * 40)
    await until('some more events', () => acknowledged.length >= enough, 20_000)
    await kill(server, 'SIGKILL')
    server = await serve(environment)
  }
  const enough = acknowledged.length + 20
  await until('some more events', () => acknowledged.length >= enough, 20_000)
  isOver = true
  await Promise.all(clients)

  const arrivals = (): Map<string, number> => {
    const counts = new Map<string, number>()
    for (const { body } of receiver.requests) {
      const { resource } = JSON.parse(body.toString()) as { resource: { id: string } }
      counts.set(resource.id, (counts.get(resource.id) ?? 0) + 1)
    }
    return counts
  }
  await until('every acknowledged event arrived', () => acknowledged.every((id) => arrivals().has(id)), 40_000)
  const repeats = [...arrivals().values()].reduce((sum, count) => sum + count - 1, 0)
  expect(repeats).toBeLessThanOrEqual(KILLS * MAX_REPEATS_PER_KILL)
  expect(await kill(server, 'SIGTERM')).toBe(0)
}, 150_000)
