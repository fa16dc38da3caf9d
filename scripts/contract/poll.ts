/** Reads again and again until a condition holds. */
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 10

/** Returns the first value for which `isDone` holds, or the last one before the time limit. */
export async function readUntil<T>(
  read: () => T | Promise<T>,
  isDone: (value: T) => boolean,
  timeoutMs: number,
  everyMs = POLL_MS,
): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await read()
    if (isDone(value) || Date.now() >= deadline) return value
    await delay(everyMs)
  }
}
