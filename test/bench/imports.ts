/** The rate of an import and its memory, compared with single creates. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { publish, publishHeaders } from './publish.ts'
import { comparison, figure, type Result } from './result.ts'
import { startService } from './service.ts'
import { type Bench, newAccount, openDatabases, STATISTICS, withRecords } from './set-up.ts'

const CLIENTS = 8
const POLL_MS = 500

export async function imports({ database, quick, progress }: Bench): Promise<Result[]> {
  await using databases = await openDatabases([database], STATISTICS)
  const environment = await databases.newEnvironment(database)
  const { token } = await withRecords(environment, (trx) => newAccount(trx))
  await using service = await startService(environment)
  const api = `http://127.0.0.1:${service.port}/public/v1`
  const rows = quick ? 5_000 : 100_000
  progress('single creates')
  const creates = rows / 20
  const publishing = { url: `${api}/participants`, token, clients: CLIENTS }
  await publish({ ...publishing, count: creates / 5 })
  const secondsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const startedAt = performance.now()
    await work()
    return (performance.now() - startedAt) / 1000
  }
  const reference = creates / (await secondsOf(() => publish({ ...publishing, count: creates })))
  progress(`an import of ${rows} rows`)
  const before = memoryMb(service.pid)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, memoryMb(service.pid))
  }, POLL_MS)
  const muster = rows / (await secondsOf(() => importRows(api, token, rows)))
  clearInterval(timer)
  return [
    comparison(
      { what: 'rows of an import', unit: '/s', goal: { atLeast: 3 } },
      'ratio',
      'single creates',
      [{ muster, reference }],
    ),
    figure(
      { what: 'memory that the import adds', unit: 'MB', goal: { atMost: 60 } },
      most - before,
    ),
  ]
}

/** Sends a file, and waits until it is imported. */
async function importRows(api: string, token: string, rows: number): Promise<void> {
  const lines = Array.from({ length: rows }, (_, row) => `Participant ${row},p-${row}`)
  const sent = await request(`${api}/imports?resource=participants&mode=create`, {
    method: 'POST',
    headers: { ...publishHeaders(token), 'content-type': 'text/csv' },
    body: ['full_name,external_id', ...lines].join('\n'),
  })
  const { id } = (await sent.body.json()) as { id: string }
  for (;;) {
    const { body } = await request(`${api}/imports/${id}`, { headers: publishHeaders(token) })
    const found = (await body.json()) as { status: string; created_count: number }
    if (found.status === 'failed') throw new Error(JSON.stringify(found))
    if (found.status === 'completed') return
    await delay(POLL_MS)
  }
}

/** The memory of the process now. */
function memoryMb(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) * 1024) / 1e6
}
