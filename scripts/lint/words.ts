/** Words of the contract that are mistyped: a tool would ignore them without a message. */
import type { Contract } from '../model/contract.ts'
import { distanceBetween } from '../model/nearest.ts'
import { type Finding, isObject, type Path, type Source } from '../model/source.ts'

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

/** More mistakes make another word. */
const MAX_DISTANCE = 2
/** Of short words, such as `x-id` and `x-at`, most are near each other. */
const MIN_LENGTH = 6
/** Their keys are names that the contract chooses. */
const MAPS_OF_NAMES = [
  'properties',
  'headers',
  'example',
  'examples',
  'default',
  'value',
  'payload',
]

export function mistypedWords({ sources }: Contract): Finding[] {
  return Object.values(sources).flatMap((source) => findIn(source, source.root, []))
}

function findIn(source: Source, node: unknown, path: Path): Finding[] {
  if (Array.isArray(node))
    return node.flatMap((item, index) => findIn(source, item, [...path, index]))
  if (!isObject(node)) return []
  const hasNames = MAPS_OF_NAMES.includes(String(path.at(-1)))
  return Object.entries(node).flatMap(([key, value]) => {
    const here = [...path, key]
    const meant = hasNames ? undefined : findMeant(key)
    const problem = `${key} is unknown and has no effect: write ${meant}, or another name for a word of your own`
    const own = meant === undefined ? [] : [{ source, path: here, problem }]
    return [...own, ...findIn(source, value, here)]
  })
}

/** The known word that the unknown one resembles. */
function findMeant(key: string): string | undefined {
  if (!key.startsWith('x-') || key.length < MIN_LENGTH || WORDS.includes(key)) return undefined
  return WORDS.find((word) => distanceBetween(key, word) <= MAX_DISTANCE)
}
