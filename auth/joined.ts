/** Calls that ask the same at the same time, answered together. */

export interface Joined<T> {
  result: T
  /** How many were answered together, and which of them this one was, from 0. */
  calls: number
  index: number
}

interface Group<T> {
  calls: number
  result?: Promise<T>
}

/** While `work` is under way for a key, the calls for it that come meanwhile wait, and then share the next run of it: each call is answered
 *  from what was true after it was made, and a client that asks often at once costs few queries. */
export function joined<T>(
  work: (key: string, calls: number) => Promise<T>,
): (key: string) => Promise<Joined<T>> {
  const running = new Map<string, Promise<unknown>>()
  const waiting = new Map<string, Group<T>>()

  function run(key: string, group: Group<T>): Promise<T> {
    if (waiting.get(key) === group) waiting.delete(key)
    const result = work(key, group.calls)
    running.set(key, result)
    const done = (): void => {
      if (running.get(key) === result) running.delete(key)
    }
    result.then(done, done)
    return result
  }

  return async (key) => {
    let group = waiting.get(key)
    const index = group?.calls ?? 0
    if (group) group.calls++
    else {
      const own: Group<T> = { calls: 1 }
      const before = running.get(key)
      if (before) {
        waiting.set(key, own)
        const next = (): Promise<T> => run(key, own)
        own.result = before.then(next, next)
      } else own.result = run(key, own)
      group = own
    }
    const result = (await group.result) as T
    return { result, calls: group.calls, index }
  }
}
