/** Clients that create and update records over HTTP and record what was acknowledged. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Cluster, Node } from './cluster.ts'
import { newRandom, type Random } from './random.ts'

export interface Load {
  /** Number of 2xx responses for each change, by `keyOf`. */
  acknowledged: Map<string, number>
  /** Titles of the tasks that were certainly not created, as the service says. */
  notCreated: Set<string>
  /** Responses by status, and requests without a response as `none`. */
  responses: Map<string, number>
  /** Responses to requests during which PostgreSQL was always down. */
  responsesWithoutDatabase: Map<string, number>
  longestResponseMs: number
  /** One sentence for each response that breaks a promise. */
  broken: string[]
  /** Resolves when the requests in flight have ended. */
  stop(): Promise<void>
}

export interface LoadOptions {
  cluster: Pick<Cluster, 'nodes' | 'token'>
  seed: string
  /** Increases when PostgreSQL goes down and when it returns: odd while it is down. */
  databaseEpoch: () => number
  /** Called for each change with a 2xx response. */
  onAcknowledged?(node: Node, startedAt: number): void
}

/** Identifies the events of a change. Such events differ only in their IDs: their `data` is
 *  empty. */
export const keyOf = (eventType: string, resourceId: string): string => `${eventType} ${resourceId}`

const CLIENTS = 8
/** The longest rest of a client between two requests. */
const REST_MS = 120
/** The interval of events for the slow receiver. */
const JOB_EVERY_MS = 3_000
/** The contract has no limit. This is the patience of users. */
const RESPOND_WITHIN_MS = 30_000
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

interface Task {
  title: string
}

interface Judged {
  status: number
  retryAfter: number
  /** X-Change-Outcome. */
  outcome: string
  text: string
}

const JOB_CHANGE: Change = {
  method: 'POST',
  path: '/jobs',
  eventType: 'job.created',
  body: { title: 'Interpreter' },
}

export function startLoad(options: LoadOptions): Load {
  return new Clients(options)
}

class Clients implements Load {
  readonly acknowledged: Load['acknowledged'] = new Map()
  readonly notCreated: Load['notCreated'] = new Set()
  readonly responses: Load['responses'] = new Map()
  readonly responsesWithoutDatabase: Load['responsesWithoutDatabase'] = new Map()
  readonly broken: string[] = []
  longestResponseMs = 0

  private readonly options: LoadOptions
  private readonly random: Random
  private readonly agent = new Agent({ connections: CLIENTS * 2 })
  private readonly nodes: Node[]
  private readonly clients: Promise<void>[]
  private readonly participants: string[] = []
  /** Changes with an idempotency key and without a final response. They are repeated. */
  private readonly toRepeat: Change[] = []
  private changes = 0
  private isOver = false

  constructor(options: LoadOptions) {
    this.options = options
    this.random = newRandom(`${options.seed} load`)
    this.nodes = options.cluster.nodes.filter(({ role }) => role !== 'worker')
    const restMs = (): number => this.random.between(0, REST_MS)
    this.clients = [
      ...Array.from({ length: CLIENTS }, () => this.run(() => this.nextChange(), restMs)),
      this.run(
        () => this.toRepeat.shift(),
        () => REPEAT_EVERY_MS,
      ),
      this.run(
        () => JOB_CHANGE,
        () => JOB_EVERY_MS,
      ),
    ]
  }

  async stop(): Promise<void> {
    this.isOver = true
    await Promise.all(this.clients)
    await this.agent.destroy()
  }

  private async run(next: () => Change | undefined, restMs: () => number): Promise<void> {
    while (!this.isOver) {
      const change = next()
      if (change) await this.send(change)
      await delay(restMs())
    }
  }

  private nextChange(): Change {
    const number = ++this.changes
    const kind = this.random.between(0, 1)
    const participantId = this.random.pick(this.participants)
    if (participantId !== undefined && kind < 0.35)
      return {
        method: 'PATCH',
        path: `/participants/${participantId}`,
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
    // `external_id` is unique in the account: if an Idempotency-Key allowed the same change twice,
    // the second one would be refused.
    const body = {
      full_name: 'Ada Lovelace',
      tags: ['Größe', '🌊'],
      external_id: `${this.options.seed}-${number}`,
    }
    return {
      method: 'POST',
      path: '/participants',
      eventType: 'participant.created',
      body,
      idempotencyKey,
    }
  }

  private async send(change: Change): Promise<void> {
    const node = this.random.pick(this.nodes)
    if (!node) return
    const { method, path, body, idempotencyKey, eventType } = change
    const startedAt = Date.now()
    const epoch = this.options.databaseEpoch()
    try {
      const response = await request(`${node.url}/public/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.options.cluster.token}`,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body: JSON.stringify(body),
        dispatcher: this.agent,
        signal: AbortSignal.timeout(RESPOND_WITHIN_MS),
      })
      const text = await response.body.text()
      const status = response.statusCode
      count(this.responses, String(status))
      if (!node.wasUnhealthySince(startedAt))
        this.longestResponseMs = Math.max(this.longestResponseMs, Date.now() - startedAt)
      const retryAfter = Number(response.headers['retry-after'])
      const outcome = String(response.headers['x-change-outcome'])
      this.judge(node, change, { status, retryAfter, outcome, text })
      if (epoch % 2 === 1 && this.options.databaseEpoch() === epoch) {
        count(this.responsesWithoutDatabase, String(status))
        if (status !== 503)
          this.broken.push(
            `${node.name} responded to ${method} ${path} with ${status} while PostgreSQL was down`,
          )
      }
      if (status < 300) {
        this.acknowledge(eventType, (JSON.parse(text) as { id: string }).id)
        this.options.onAcknowledged?.(node, startedAt)
      } else if (idempotencyKey !== undefined) this.toRepeat.push(change)
    } catch (error) {
      count(this.responses, 'none')
      if (idempotencyKey !== undefined) this.toRepeat.push(change)
      if (!node.wasUnhealthySince(startedAt))
        this.broken.push(
          `${node.name}, a healthy node, did not respond to ${method} ${path}: ${(error as Error).message}`,
        )
      // Do not flood a node that is down.
      await delay(REST_MS)
    }
  }

  private judge(
    node: Node,
    { method, path, body, idempotencyKey }: Change,
    { status, retryAfter, outcome, text }: Judged,
  ): void {
    if (status < 300 || (status === 409 && idempotencyKey !== undefined)) return
    if (outcome === 'none' && path === '/tasks') this.notCreated.add((body as Task).title)
    if (status === 503 && retryAfter > 0 && ['none', 'unknown'].includes(outcome)) return
    this.broken.push(
      `${node.name} responded to ${method} ${path} with ${status}, Retry-After ${retryAfter}, ` +
        `X-Change-Outcome ${outcome}: ${text.slice(0, 200)}`,
    )
  }

  private acknowledge(eventType: string, id: string): void {
    count(this.acknowledged, keyOf(eventType, id))
    if (eventType !== 'participant.created') return
    if (this.participants.length < POOL) this.participants.push(id)
    else this.participants[Math.floor(this.random.between(0, POOL))] = id
  }
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1)
}
