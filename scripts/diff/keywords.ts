/** Compares the keywords of two revisions of a schema. */
import { isDeepStrictEqual } from 'node:util'
import {
  ANNOTATIONS,
  isNotBlankPattern,
  readDefault,
  type Schema,
  TEXT_PATTERN,
} from '../model/schema.ts'
import type { Direction, SchemaChange } from './rules.ts'

interface Bound {
  keyword: string
  /** The keyword in the names of rules, for example `max-length` in `max-length-increased`. */
  name: string
  /** Whether a higher value allows more. */
  isUpper: boolean
}

export const BOUNDS: readonly Bound[] = [
  { keyword: 'maximum', name: 'max', isUpper: true },
  { keyword: 'minimum', name: 'min', isUpper: false },
  { keyword: 'maxLength', name: 'max-length', isUpper: true },
  { keyword: 'minLength', name: 'min-length', isUpper: false },
  { keyword: 'maxItems', name: 'max-items', isUpper: true },
  { keyword: 'minItems', name: 'min-items', isUpper: false },
  { keyword: 'maxProperties', name: 'max-properties', isUpper: true },
  { keyword: 'minProperties', name: 'min-properties', isUpper: false },
]
/** Keywords with a comparison of their own, here or in schemas.ts. */
const COMPARED_KEYWORDS = [
  ...BOUNDS.map(({ keyword }) => keyword),
  '$ref',
  'type',
  'nullable',
  'enum',
  'const',
  'format',
  'pattern',
  'default',
  'uniqueItems',
  'items',
  'properties',
  'required',
  'additionalProperties',
  'discriminator',
  'readOnly',
  'writeOnly',
  'oneOf',
  'anyOf',
  'allOf',
]
/** Keywords that `compareOthers` skips: other functions compare them, or they only describe. */
const SKIPPED_KEYWORDS = new Set([...COMPARED_KEYWORDS, ...ANNOTATIONS])

/** Calls `add` for each change of a keyword. schemas.ts compares the subschemas. */
export function compareKeywords(old: Schema, now: Schema, direction: Direction, add: Add): void {
  compareTypes(old, now, add)
  compareEnums(old, now, direction, add)
  for (const bound of BOUNDS) compareBounds(old, now, bound, add)
  compareFormats(old, now, add)
  comparePatterns(old, now, add)
  compareConstants(old, now, add)
  compareDefaults(old, now, add)
  if (!old.uniqueItems && now.uniqueItems) add('unique-items-added', 'must not repeat an item')
  if (old.uniqueItems && !now.uniqueItems) add('unique-items-removed', 'may repeat an item')
  compareOpenness(old, now, add)
  compareAccess(old, now, add)
  if (
    old['x-signature'] !== undefined &&
    !isDeepStrictEqual(old['x-signature'], now['x-signature'])
  )
    add('signature-changed', 'is signed in another way')
  if (!isDeepStrictEqual(old.discriminator, now.discriminator))
    add('discriminator-changed', 'has another discriminator')
  compareOthers(old, now, add)
}

function comparePatterns(old: Schema, now: Schema, add: Add): void {
  if (old.pattern === undefined && isNotBlankPattern(now.pattern))
    add('blank-text-refused', 'must not be only white space')
  else if (old.pattern === undefined && now.pattern === TEXT_PATTERN)
    add('nul-refused', 'must not contain NUL')
  else compareText('pattern', old, now, add)
}

/** Compares constants if both revisions have one. `compareEnums` reports a constant that only one
 *  revision has. */
function compareConstants(old: Schema, now: Schema, add: Add): void {
  const isInBoth = old.const !== undefined && now.const !== undefined
  if (isInBoth && !isDeepStrictEqual(old.const, now.const))
    add('const-changed', `is ${show(now.const)} instead of ${show(old.const)}`)
}

function compareDefaults(old: Schema, now: Schema, add: Add): void {
  const [before, after] = [readDefault(old), readDefault(now)]
  if (!isDeepStrictEqual(before, after))
    add('default-value-changed', `has the default ${show(after)} instead of ${show(before)}`)
}

/** Compares which undeclared fields an object may have. */
function compareOpenness(old: Schema, now: Schema, add: Add): void {
  const [before, after] = [old.additionalProperties ?? true, now.additionalProperties ?? true]
  if (before !== false && after === false)
    add('additional-properties-disallowed', 'accepts only declared fields')
  if (before === false && after !== false)
    add('additional-properties-allowed', 'accepts undeclared fields')
  if (before === true && typeof after === 'object')
    add('constraint-added', 'has a schema for undeclared fields')
  if (typeof before === 'object' && after === true)
    add('constraint-removed', 'has no schema for undeclared fields')
}

function compareAccess(old: Schema, now: Schema, add: Add): void {
  if (!old.readOnly && now.readOnly) add('became-read-only', 'cannot be sent')
  if (old.readOnly && !now.readOnly) add('became-not-read-only', 'can be sent')
  if (!old.writeOnly && now.writeOnly) add('became-write-only', 'is never returned')
  if (old.writeOnly && !now.writeOnly) add('became-not-write-only', 'can be returned')
}

/** Compares the keywords that no other function compares. Each of them refuses values. Also reports
 *  added and removed schemas of `items`. */
