import { hash } from 'node:crypto'

/** Numbers that look random, and are the same for the same seed. */
export interface Random {
  /** From `min` up to, but not including, `max`. */
  between(min: number, max: number): number
  /** Undefined: there is nothing to choose from. */
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
