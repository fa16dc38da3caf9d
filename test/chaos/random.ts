import { hash } from 'node:crypto'

/** Pseudo-random numbers, equal for equal seeds. */
export interface Random {
  /** `min` is included, `max` is not. */
  between(min: number, max: number): number
  /** Undefined for an empty list. */
  pick<T>(from: readonly T[]): T | undefined
  shuffled<T>(items: readonly T[]): T[]
}

export function newRandom(seed: string): Random {
  let drawn = 0
  const share = (): number =>
    hash('sha256', `${seed}:${drawn++}`, 'buffer').readUInt32BE() / 2 ** 32
  return {
    between: (min, max) => min + share() * (max - min),
    pick: (from) => from[Math.floor(share() * from.length)],
    shuffled: (items) =>
      items
        .map((item) => ({ item, at: share() }))
        .sort((a, b) => a.at - b.at)
        .map(({ item }) => item),
  }
}
