/** Compares the words of two revisions of the contract. A word is a keyword that begins with `x-`. */
import { isDeepStrictEqual } from 'node:util'
import { listNodes } from '../model/nodes.ts'
import { isObject, type Sources } from '../model/source.ts'
import { show } from './keywords.ts'
import type { Level } from './rules.ts'

/** The level of each change of a value. Null: the change is not listed. */
interface WordRule {
  added: Level | null
  removed: Level
  /** Applies to values that are no numbers. Default: breaking. */
  changed?: null
  /** Apply to numbers. Default: breaking. */
  increased?: Level
  decreased?: Level
  /** The order of the entries counts, and an entry can be there twice. */
  isOrdered?: boolean
  /** Each entry of the value has a rule of its own, also if the value is new or gone. */
  hasParts?: boolean
}

/** What the service does. Clients and receivers rely on it. */
const PROMISE: WordRule = { added: null, removed: 'breaking' }
/** What the service refuses or leaves out. */
const LIMIT: WordRule = { added: 'breaking', removed: 'safe' }
/** What the service refuses. Readers rely on it, too: a paid payment keeps its amount. */
const INVARIANT: WordRule = { added: 'breaking', removed: 'risky' }
/** A part of a condition: with another condition, all of the word means something else. */
const EXACT: WordRule = { added: 'breaking', removed: 'breaking' }
/** The largest number that the service returns. */
const HIGHEST: WordRule = { ...PROMISE, increased: 'breaking', decreased: 'safe' }
const PARTS: WordRule = { ...PROMISE, hasParts: true }

/** By the path to the value: the name of the word, and the keys below it. `*` is any key. Entries of
 *  lists are keys. The first rule for a path applies. A path without a rule has that of the path
 *  above it. */
export const WORD_RULES: Record<string, WordRule> = {
  // The document
  // docs/versioning.md permits a first limit.
  'x-max-record-bytes': { ...LIMIT, added: 'risky', increased: 'safe', decreased: 'breaking' },
  'x-list-parameters': PROMISE,
  'x-merge-patch': PROMISE,
  'x-lists': PROMISE,
  // Without this key, `ties` always ascends.
  'x-lists.sort.ties_follow': EXACT,
  'x-lists.sort.twice': { added: 'risky', removed: 'safe' },
  'x-response-headers': PROMISE,
  // Operations
  'x-batch': PROMISE,
  'x-batch.max_body_bytes': { ...PROMISE, increased: 'safe' },
  'x-emits-when': PARTS,
  'x-emits-when.*': INVARIANT,
  'x-emits-when.*.*': EXACT,
  'x-event-list': PROMISE,
  'x-export-file': PROMISE,
  // Without it, keys without the permission could read more of the account's data.
  'x-forbidden-with': EXACT,
  'x-import': PROMISE,
  'x-refusals': PARTS,
  // A rule can be only its reason, and get a condition later.
  'x-refusals.*': { ...LIMIT, changed: null },
  'x-refusals.*.accepts': PROMISE,
  'x-refusals.*.ignore_case': LIMIT,
  'x-refusals.*.reason': { ...LIMIT, changed: null },
  // The contract may name the values of a rule later.
  'x-refusals.*.refuses': { added: 'risky', removed: 'risky' },
  'x-refusals.*.unique': { added: 'risky', removed: 'risky' },
  // Parameters
  'x-filter': PROMISE,
  'x-filter.without': PROMISE,
  'x-filter.*': EXACT,
  'x-idempotency-key': PROMISE,
  // Headers of responses
  'x-at-most': HIGHEST,
  'x-counts-down': PROMISE,
  'x-counts-from': PROMISE,
  'x-echoes': PROMISE,
  'x-epoch-seconds': HIGHEST,
  'x-parameters': PROMISE,
  'x-scope': EXACT,
  // Schemas
  'x-currency': PROMISE,
  'x-names-fields': PROMISE,
  'x-record': PARTS,
  'x-record.computed': PARTS,
  'x-record.computed.*': PROMISE,
  'x-record.computed.*.from': { ...PROMISE, isOrdered: true },
  'x-record.finished_when': PROMISE,
  // Clients that wait for a final value do not know a new one.
  'x-record.finished_when.*': { added: 'risky', removed: 'breaking' },
  'x-record.fixed_when': PARTS,
  'x-record.fixed_when.*': INVARIANT,
  'x-record.fixed_when.*.*': EXACT,
  'x-record.include': PARTS,
  'x-record.include.*': PROMISE,
  'x-record.set_when': PARTS,
  'x-record.set_when.*': PROMISE,
  'x-record.set_when.*.*': EXACT,
  'x-record.states': PARTS,
  'x-record.states.*': INVARIANT,
  // A new value of an extensible enumeration comes with new changes of state.
  'x-record.states.*.*': { added: 'risky', removed: 'breaking' },
  'x-record.unique': INVARIANT,
  'x-record.unique.*': EXACT,
  'x-refers-to': PROMISE,
  'x-refers-with': LIMIT,
  'x-returned-by': LIMIT,
  'x-returned-by.*': PROMISE,
  'x-shown-once': LIMIT,
  'x-when-deleted': PROMISE,
  // Deliveries
  'x-equals': PROMISE,
  'x-retry-seconds': { ...PROMISE, isOrdered: true },
  'x-time-of': PROMISE,
  'x-timeout-seconds': { ...PROMISE, increased: 'safe' },
  'x-trace-of': PROMISE,
}

