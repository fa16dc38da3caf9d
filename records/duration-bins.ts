/** Durations, counted in bins: the first below 1 ms, the last from 10 s, and between them each is
 *  16 % wider than the previous one. Tables store the count of each bin in a column of its own. */

const BINS = 64
/** Longer durations are not told apart. */
export const LAST_BIN_FROM_MS = 10_000
/** The logarithm of the factor from the lower to the upper end of a bin. */
const LOG_GROWTH = Math.log(LAST_BIN_FROM_MS) / (BINS - 2)

/** From the shortest to the longest durations. */
export const binColumns = Array.from({ length: BINS }, (_, bin) => `d${bin}`)

/** The columns of a duration and of all longer ones. */
export function binColumnsFrom(durationMs: number): string[] {
  return binColumns.slice(toBin(durationMs))
}

export function binColumn(durationMs: number): string {
  return `d${toBin(durationMs)}`
}

function toBin(durationMs: number): number {
  if (durationMs < 1) return 0
  if (durationMs >= LAST_BIN_FROM_MS) return BINS - 1
  return 1 + Math.floor(Math.log(durationMs) / LOG_GROWTH)
}

/** A number of durations from `low` to `high`, in milliseconds. The last bin also counts all longer
 *  ones. */
export interface Bin {
  count: number
  low: number
  high: number
}

export function toBins(countOf: (column: string) => number): Bin[] {
  return binColumns.map((column, bin) => ({
    count: countOf(column),
    low: bin === 0 ? 0 : Math.exp((bin - 1) * LOG_GROWTH),
    high: Math.exp(bin * LOG_GROWTH),
  }))
}

/** Nearest rank, interpolated in its bin. `bins` are sorted; `share` is above 0, and at most 1. 0 if all bins
 *  are empty. */
export function percentile(bins: Bin[], share: number): number {
  const rank = Math.ceil(share * bins.reduce((total, { count }) => total + count, 0))
  let before = 0
  for (const { count, low, high } of bins) {
    if (count > 0 && before + count >= rank)
      return count === 1 ? low : low + ((high - low) * (rank - before - 1)) / (count - 1)
    before += count
  }
  return 0
}
