/** Clients that create and change records over HTTP, and note what was acknowledged. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Cluster, Node } from './cluster.ts'
import { newRandom } from './random.ts'

export interface Load {
  /** How often each change was acknowledged with 2xx, by `keyOf`. */
  acknowledged: Map<string, number>
  /** Answers by status, and requests without one. */
  answers: Map<string, number>
  /** Answers while PostgreSQL was away from before the request until after its answer. */
  answersWithoutDatabase: Map<string, number>
  longestAnswerMs: number
  /** Answers that should not have been. */
  wrong: string[]
  /** Ends when the requests under way have ended. */
  stop(): Promise<void>
}

export interface LoadOptions {
  cluster: Cluster
  seed: string
  /** Counts the times that PostgreSQL went away, and is odd while it is. */
  databaseEpoch: () => number
}

/** What an event is recognised by: `data` says nothing. */
export const keyOf = (eventType: string, resourceId: string): string => `${eventType} ${resourceId}`

const CLIENTS = 8
/** A client rests up to this long between two requests. */
const REST_MS = 120
/** One event for the receiver that takes its time, every so often. */
const JOB_EVERY_MS = 3_000
/** As the contract has no limit, people's patience. */
const ANSWER_WITHIN_MS = 30_000
const REPEAT_EVERY_MS = 200
/** Changed again and again. */
const POOL = 200

interface Change {
  method: 'POST' | 'PATCH'
  path: string
  eventType: string
  body: object
  idempotencyKey?: string
}

export function startLoad({ cluster, seed, databaseEpoch }: LoadOptions): Load {
  const random = newRandom(`${seed} load`)
  const agent = new Agent({ connections: CLIENTS * 2 })
  const nodes = cluster.nodes.filter(({ role }) => role !== 'worker')
  const participants: string[] = []
  /** Those with an idempotency key and without a clear answer: they are repeated until they have one. */
  const unclear: Change[] = []
  let changes = 0
  let isOver = false

  const load: Load = {
    acknowledged: new Map(),
    answers: new Map(),
    answersWithoutDatabase: new Map(),
    longestAnswerMs: 0,
    wrong: [],
    async stop() {
      isOver = true
      await Promise.all(clients)
      await agent.destroy()
    },
  }

  function nextChange(): Change {
    const number = ++changes
    const kind = random.between(0, 1)
    const known = random.pick(participants)
    if (known !== undefined && kind < 0.35)
      return {
        method: 'PATCH',
        path: `/participants/${known}`,
        eventType: 'participant.updated',
        body: { full_name: `Ada Lovelace ${number}` },
      }
    if (kind < 0.5)
      return {
        method: 'POST',
        path: '/tasks',
        eventType: 'task.created',
        body: { title: `Task ${number}` },
      }
    const idempotencyKey = kind < 0.75 ? randomUUID() : undefined
    // Unique in the account, so that a key that lets a change happen twice would be found out.
    const body = {
      full_name: 'Ada Lovelace',
      tags: ['Größe', '🌊'],
      external_id: `${seed}-${number}`,
    }
    return {
      method: 'POST',
      path: '/participants',
      eventType: 'participant.created',
      body,
      idempotencyKey,
    }
  }

  async function make(change: Change): Promise<void> {
    const node = random.pick(nodes)
    if (!node) return
    const { method, path, body, idempotencyKey, eventType } = change
    const startedAt = Date.now()
    const epoch = databaseEpoch()
    try {
      const response = await request(`${node.url}/public/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${cluster.token}`,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
        dispatcher: agent,
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      })
      const text = await response.body.text()
      const status = response.statusCode
      count(load.answers, String(status))
      if (!node.wasHurtSince(startedAt))
        load.longestAnswerMs = Math.max(load.longestAnswerMs, Date.now() - startedAt)
      judge(node, change, status, Number(response.headers['retry-after']), text)
      if (epoch % 2 === 1 && databaseEpoch() === epoch) {
        count(load.answersWithoutDatabase, String(status))
        if (status !== 503)
          load.wrong.push(
            `${node.name} answered ${method} ${path} with ${status} while PostgreSQL was away`,
          )
      }
      if (status < 300) acknowledge(eventType, (JSON.parse(text) as { id: string }).id)
      else if (idempotencyKey !== undefined) unclear.push(change)
    } catch (error) {
      count(load.answers, 'none')
      if (idempotencyKey !== undefined) unclear.push(change)
      if (!node.wasHurtSince(startedAt))
        load.wrong.push(
          `${node.name}, which was well, did not answer ${method} ${path}: ${(error as Error).message}`,
        )
      // Nobody hammers at a node that is down.
      await delay(REST_MS)
    }
  }

  function judge(
    node: Node,
    { method, path, idempotencyKey }: Change,
    status: number,
    retryAfter: number,
    text: string,
  ): void {
    if (status < 300 || (status === 409 && idempotencyKey !== undefined)) return
    if (status === 503 && retryAfter > 0) return
    load.wrong.push(
      `${node.name} answered ${method} ${path} with ${status}, Retry-After ${retryAfter}: ${text.slice(0, 200)}`,
    )
  }

  function acknowledge(eventType: string, id: string): void {
    count(load.acknowledged, keyOf(eventType, id))
    if (eventType !== 'participant.created') return
    if (participants.length < POOL) participants.push(id)
    else participants[Math.floor(random.between(0, POOL))] = id
  }

  const client = async (next: () => Change | undefined, restMs: () => number): Promise<void> => {
    while (!isOver) {
      const change = next()
      if (change) await make(change)
      await delay(restMs())
    }
  }
  const newJob = (): Change => ({
    method: 'POST',
    path: '/jobs',
    eventType: 'job.created',
    body: { title: 'Interpreter' },
  })
  const clients = [
    ...Array.from({ length: CLIENTS }, () => client(nextChange, () => random.between(0, REST_MS))),
    client(
      () => unclear.shift(),
      () => REPEAT_EVERY_MS,
    ),
    client(newJob, () => JOB_EVERY_MS),
  ]
  return load
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1)
}
