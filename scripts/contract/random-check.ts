/** A check of random values. */
import fc from 'fast-check'
import type { Check, Run } from './run.ts'

const MAX_SHRINKING_MS = 15_000

/** Tries this many values. fast-check shrinks a failing one first. */
export function randomCheck<T>(
  { options, records }: Run,
  { what, runs }: { what: string; runs: number },
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Check {
  return {
    what,
    async perform() {
      let shrinksUntil = Number.POSITIVE_INFINITY
      const tried = fc.asyncProperty(values, async (value) => {
        if (Date.now() > shrinksUntil) return
        try {
          await holds(value)
        } catch (error) {
          shrinksUntil = Math.min(shrinksUntil, Date.now() + MAX_SHRINKING_MS)
          throw error
        } finally {
          await records.cleanUpCheck()
        }
      })
      const details = await fc.check(tried, { seed: options.seed, numRuns: runs })
      if (details.failed) throw details.errorInstance
    },
  }
}
