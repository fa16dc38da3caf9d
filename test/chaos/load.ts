/** Clients that create and update records over HTTP and record what was acknowledged. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Cluster, Node } from './cluster.ts'
import { newRandom } from './random.ts'

export interface Load {
  /** Number of 2xx responses for each change, by `keyOf`. */
  acknowledged: Map<string, number>
  /** Responses by status, and requests without a response as `none`. */
  answers: Map<string, number>
  /** Responses to requests during which PostgreSQL was always down. */
  answersWithoutDatabase: Map<string, number>
  longestAnswerMs: number
  /** One sentence for each response that breaks a promise. */
  wrong: string[]
  /** Resolves when the requests in flight have ended. */
  stop(): Promise<void>
}

export interface LoadOptions {
  cluster: Cluster
  seed: string
  /** Increases when PostgreSQL goes down and when it returns: odd while it is down. */
  databaseEpoch: () => number
}

/** Identifies an event. Its `data` is empty. */
export const keyOf = (eventType: string, resourceId: string): string => `${eventType} ${resourceId}`

const CLIENTS = 8
/** The longest rest of a client between two requests. */
const REST_MS = 120
/** The interval of events for the slow receiver. */
const JOB_EVERY_MS = 3_000
/** The contract has no limit. This is the patience of users. */
const ANSWER_WITHIN_MS = 30_000
const REPEAT_EVERY_MS = 200
/** The number of participants that clients update again and again. */
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
  /** Changes with an idempotency key and without a final response. They are repeated. */
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
    // Unique in the account: a key that allows a change twice would be refused.
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
      // Do not flood a node that is down.
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
