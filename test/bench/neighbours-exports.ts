/** The time of a small export while a large one of another account is written. */
import { Agent, request } from 'undici'
import { v7 as uuidv7 } from 'uuid'
import type { WriteScope } from '../../records/database/scope.ts'
import { until } from '../helpers.ts'
import { comparison, type Result, type Round } from './result.ts'
import { startService } from './service.ts'
import { addParticipants, type Bench, newAccount, withRecords } from './set-up.ts'

const LARGE_ROWS = 1_000_000
const SMALL_ROWS = 100
const BATCH_ROWS = 10_000
const ROUNDS = 5
const MAX_DELAY_MS = 2_000
/** A million rows take minutes on a slow machine. */
const MAX_EXPORT_MS = 600_000

/** An account exports a million rows, then another one 100. */
export async function largeExport(bench: Bench): Promise<Result[]> {
  const environment = {
    ...(await bench.newEnvironment()),
    EXPORT_MIB_PER_ACCOUNT: '100000',
    RECORDS_PER_ACCOUNT: String(2 * LARGE_ROWS),
  }
  const rows = bench.quick ? LARGE_ROWS / 50 : LARGE_ROWS
  const { large, small } = await withRecords(environment, async (trx) => {
    const one = await newAccount(trx)
    await addRows(one.scope, rows)
    const other = await newAccount(trx)
    await addParticipants(other.scope, SMALL_ROWS)
    return { large: one.token, small: other.token }
  })
  await using service = await startService(environment)
  const url = `http://127.0.0.1:${service.port}/public/v1/exports`
  const rounds: Round[] = []
  // The first round warms up.
  for (let round = 0; round <= (bench.quick ? 1 : ROUNDS); round++) {
    bench.progress(`round ${round}`)
    const reference = await exportMs(url, small)
    const id = await createExport(url, large)
    await waitForStatus('processing', url, large, id)
    const muster = await exportMs(url, small)
    await request(`${url}/${id}`, { method: 'DELETE', headers: headersOf(large) })
    if (round > 0) rounds.push({ muster, reference })
  }
  const what = 'a million rows are exported: a small export'
  return [
    comparison({ what, unit: 'ms', goal: { atMost: MAX_DELAY_MS } }, 'difference', 'alone', rounds),
  ]
}

async function addRows(scope: WriteScope, count: number): Promise<void> {
  const at = Date.now()
  for (let from = 0; from < count; from += BATCH_ROWS)
    await scope.insert(
      'participants',
      Array.from({ length: BATCH_ROWS }, (_, index) => ({
        id: uuidv7(),
        full_name: `Participant ${from + index}`,
        search_text: `participant ${from + index}`,
        status: 'active',
        tags: '[]',
        created_at: at,
        updated_at: at,
      })),
    )
}

async function exportMs(url: string, token: string): Promise<number> {
  const startedAt = performance.now()
  await waitForStatus('completed', url, token, await createExport(url, token))
  return performance.now() - startedAt
}

const dispatcher = new Agent()
const headersOf = (token: string) => ({ authorization: `Bearer ${token}` })

async function createExport(url: string, token: string): Promise<string> {
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { ...headersOf(token), 'content-type': 'application/json' },
    body: '{"resource": "participants", "format": "csv"}',
    dispatcher,
  })
  if (statusCode !== 201) throw new Error(`${url} returned ${statusCode}: ${await body.text()}`)
  return ((await body.json()) as { id: string }).id
}

/** Also ends when the export is completed. Throws when it has failed. */
async function waitForStatus(
  status: 'processing' | 'completed',
  url: string,
  token: string,
  id: string,
): Promise<void> {
  await until(
    `export ${id} is ${status}`,
    async () => {
      const { body } = await request(`${url}/${id}`, { headers: headersOf(token), dispatcher })
      const current = ((await body.json()) as { status: string }).status
      if (current === 'failed') throw new Error(`Export ${id} failed`)
      return current === status || current === 'completed'
    },
    MAX_EXPORT_MS,
  )
}