function compareOthers(old: Schema, now: Schema, add: Add): void {
  const keywords = new Set(
    [...Object.keys(old), ...Object.keys(now)].filter(
      (keyword) => !SKIPPED_KEYWORDS.has(keyword) && !keyword.startsWith('x-'),
    ),
  )
  for (const keyword of keywords) {
    const [before, after] = [old[keyword], now[keyword]]
    if (before === undefined) add('constraint-added', `has ${keyword}: ${show(after)}`)
    else if (after === undefined)
      add('constraint-removed', `no longer has ${keyword}: ${show(before)}`)
    else if (!isDeepStrictEqual(before, after))
      add('constraint-changed', `has ${keyword}: ${show(after)} instead of ${show(before)}`)
  }
  // schemas.ts compares the schemas of `items` that both revisions have.
  if (!old.items && now.items) add('constraint-added', 'has a schema for its items')
  if (old.items && !now.items) add('constraint-removed', 'has no schema for its items')
}

type Add = (change: SchemaChange, what: string) => void

/** The type `null` means the same as `nullable: true`. */
function listTypes({ type, nullable }: Schema): { types: string[]; isNullable: boolean } {
  const all = type === undefined ? [] : [type].flat()
  return {
    types: all.filter((name) => name !== 'null').sort(),
    isNullable: nullable === true || all.includes('null'),
  }
}

function compareTypes(old: Schema, now: Schema, add: Add): void {
  const [before, after] = [listTypes(old), listTypes(now)]
  // A schema without a type accepts values of any type.
  const isWidened = (wide: string[], narrow: string[]): boolean =>
    wide.length === 0 ||
    (narrow.length > 0 &&
      narrow.every(
        (type) => wide.includes(type) || (type === 'integer' && wide.includes('number')),
      ))
  if (before.types.join() !== after.types.join()) {
    const format = ({ types }: typeof before): string => types.join(' or ') || 'of any type'
    const what = `is ${format(after)} instead of ${format(before)}`
    if (isWidened(after.types, before.types)) add('type-generalized', what)
    else if (isWidened(before.types, after.types)) add('type-specialized', what)
    else add('type-changed', what)
  }
  if (!before.isNullable && after.isNullable) add('became-nullable', 'can be null')
  if (before.isNullable && !after.isNullable) add('became-not-nullable', 'cannot be null')
}

function compareEnums(old: Schema, now: Schema, direction: Direction, add: Add): void {
  const [before, after] = [listValues(old, now), listValues(now, old)]
  if (before === undefined || after === undefined) {
    if (after) add('became-enum', `is one of ${after.map(show).join(', ')}`)
    if (before) add('enum-unset', 'is no longer an enumeration')
    return
  }
  const verb = direction === 'request' ? 'no longer takes' : 'is never'
  // `compareTypes` reports null.
  for (const value of before)
    if (value !== null && !after.includes(value))
      add('enum-value-removed', `${verb} ${show(value)}`)
  const isExtensible = old['x-extensible-enum'] === true
  for (const value of after)
    if (value !== null && !before.includes(value))
      add(
        isExtensible ? 'extensible-enum-value-added' : 'enum-value-added',
        `can be ${show(value)}`,
      )
  if (!isExtensible && now['x-extensible-enum'] === true)
    add('became-extensible-enum', 'can get new values without notice')
  if (!isDeepStrictEqual(old['x-enum-varnames'], now['x-enum-varnames']))
    add('enum-names-changed', 'has other names for its values in generated code')
}

/** The values of `enum`. `other` is the same schema in the other revision. A constant counts as an
 *  `enum` with one value, unless `other` also has a constant: then `compareConstants` compares the
 *  two. */
function listValues(schema: Schema, other: Schema): readonly unknown[] | undefined {
  const isOnlyHere = schema.const !== undefined && other.const === undefined
  return isOnlyHere ? [schema.const] : schema.enum
}

function compareBounds(
  old: Schema,
  now: Schema,
  { keyword, name, isUpper }: Bound,
  add: Add,
): void {
  const unset = isUpper ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  const before = Number(old[keyword] ?? unset)
  const after = Number(now[keyword] ?? unset)
  const format = (value: number): string => (Number.isFinite(value) ? String(value) : 'none')
  if (before !== after)
    add(
      `${name}-${after > before ? 'increased' : 'decreased'}` as SchemaChange,
      `has the ${keyword} ${format(after)} instead of ${format(before)}`,
    )
}

const INT32_LIMIT = 2 ** 31

/** An added or removed number format changes only generated code if the format allows every value
 *  of the schema. */
function compareFormats(old: Schema, now: Schema, add: Add): void {
  if (old.format === undefined && isWideFormat(now.format, now))
    add('number-format-added', `has the format ${now.format}`)
  else if (now.format === undefined && isWideFormat(old.format, now))
    add('number-format-removed', `no longer has the format ${old.format}`)
  else compareText('format', old, now, add)
}

/** Whether the number format allows every value of the schema. `int64` and `double` do in practice:
 *  many JSON parsers round wider numbers. */
function isWideFormat(format: string | undefined, { type, minimum, maximum }: Schema): boolean {
  if (type !== 'integer' && type !== 'number') return false
  const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number
  const fitsInt32 =
    (minimum ?? NEGATIVE_INFINITY) >= -INT32_LIMIT && (maximum ?? POSITIVE_INFINITY) < INT32_LIMIT
  return format === 'int64' || format === 'double' || (format === 'int32' && fitsInt32)
}

function compareText(keyword: 'format' | 'pattern', old: Schema, now: Schema, add: Add): void {
  const [before, after] = [old[keyword], now[keyword]]
  if (before === after) return
  if (before === undefined) add(`${keyword}-added`, `has the ${keyword} ${after}`)
  else if (after === undefined) add(`${keyword}-removed`, `no longer has the ${keyword} ${before}`)
  else add(`${keyword}-changed`, `has the ${keyword} ${after} instead of ${before}`)
}

export function show(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value)
}
