/** Mistyped words of the contract. A word is a keyword that begins with `x-`. Tools ignore unknown
 *  keywords without a message. */
import { KNOWN_WORDS } from '../diff/words.ts'
import type { Contract } from '../model/contract.ts'
import { distanceBetween } from '../model/nearest.ts'
import { hasNamesAsKeys, listNodes } from '../model/nodes.ts'
import type { Finding, Path, Source } from '../model/source.ts'

/** A mistyped word has at most this many wrong letters. A word with more is the author's own. */
const MAX_DISTANCE = 2
/** Shorter words, such as `x-id` and `x-at`, differ in few letters anyway. */
const MIN_LENGTH = 6

export function findMistypedWords({ sources }: Contract): Finding[] {
  return Object.values(sources).flatMap((source) =>
    listNodes(source.root).flatMap(({ path, value }) =>
      hasNamesAsKeys(path)
        ? []
        : Object.keys(value).flatMap((key) => findMistyped(source, path, key)),
    ),
  )
}

function findMistyped(source: Source, path: Path, key: string): Finding[] {
  const intended = findIntendedWord(key)
  if (intended === undefined) return []
  const problem = `${key} is unknown and has no effect: write ${intended}, or another name for a word of your own`
  return [{ source, path: [...path, key], problem }]
}

function findIntendedWord(key: string): string | undefined {
  if (!key.startsWith('x-') || key.length < MIN_LENGTH || KNOWN_WORDS.includes(key))
    return undefined
  return KNOWN_WORDS.find((word) => distanceBetween(key, word) <= MAX_DISTANCE)
}