/** Words without a rule in `WORD_RULES`, each with the reason. */
export const OTHER_WORDS: Record<string, string> = {
  'x-default': 'keywords.ts compares it like `default`.',
  'x-deprecated-since': 'deprecations.ts compares it.',
  'x-emits': 'operations.ts compares it.',
  'x-emitted-by-system': 'events.ts compares it.',
  'x-enum-descriptions': 'It only describes.',
  'x-enum-varnames': 'keywords.ts compares it.',
  'x-extensible-enum': 'keywords.ts compares it.',
  'x-module': 'It places pages of the console. `x-permission` says what a key may do.',
  'x-modules': 'It names the values of `x-module` and `x-permission`.',
  'x-permission': 'operations.ts compares it.',
  'x-rate-limit': 'operations.ts compares it.',
  'x-signature': 'keywords.ts compares it.',
  'x-subscribable': 'events.ts compares it.',
  'x-sunset': 'deprecations.ts compares it.',
  'x-test-value': 'It is about the contract tests.',
  'x-untested': 'It is about the contract tests.',
  'x-unmatched-requests': 'operations.ts compares it like the responses of an operation.',
}

const WORDS = Object.keys(WORD_RULES).filter((path) => !path.includes('.'))

/** The words that the toolchain reads. */
export const KNOWN_WORDS: readonly string[] = [...WORDS, ...Object.keys(OTHER_WORDS)]

export interface WordFinding {
  /** From the object to the value. */
  path: readonly string[]
  /** The name of the rule: the word and the change, for example `x-at-most-increased`. */
  id: string
  level: Level
  what: string
}

/** Compares the words of an object. No change is breaking if the base has the word nowhere: then the
 *  word describes what the service did before. */
export function compareWords(base: Sources, before: unknown, after: unknown): WordFinding[] {
  const [old, now] = [toEntries(before), toEntries(after)]
  const words = new Set([...old.keys(), ...now.keys()].filter((key) => WORDS.includes(key)))
  return [...words].flatMap((word) =>
    compareValues([word], old.get(word), now.get(word)).filter(
      ({ level }) => level !== 'breaking' || hasWord(base, word),
    ),
  )
}

function hasWord(sources: Sources, word: string): boolean {
  return Object.values(sources).some(({ root }) =>
    listNodes(root).some(({ value }) => Object.hasOwn(value, word)),
  )
}

function compareValues(path: readonly string[], old: unknown, now: unknown): WordFinding[] {
  if (isDeepStrictEqual(old, now)) return []
  const rule = findRule(path)
  const isInBoth = old !== undefined && now !== undefined
  if (isInBoth ? isObject(old) && isObject(now) : rule.hasParts && isObject(old ?? now)) {
    const [before, after] = [toEntries(old, rule), toEntries(now, rule)]
    const keys = [...new Set([...before.keys(), ...after.keys()])]
    return keys.flatMap((key) => compareValues([...path, key], before.get(key), after.get(key)))
  }
  const change = changeOf(old, now)
  const level = rule[change] === undefined ? 'breaking' : rule[change]
  if (level === null) return []
  return [{ path, id: `${path[0]}-${change}`, level, what: describe(path, old, now) }]
}

const PATHS = Object.keys(WORD_RULES).map((path) => path.split('.'))

function findRule(path: readonly string[]): WordRule {
  const matches = (steps: string[]): boolean =>
    steps.length === path.length && steps.every((step, index) => ['*', path[index]].includes(step))
  const found = PATHS.find(matches)
  return found ? (WORD_RULES[found.join('.')] as WordRule) : findRule(path.slice(0, -1))
}

/** By key. The key of a list's entry is the entry itself, unless the order counts. */
function toEntries(value: unknown, { isOrdered }: Partial<WordRule> = {}): Map<string, unknown> {
  if (!isObject(value)) return new Map()
  if (!Array.isArray(value) || isOrdered) return new Map(Object.entries(value))
  return new Map(value.map((entry) => [show(entry), entry]))
}

function changeOf(old: unknown, now: unknown) {
  if (old === undefined) return 'added'
  if (now === undefined) return 'removed'
  if (typeof old !== 'number' || typeof now !== 'number') return 'changed'
  return now > old ? 'increased' : 'decreased'
}

function describe(path: readonly string[], old: unknown, now: unknown): string {
  const isEntry = path.at(-1) === show(old ?? now)
  const name = path.slice(0, isEntry ? -1 : undefined).join('.')
  if (now === undefined) return `no longer has ${name}: ${show(old)}`
  const instead = old === undefined ? '' : ` instead of ${show(old)}`
  return `has ${name}: ${show(now)}${instead}`
}
