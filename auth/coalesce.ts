/** Coalesces concurrent calls with the same key into one. */
import { setTimeout as delay } from 'node:timers/promises'

export interface Coalesced<T> {
  result: T
  /** How many calls share the result. */
  calls: number
  /** The position of this call among them, from 0. */
  index: number
}

interface Batch<T> {
  calls: number
  result?: Promise<T>
}

/** While `work` runs for a key, further calls with this key wait and then share the next run. So
 *  the result of each call is from after the call, and a client with many concurrent requests costs
 *  few queries. The next run waits `gatherMs` longer for more calls. */
export function coalesce<T>(
  work: (key: string, calls: number) => Promise<T>,
  gatherMs = 0,
): (key: string) => Promise<Coalesced<T>> {
  const running = new Map<string, Promise<unknown>>()
  const waiting = new Map<string, Batch<T>>()

  function run(key: string, batch: Batch<T>): Promise<T> {
    if (waiting.get(key) === batch) waiting.delete(key)
    const result = work(key, batch.calls)
    running.set(key, result)
    const done = (): void => {
      if (running.get(key) === result) running.delete(key)
    }
    result.then(done, done)
    return result
  }

  function newBatch(key: string): Batch<T> {
    const batch: Batch<T> = { calls: 0 }
    const previous = running.get(key)
    if (previous) {
      waiting.set(key, batch)
      const next = async (): Promise<T> => {
        if (gatherMs > 0) await delay(gatherMs)
        return run(key, batch)
      }
      batch.result = previous.then(next, next)
    }
    return batch
  }

  return async (key) => {
    const batch = waiting.get(key) ?? newBatch(key)
    const index = batch.calls++
    batch.result ??= run(key, batch)
    const result = await batch.result
    return { result, calls: batch.calls, index }
  }
}
