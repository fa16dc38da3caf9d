/** Lets concurrent calls with the same key share results. */
import { setTimeout as delay } from 'node:timers/promises'

interface Coalesced<T> {
  result: T
  /** How many calls share the result. */
  calls: number
  /** The position of this call among the calls that share the result, from 0. */
  index: number
}

interface Batch<T> {
  calls: number
  result: Promise<T>
}

/** While `work` runs for a key, further calls with this key wait and then share the next run. So no
 *  call gets the result of a run that began before the call, and many concurrent calls need few
 *  runs. The next run waits `gatherMs` longer for more calls. */
export function coalesce<T>(
  work: (key: string, calls: number) => Promise<T>,
  gatherMs = 0,
): (key: string) => Promise<Coalesced<T>> {
  const running = new Map<string, Promise<T>>()
  const waiting = new Map<string, Batch<T>>()

  function run(key: string, calls: number): Promise<T> {
    const result = work(key, calls)
    running.set(key, result)
    const forget = (): void => {
      if (running.get(key) === result) running.delete(key)
    }
    result.then(forget, forget)
    return result
  }

  function newBatch(key: string, current: Promise<T>): Batch<T> {
    const next = async (): Promise<T> => {
      if (gatherMs > 0) await delay(gatherMs)
      waiting.delete(key)
      return run(key, batch.calls)
    }
    const batch = { calls: 0, result: current.then(next, next) }
    waiting.set(key, batch)
    return batch
  }

  return async (key) => {
    const current = running.get(key)
    const batch = waiting.get(key) ?? (current && newBatch(key, current))
    if (batch === undefined) return { result: await run(key, 1), calls: 1, index: 0 }
    const index = batch.calls++
    const result = await batch.result
    return { result, calls: batch.calls, index }
  }
}
