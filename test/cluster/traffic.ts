/** The times of successful reads and changes of each node. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Node } from '../chaos/cluster.ts'

/** Starts and ends of successful requests. Epoch milliseconds. */
export interface Success {
  startedAt: number
  endedAt: number
}

export class Successes {
  readonly #byNode = new Map<Node, Success[]>()

  add(node: Node, startedAt: number): void {
    const all = this.#byNode.get(node) ?? []
    all.push({ startedAt, endedAt: Date.now() })
    this.#byNode.set(node, all)
  }

  /** The longest time without a success between `from` and `to`. */
  longestGapMs(node: Node, from: number, to: number): number {
    const ends = this.#of(node)
      .map(({ endedAt }) => endedAt)
      .filter((at) => at > from && at < to)
    const times = [from, ...ends, to]
    return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? time)))
  }

  /** From `from` until a request has succeeded. Undefined: none has. */
  firstAfterMs(node: Node, from: number): number | undefined {
    const first = this.#of(node).find(({ endedAt }) => endedAt >= from)
    return first && first.endedAt - from
  }

  #of(node: Node): Success[] {
    return this.#byNode.get(node) ?? []
  }
}

const READ_EVERY_MS = 100
const PATIENCE_MS = 30_000

/** Reads a list from each node again and again. Returns what stops it. */
export function startReads(
  nodes: Node[],
  token: string,
  successes: Successes,
): () => Promise<void> {
  let isOver = false
  const readers = nodes.map(async (node) => {
    while (!isOver) {
      const startedAt = Date.now()
      if (await read(node, token)) successes.add(node, startedAt)
      await delay(READ_EVERY_MS)
    }
  })
  return async () => {
    isOver = true
    await Promise.all(readers)
  }
}

async function read(node: Node, token: string): Promise<boolean> {
  try {
    const response = await fetch(`${node.url}/public/v1/tasks`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    await response.text()
    return response.ok
  } catch {
    return false
  }
}
