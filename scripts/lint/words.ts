/** Mistyped words of the contract. A word is a keyword that begins with `x-`. Tools ignore unknown
 *  keywords without a message. */
import type { Contract } from '../model/contract.ts'
import { distanceBetween } from '../model/nearest.ts'
import { hasNamesAsKeys, listNodes } from '../model/nodes.ts'
import type { Finding, Path, Source } from '../model/source.ts'

/** The words that the toolchain reads. */
const WORDS = [
  'x-at-most',
  'x-counts-down',
  'x-currency',
  'x-default',
  'x-deprecated-since',
  'x-echoes',
  'x-emits',
  'x-emits-when',
  'x-emitted-by-system',
  'x-enum-descriptions',
  'x-enum-varnames',
  'x-epoch-seconds',
  'x-equals',
  'x-event-list',
  'x-extensible-enum',
  'x-filter',
  'x-forbidden-with',
  'x-idempotency-key',
  'x-lists',
  'x-max-record-bytes',
  'x-module',
  'x-modules',
  'x-names-fields',
  'x-parameters',
  'x-permission',
  'x-rate-limit',
  'x-record',
  'x-refers-to',
  'x-refers-with',
  'x-refusals',
  'x-response-headers',
  'x-retry-seconds',
  'x-returned-by',
  'x-service-signature',
  'x-signature',
  'x-subscribable',
  'x-sunset',
  'x-time-of',
  'x-trace-of',
  'x-unmatched-requests',
  'x-when-deleted',
]

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
  if (!key.startsWith('x-') || key.length < MIN_LENGTH || WORDS.includes(key)) return undefined
  return WORDS.find((word) => distanceBetween(key, word) <= MAX_DISTANCE)
}
