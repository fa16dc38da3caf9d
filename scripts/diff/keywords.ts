/** Compares the keywords of two revisions of a schema. */
import { isDeepStrictEqual } from 'node:util'
import { isNotBlankPattern, readDefault, type Schema, TEXT_PATTERN } from '../model/schema.ts'
import type { SchemaChange } from './rules.ts'

interface Bound {
  keyword: string
  name: string
  /** A higher value allows more. */
  isUpper: boolean
}

const BOUNDS: Bound[] = [
  { keyword: 'maximum', name: 'max', isUpper: true },
  { keyword: 'minimum', name: 'min', isUpper: false },
  { keyword: 'maxLength', name: 'max-length', isUpper: true },
  { keyword: 'minLength', name: 'min-length', isUpper: false },
  { keyword: 'maxItems', name: 'max-items', isUpper: true },
  { keyword: 'minItems', name: 'min-items', isUpper: false },
]
/** Keywords that are compared below, or do not matter. */
const KNOWN = new Set([
  ...BOUNDS.map(({ keyword }) => keyword),
  ...[
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
  ],
  ...[
    'additionalProperties',
    'title',
    'description',
    'example',
    'examples',
    'externalDocs',
    'deprecated',
    // The alternatives are compared.
    'discriminator',
  ],
])

/** Calls `add` for each keyword that differs. */
export function compareKeywords(old: Schema, now: Schema, add: Add): void {
  compareTypes(old, now, add)
  compareEnums(old, now, add)
  for (const bound of BOUNDS) compareBounds(old, now, bound, add)
  compareFormats(old, now, add)
  if (old.pattern === undefined && isNotBlankPattern(now.pattern))
    add('blank-text-refused', 'must not be only white space')
  else if (old.pattern === undefined && now.pattern === TEXT_PATTERN)
    add('nul-refused', 'must not contain NUL')
  else compareText('pattern', old, now, add)
  if (!isDeepStrictEqual(old.const, now.const))
    add('const-changed', `is ${show(now.const)} instead of ${show(old.const)}`)
  const [oldDefault, newDefault] = [readDefault(old), readDefault(now)]
  if (!isDeepStrictEqual(oldDefault, newDefault))
    add(
      'default-value-changed',
      `has the default ${show(newDefault)} instead of ${show(oldDefault)}`,
    )
  if (!old.uniqueItems && now.uniqueItems) add('unique-items-added', 'must not repeat an item')
  if (old.uniqueItems && !now.uniqueItems) add('unique-items-removed', 'may repeat an item')
  if (old.additionalProperties !== false && now.additionalProperties === false)
    add('additional-properties-disallowed', 'accepts only declared fields')
  if (old.additionalProperties === false && now.additionalProperties !== false)
    add('additional-properties-allowed', 'accepts undeclared fields')
  const others = new Set(
    [...Object.keys(old), ...Object.keys(now)].filter(
      (keyword) => !KNOWN.has(keyword) && !keyword.startsWith('x-'),
    ),
  )
  for (const keyword of others)
    if (!isDeepStrictEqual(old[keyword], now[keyword]))
      add('schema-changed', `has another ${keyword}: look at it`)
}

type Add = (change: SchemaChange, what: string) => void

/** The type `null` equals nullable. */
function listTypes({ type, nullable }: Schema): { types: string[]; isNullable: boolean } {
  const all = type === undefined ? [] : [type].flat()
  return {
    types: all.filter((name) => name !== 'null').sort(),
    isNullable: nullable === true || all.includes('null'),
  }
}

function compareTypes(old: Schema, now: Schema, add: Add): void {
  const [before, after] = [listTypes(old), listTypes(now)]
  const isWidened = (wide: string[], narrow: string[]): boolean =>
    wide.length === 0 ||
    narrow.every((type) => wide.includes(type) || (type === 'integer' && wide.includes('number')))
  if (before.types.join() !== after.types.join()) {
    const format = ({ types }: typeof before): string => types.join(' or ') || 'of any type'
    const what = `is ${format(after)} instead of ${format(before)}`
    if (isWidened(after.types, before.types)) add('type-generalized', what)
    else if (isWidened(before.types, after.types) && before.types.length > 0)
      add('type-specialized', what)
    else add('type-changed', what)
  }
  if (!before.isNullable && after.isNullable) add('became-nullable', 'can be null')
  if (before.isNullable && !after.isNullable) add('became-not-nullable', 'cannot be null')
}

function compareEnums(old: Schema, now: Schema, add: Add): void {
  const [before, after] = [old.enum, now.enum]
  if (before === undefined || after === undefined) {
    if (after) add('became-enum', `is one of ${after.map(show).join(', ')}`)
    if (before) add('enum-unset', 'is no longer an enumeration')
    return
  }
  // `compareKeywords` reports null as nullable.
  for (const value of before)
    if (value !== null && !after.includes(value))
      add('enum-value-removed', `is never ${show(value)}`)
  for (const value of after)
    if (value !== null && !before.includes(value)) add('enum-value-added', `can be ${show(value)}`)
}

function compareBounds(
  old: Schema,
  now: Schema,
  { keyword, name, isUpper }: Bound,
  add: Add,
): void {
  const unset = isUpper ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
  const [before, after] = [old[keyword] ?? unset, now[keyword] ?? unset].map(Number) as [
    number,
    number,
  ]
  const format = (value: number): string => (Number.isFinite(value) ? String(value) : 'none')
  if (before !== after)
    add(
      `${name}-${after > before ? 'increased' : 'decreased'}` as SchemaChange,
      `has the ${keyword} ${format(after)} instead of ${format(before)}`,
    )
}

const INT32_LIMIT = 2 ** 31

/** A number format that allows every value of the schema changes nothing on the wire. `int64` and `double`
 *  are wider than what JSON parsers read exactly. */
function compareFormats(old: Schema, now: Schema, add: Add): void {
  const isNumeric = ['integer', 'number'].includes(String(now.type))
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = now
  const isWideEnough =
    now.format === 'int64' ||
    now.format === 'double' ||
    (now.format === 'int32' && minimum >= -INT32_LIMIT && maximum < INT32_LIMIT)
  if (isNumeric && old.format === undefined && isWideEnough)
    add('number-format-added', `has the format ${now.format}`)
  else compareText('format', old, now, add)
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
