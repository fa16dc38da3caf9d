/** The time from a change through the API to its webhook request on an idle service, compared
 *  with one stored row and one POST. */
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Child, sharedNowMs, startChild } from './child.ts'
import { figure, percentile, type Result } from './result.ts'
import type { Server } from './server.ts'
import { addWebhooks, type Bench, newAccount, withRecords } from './set-up.ts'
import type { Sink } from './sink.ts'

const EVENTS_PER_SECOND = 25
const ROUND_SECONDS = 2
const ROUNDS = 6
const ARRIVAL_MS = 10_000

export interface Sent {
  id: string
  sentAt: number
  respondedAt: number
}

export async function latency(bench: Bench): Promise<Result[]> {
  await using sink = startChild<Sink>('sink.ts')
  await using service = startChild<Server>('server.ts')
  await using bare = startChild<Server>('server.ts')
  const environment = await bench.newEnvironment()
  const origins = await sink.call('listen')
  const { accountId, token } = await withRecords(environment, async (trx, config) => {
    const { scope, token } = await newAccount(trx)
    await addWebhooks(scope, origins.slice(0, 1), config)
    return { accountId: scope.accountId, token }
  })
  const path = '/public/v1/participants'
  const serviceUrl = (await service.call('start', 'service', environment, accountId)) + path
  const bareUrl = (await bare.call('start', 'insertAndPost', environment, accountId)) + path

  const headers = () => ({ authorization: `Bearer ${token}` })
  const muster: Sent[] = []
  const reference: Sent[] = []
  // The first round warms up.
  for (let round = 0; round <= (bench.quick ? 1 : ROUNDS); round++) {
    bench.progress(round === 0 ? 'warming up' : `creating participants, round ${round}`)
    const byService = await createParticipants(serviceUrl, ROUND_SECONDS, headers)
    const byBareKoa = await createParticipants(bareUrl, ROUND_SECONDS, headers)
    if (round === 0) continue
    muster.push(...byService)
    reference.push(...byBareKoa)
  }
  const arrivals = await waitForArrivals(sink, [...muster, ...reference])

  const row = (
    what: string,
    from: 'sentAt' | 'respondedAt',
    share: number,
    atMost?: number,
  ): Result => {
    const latencyMs = (sent: Sent[]): number =>
      percentile(
        sent.map((change) => (arrivals.get(change.id) ?? Number.NaN) - change[from]),
        share,
      )
    const described = {
      what,
      unit: 'ms' as const,
      goal: atMost === undefined ? undefined : { atMost },
    }
    return {
      ...figure(described, latencyMs(muster)),
      reference: { name: 'bare Koa', value: latencyMs(reference) },
    }
  }
  return [
    row('request to webhook, p50', 'sentAt', 0.5, 10),
    row('request to webhook, p99', 'sentAt', 0.99, 25),
    row('response to webhook, p50', 'respondedAt', 0.5),
    row('response to webhook, p99', 'respondedAt', 0.99),
  ]
}

/** Creates 25 participants a second on average, with random gaps. `headers` is called for each. */
export async function createParticipants(
  url: string,
  seconds: number,
  headers: () => Record<string, string>,
): Promise<Sent[]> {
  const agent = new Agent()
  const sent: Promise<Sent>[] = []
  for (let number = 0; number < seconds * EVENTS_PER_SECOND; number++) {
    sent.push(createParticipant(agent, url, headers()))
    await delay((1000 / EVENTS_PER_SECOND) * (0.5 + Math.random()))
  }
  const all = await Promise.all(sent)
  await agent.close()
  return all
}

export async function createParticipant(
  dispatcher: Agent,
  url: string,
  headers: Record<string, string>,
): Promise<Sent> {
  const sentAt = sharedNowMs()
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ full_name: 'Ann Bench' }),
    dispatcher,
  })
  const respondedAt = sharedNowMs()
  if (statusCode !== 201) throw new Error(`${url} returned ${statusCode}: ${await body.text()}`)
  const { id } = (await body.json()) as { id: string }
  return { id, sentAt, respondedAt }
}

/** Waits until an event of each participant has arrived. Returns the times by the participant's
 *  ID. */
export async function waitForArrivals(
  sink: Child<Sink>,
  sent: Sent[],
): Promise<Map<string, number>> {
  const deadline = sharedNowMs() + ARRIVAL_MS
  for (;;) {
    const arrivals = await sink.call('arrivalTimes')
    const missing = sent.filter(({ id }) => !arrivals.has(id))
    if (missing.length === 0)
      return new Map([...arrivals].map(([id, [first = Number.NaN]]) => [id, first]))
    if (sharedNowMs() > deadline)
      throw new Error(`${missing.length} of ${sent.length} events did not arrive`)
    await delay(100)
  }
}
