import fc from 'fast-check'
import type { Check, Run } from './run.ts'

const MAX_SHRINKING_MS = 15_000

/** A check that tries `runs` random values. fast-check shrinks the first value for which `holds`
 *  throws, and `perform` throws the error of the shrunk value. */
export function randomCheck<T>(
  { options, records }: Run,
  { what, runs }: { what: string; runs: number },
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Check {
  return {
    what,
    async perform() {
      const { createdCount } = records
      let shrinksUntil = Number.POSITIVE_INFINITY
      const property = fc.asyncProperty(values, async (value) => {
        // After the time limit, every value passes, which ends the shrinking.
        if (Date.now() > shrinksUntil) return
        try {
          await holds(value)
        } catch (error) {
          shrinksUntil = Math.min(shrinksUntil, Date.now() + MAX_SHRINKING_MS)
          throw error
        } finally {
          await records.cleanUp(createdCount)
        }
      })
      const details = await fc.check(property, { seed: options.seed, numRuns: runs })
      if (details.failed) throw details.errorInstance
    },
  }
}
