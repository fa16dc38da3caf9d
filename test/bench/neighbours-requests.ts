/** The response time of one account during many sign-ins, or large pages of other accounts. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { insertJob } from '../../records/jobs.ts'
import { startChild } from './child.ts'
import type { Clients } from './neighbours-clients.ts'
import { comparison, figure, percentile, type Result, type Round } from './result.ts'
import { type Service, startService } from './service.ts'
import { addParticipants, type Bench, type Environment, newAccount, withRecords } from './set-up.ts'

const REQUESTS_PER_SECOND = 20
const SECONDS = 10
const ROUNDS = 3

interface Victim {
  url: string
  token: string
}

interface Responses {
  durationsMs: number[]
  /** Responses that are not a success. */
  refused: number
}

/** Repeats a GET of the victim at an even rate for as long as `work` runs. */
async function sendDuring({ url, token }: Victim, work: Promise<unknown>): Promise<Responses> {
  const dispatcher = new Agent()
  const headers = { authorization: `Bearer ${token}` }
  const responses: Responses = { durationsMs: [], refused: 0 }
  const sent: Promise<void>[] = []
  const sendOne = async (): Promise<void> => {
    const startedAt = performance.now()
    const { statusCode, body } = await request(url, { headers, dispatcher })
    await body.dump()
    if (statusCode !== 200) responses.refused++
    responses.durationsMs.push(performance.now() - startedAt)
  }
  const timer = setInterval(() => sent.push(sendOne()), 1_000 / REQUESTS_PER_SECOND)
  await work.finally(() => clearInterval(timer))
  await Promise.all(sent)
  await dispatcher.close()
  return responses
}

/** Measures the p99 of the victim alone and during an attack, by turns. `refused` counts requests of
 *  the victim without success. */
async function compareByTurns(
  bench: Bench,
  victim: Victim,
  attack: () => Promise<unknown>,
): Promise<{ rounds: Round[]; refused: number }> {
  const rounds: Round[] = []
  let refused = 0
  const p99 = async (work: Promise<unknown>): Promise<number> => {
    const responses = await sendDuring(victim, work)
    refused += responses.refused
    return percentile(responses.durationsMs, 0.99)
  }
  // The first round warms up.
  for (let round = 0; round <= (bench.quick ? 1 : ROUNDS); round++) {
    const reference = await p99(delay(bench.quick ? 1_000 : SECONDS * 1_000))
    const muster = await p99(round === 0 ? delay(1_000) : attack())
    if (round > 0) rounds.push({ muster, reference })
  }
  return { rounds, refused }
}

const SIGN_INS = 300
const SETTLE_MS = 15_000

/** 300 sign-ins at once from 6 IP addresses (see neighbours-clients.ts). */
export async function signIns(bench: Bench): Promise<Result[]> {
  const environment = { ...(await bench.newEnvironment()), TRUSTED_PROXIES: '1' }
  const { service, baseUrl, victim } = await startWithVictim(environment)
  await using _ = service
  await using clients = startChild<Clients>('./neighbours-clients.ts')
  const memory = watchMemory(service.pid)
  const count = bench.quick ? 20 : SIGN_INS
  const attack = async (): Promise<void> => {
    memory.start()
    await clients.call('signIn', baseUrl, count)
  }
  const { rounds, refused } = await compareByTurns(bench, victim, attack)
  await delay(bench.quick ? 0 : SETTLE_MS)
  const { before, peak, after } = memory.stop()
  const mebibytes = (what: string, value: number, atMost: number): Result => ({
    ...figure({ what, unit: 'MB', goal: { atMost } }, value),
    note: `${before} before`,
  })
  return [
    bounded('300 sign-ins: GET, p99', rounds, 100),
    refusals('300 sign-ins: refused GETs', refused),
    mebibytes('300 sign-ins: most memory, added', peak - before, 150),
    mebibytes('300 sign-ins: memory 15 s later, added', after - before, 50),
  ]
}

const CLIENTS = 20
const LARGE_ACCOUNTS = 2

/** 20 clients read the largest pages at once. */
export async function largePages(bench: Bench): Promise<Result[]> {
  const environment = await bench.newEnvironment()
  const tokens = await withRecords(environment, async (trx) => {
    const created: string[] = []
    for (let number = 0; number < LARGE_ACCOUNTS; number++) {
      const { scope, token } = await newAccount(trx)
      for (let job = 0; job < 100; job++) await insertJob(scope, LARGE_JOB, new Date())
      created.push(token)
    }
    return created
  })
  const { service, baseUrl, victim } = await startWithVictim(environment)
  await using _ = service
  await using clients = startChild<Clients>('./neighbours-clients.ts')
  const url = `${baseUrl}/public/v1/jobs?page[size]=100`
  const readers = Array.from(
    { length: CLIENTS },
    (_, client) => tokens[client % LARGE_ACCOUNTS] ?? '',
  )
  const durationMs = bench.quick ? 1_000 : SECONDS * 1_000
  let failed = 0
  const attack = async (): Promise<void> => {
    failed += await clients.call('read', url, readers, durationMs)
  }
  const { rounds, refused } = await compareByTurns(bench, victim, attack)
  return [
    bounded('20 clients read the largest pages: GET, p99', rounds, 150),
    refusals('20 clients read the largest pages: refused GETs', refused + failed),
  ]
}

/** About 40 KiB as JSON, the largest record. */
const LARGE_JOB = {
  title: 'A large job',
  status: 'open' as const,
  description: 'd'.repeat(10_000),
  screening_questions: Array.from({ length: 13 }, (_, index) => ({
    key: `question_${index}`,
    label: 'q'.repeat(500),
    requirement: 'must_have' as const,
    operator: 'equals' as const,
    expected: 'a'.repeat(1_700),
  })),
}

async function startWithVictim(
  environment: Environment,
): Promise<{ service: Service; baseUrl: string; victim: Victim }> {
  const token = await withRecords(environment, async (trx) => {
    const { scope, token } = await newAccount(trx)
    await addParticipants(scope, 100)
    return token
  })
  const service = await startService(environment)
  const baseUrl = `http://127.0.0.1:${service.port}`
  return { service, baseUrl, victim: { url: `${baseUrl}/public/v1/participants`, token } }
}

/** Watches the memory of a process in MiB: before the first attack, the most, and at the end. */
function watchMemory(pid: number) {
  const now = (): number => {
    const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kib) / 1024)
  }
  let before: number | undefined
  let peak = 0
  const timer = setInterval(() => {
    peak = Math.max(peak, now())
  }, 50)
  return {
    /** Called at the start of each attack. */
    start(): void {
      before ??= now()
    },
    stop() {
      clearInterval(timer)
      return { before: before ?? now(), peak, after: now() }
    },
  }
}

function bounded(what: string, rounds: Round[], atMost: number): Result {
  return comparison({ what, unit: 'ms', goal: { atMost } }, 'difference', 'alone', rounds)
}

function refusals(what: string, count: number): Result {
  return figure({ what, unit: '', goal: { atMost: 0 } }, count)
}
