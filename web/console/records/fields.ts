/** The fields of a form: of which kind each is by its schema, what a form holds of a value, and the value that a form holds. */

import type { FieldErrors } from '../../../errors.ts'
import { convertParameter } from '../../../operations/validation.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { referencedBy } from './resources.ts'

/** What is in a form: texts by the path of their field, such as `screening_questions.0.key`. What a text cannot say is beside it, such as
 *  `screening_questions.0.expected:kind`. */
export type Draft = URLSearchParams

export interface Field {
  path: string
  /** What it is called in the object that it is a part of: the last part of the path, which for a key of somebody's own may hold dots. */
  name: string
  schema: Schema
  isRequired: boolean
  kind: Kind
  /** Of an object. */
  parts?: Field[]
  /** For people, where the name is not. */
  label?: string
  hint?: string
  /** Other fields depend on what is in it. */
  isDriver?: boolean
  /** Of a field whose parts are not known yet. */
  waitsFor?: string
}

export interface Reading {
  /** What is empty is left out; in a change it is said. */
  isNew: boolean
  /** What is not even readable. */
  problems: FieldErrors
}

export type Kind =
  | 'reference'
  | 'choice'
  | 'yes_no'
  | 'time'
  | 'number'
  | 'text'
  | 'lines'
  | 'options'
  | 'joined'
  | 'groups'
  | 'group'
  | 'keyed'
  | 'scalar'
  | 'json'

interface KindRules {
  fits(schema: Schema, name: string): boolean
  write(draft: Draft, field: Field, value: unknown): void
  /** Undefined: it is not given. `current` is the value that a change begins with. */
  read(draft: Draft, field: Field, reading: Reading, current: unknown): unknown
}

const SCALARS = ['string', 'number', 'integer', 'boolean']

/** In the order in which they are asked whether a schema is theirs. */
const KINDS: Record<Kind, KindRules> = {
  reference: {
    fits: ({ type }, name) => type === 'string' && referencedBy(name) !== undefined,
    write: writeText,
    read: readText,
  },
  choice: {
    fits: (schema) => schema.enum !== undefined,
    write: writeText,
    read: (draft, field, reading) =>
      convert(readText(draft, field, reading), (text) => optionFor(text, field.schema)),
  },
  yes_no: {
    fits: ({ type }) => type === 'boolean',
    write: writeText,
    read: (draft, field, reading) => convert(readText(draft, field, reading), toBoolean),
  },
  time: {
    fits: ({ type, format }) => type === 'string' && format === 'date-time',
    write: (draft, field, value) => writeText(draft, field, convert(value, toLocal)),
    read: (draft, field, reading) => convert(readText(draft, field, reading), toInstant),
  },
  number: {
    fits: ({ type }) => type === 'integer' || type === 'number',
    write: writeText,
    read: (draft, field, reading) =>
      convert(readText(draft, field, reading), (text) => toNumber(text, field.schema)),
  },
  text: { fits: ({ type }) => type === 'string', write: writeText, read: readText },
  /** One on each line. */
  lines: {
    fits: ({ type, items }) => type === 'array' && items?.type === 'string' && !items.enum,
    write: writeLines,
    read: readLines,
  },
  options: {
    fits: ({ type, items }) => type === 'array' && items?.enum !== undefined,
    write: (draft, { path }, value) => {
      for (const one of listOf(value)) draft.append(path, String(one))
    },
    read: (draft, { path, schema }, { isNew }) => {
      const texts = draft.getAll(path).filter((text) => text !== '')
      const values = texts.map((text) => optionFor(text, schema.items ?? {}))
      return values.length === 0 && isNew ? undefined : values
    },
  },
  /** Options in one text with commas. */
  joined: {
    fits: () => false,
    write: (draft, { path }, value) => {
      for (const one of String(value).split(',')) draft.append(path, one)
    },
    read: (draft, { path }) => draft.getAll(path).filter(Boolean).join(',') || undefined,
  },
  /** Of each entry its parts. */
  groups: {
    fits: ({ type, items }) => type === 'array' && items?.properties !== undefined,
    write: (draft, field, value) => {
      for (const [index, item] of listOf(value).entries())
        writeAll(draft, partsAt(field, index), item)
    },
    read: (draft, field, reading, current) => {
      const groups = Array.from({ length: groupCount(draft, field) }, (_, index) =>
        readAll(draft, partsAt(field, index), reading, listOf(current)[index]),
      )
      return groups.length === 0 && reading.isNew ? undefined : groups
    },
  },
  group: {
    fits: ({ type, properties }) => type === 'object' && properties !== undefined,
    write: writeParts,
    read: readParts,
  },
  /** By keys that the contract leaves open, and something else lists: see keys.ts. */
  keyed: { fits: () => false, write: writeParts, read: readKeyed },
  /** A text, a number, or yes or no. */
  scalar: {
    fits: ({ oneOf }) => oneOf?.every(({ type = '' }) => SCALARS.includes(type)) ?? false,
    write: writeScalar,
    read: readScalar,
  },
  json: {
    fits: () => true,
    write: (draft, { path }, value) => draft.set(path, JSON.stringify(value, null, 2)),
    read: readJson,
  },
}

export function fieldOf(
  path: string,
  schema: Schema,
  isRequired: boolean,
  name = path.slice(path.lastIndexOf('.') + 1),
): Field {
  const kind =
    (Object.keys(KINDS) as Kind[]).find((candidate) => KINDS[candidate].fits(schema, name)) ??
    'json'
  return {
    path,
    name,
    schema,
    isRequired,
    kind,
    ...(kind === 'group' && { parts: partsOf(`${path}.`, schema) }),
  }
}

/** The fields of an object. `prefix` is of their paths. */
export function partsOf(prefix: string, { properties = {}, required = [] }: Schema): Field[] {
  return Object.entries(properties).map(([name, schema]) =>
    fieldOf(`${prefix}${name}`, schema, required.includes(name), name),
  )
}

/** The fields of one of several groups. */
export function partsAt({ path, schema }: Field, index: number): Field[] {
  return partsOf(`${path}.${index}.`, schema.items ?? {})
}

export function writeField(draft: Draft, field: Field, value: unknown): void {
  KINDS[field.kind].write(draft, field, value)
}

/** The value that the form holds. Where it holds what it would hold of `current`, that is it: not every value survives a form. */
export function readField(
  draft: Draft,
  field: Field,
  reading: Reading,
  current?: unknown,
): unknown {
  if (current !== undefined && isSame(draft, field, current)) return current
  return KINDS[field.kind].read(draft, field, reading, current)
}

/** Does the form hold what it would hold of the value? */
export function isSame(draft: Draft, field: Field, value: unknown): boolean {
  const other = new URLSearchParams()
  writeField(other, field, value)
  return textsOf(draft, field) === textsOf(other, field)
}

/** All that a form holds of a field, to be compared. */
export function textsOf(draft: Draft, { path }: Pick<Field, 'path'>): string {
  const own = [...draft].filter(
    ([name, value]) => belongsTo(name, path) && value !== '' && name !== countName(path),
  )
  return JSON.stringify(own.map(([name, value]) => [name, withLineFeeds(value)]).sort())
}

/** Puts what one form holds of a field in the place of what another does. */
export function copyField(to: Draft, from: Draft, { path }: Pick<Field, 'path'>): void {
  for (const name of [...to.keys()]) if (belongsTo(name, path)) to.delete(name)
  for (const [name, value] of from) if (belongsTo(name, path)) to.append(name, value)
}

export function isInForm(draft: Draft, { path }: Pick<Field, 'path'>): boolean {
  return [...draft.keys()].some((name) => belongsTo(name, path))
}

function belongsTo(name: string, path: string): boolean {
  return name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}:`)
}

function writeAll(draft: Draft, fields: Field[], value: unknown): void {
  for (const field of fields) {
    const own = ownOf(value, field)
    if (own !== undefined) writeField(draft, field, own)
  }
}

function readAll(
  draft: Draft,
  fields: Field[],
  reading: Reading,
  current: unknown,
): Record<string, unknown> {
  // An object is given as a whole.
  const inside = { ...reading, isNew: true }
  const entries = fields.map((field) => [
    field.name,
    readField(draft, field, inside, ownOf(current, field)),
  ])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function writeParts(draft: Draft, { parts = [] }: Field, value: unknown): void {
  writeAll(draft, parts, value)
}

function readParts(
  draft: Draft,
  { parts = [] }: Field,
  reading: Reading,
  current: unknown,
): unknown {
  const value = readAll(draft, parts, reading, current)
  return Object.keys(value).length === 0 && reading.isNew ? undefined : value
}

/** The contract would take text for a number here, and nobody would know. */
function readKeyed(draft: Draft, field: Field, reading: Reading, current: unknown): unknown {
  const value = readParts(draft, field, reading, current)
  for (const part of field.parts ?? [])
    if (
      part.kind === 'number' &&
      typeof ownOf(value, part) === 'string' &&
      ownOf(current, part) !== ownOf(value, part)
    )
      reading.problems[part.path] = ['must be a number.']
  return value
}

function ownOf(value: unknown, { name }: Field): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function writeText(draft: Draft, { path }: Field, value: unknown): void {
  draft.set(path, value === null ? '' : String(value))
}

function readText(draft: Draft, { path, schema }: Field, { isNew }: Reading): unknown {
  const text = withLineFeeds(draft.get(path) ?? '')
  if (text !== '') return text
  return isNew ? undefined : schema.nullable ? null : ''
}

/** Browsers send all line breaks as CRLF. */
function withLineFeeds(text: string): string {
  return text.replace(/\r\n?/g, '\n')
}

function convert(value: unknown, change: (text: string) => unknown): unknown {
  return typeof value === 'string' && value !== '' ? change(value) : value
}

/** An option need not be text. */
const optionFor = (text: string, { enum: options = [] }: Schema): unknown =>
  options.find((one) => String(one) === text) ?? text

const toBoolean = (text: string): unknown =>
  text === 'true' ? true : text === 'false' ? false : text

/** What is no number stays text, for the contract to refuse. */
function toNumber(text: string, { type }: Schema): unknown {
  if (type === 'integer') return convertParameter(text.trim(), 'integer')
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text.trim()) && Number.isFinite(Number(text))
    ? Number(text)
    : text
}

const LOCAL = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(:\d{2}(?:\.\d{1,3})?)?$/

/** The contract's time as a field for date and time takes it: in UTC, and no more exact than need be. */
export function toLocal(time: string): string {
  const at = new Date(time)
  return Number.isNaN(at.getTime()) ? time : at.toISOString().replace(/(:00)?\.000Z$|Z$/, '')
}

/** What such a field gives, as the contract takes it. Any other text stays as it is: it may be right by itself. */
export function toInstant(text: string): string {
  const [, minute, rest = ':00'] = LOCAL.exec(text) ?? []
  return minute === undefined ? text : `${minute}${rest}Z`
}

export function isLocal(text: string): boolean {
  return text === '' || LOCAL.test(text)
}

/** What kind of value the text of a field stands for. */
export const kindName = (path: string): string => `${path}:kind`
/** How many groups a form has, empty ones included. */
export const countName = (path: string): string => `${path}:count`

function writeLines(draft: Draft, { path }: Field, value: unknown): void {
  const lines = listOf(value).map(String)
  const isOneEach = lines.every((line) => line !== '' && !/[\r\n]/.test(line))
  if (!isOneEach) draft.set(kindName(path), 'json')
  draft.set(path, isOneEach ? lines.join('\n') : JSON.stringify(lines, null, 2))
}

function readLines(draft: Draft, field: Field, reading: Reading): unknown {
  if (draft.get(kindName(field.path)) === 'json') return readJson(draft, field, reading)
  const lines = withLineFeeds(draft.get(field.path) ?? '')
    .split('\n')
    .filter((line) => line !== '')
  return lines.length === 0 && reading.isNew ? undefined : lines
}

/** The kinds of a value that may be of several types: yes and no need no text. */
export const SCALAR_KINDS = { text: 'Text', number: 'Number', true: 'Yes', false: 'No' } as const

function writeScalar(draft: Draft, { path }: Field, value: unknown): void {
  const isBoolean = typeof value === 'boolean'
  draft.set(
    kindName(path),
    isBoolean ? String(value) : typeof value === 'number' ? 'number' : 'text',
  )
  draft.set(path, isBoolean ? '' : String(value))
}

function readScalar(draft: Draft, { path, schema }: Field, { problems }: Reading): unknown {
  const kind = draft.get(kindName(path))
  if (kind === 'true' || kind === 'false') return kind === 'true'
  const text = withLineFeeds(draft.get(path) ?? '')
  if (text === '') return undefined
  if (kind !== 'number') return text
  const value = toNumber(text, schema)
  if (typeof value !== 'number') problems[path] = ['must be a number.']
  return value
}

function readJson(draft: Draft, { path, schema }: Field, { isNew, problems }: Reading): unknown {
  const text = draft.get(path) ?? ''
  if (text.trim() === '') return isNew ? undefined : schema.nullable ? null : emptyOf(schema)
  try {
    return JSON.parse(text)
  } catch (error) {
    const where = /line \d+ column \d+/.exec((error as Error).message)?.[0]
    problems[path] = [`must be valid JSON${where === undefined ? '' : `: look at ${where}`}.`]
    return undefined
  }
}

const emptyOf = ({ type }: Schema): unknown => (type === 'array' ? [] : type === 'object' ? {} : '')

/** Enough for any contract: a form of more would be no form. */
const MOST_GROUPS = 200

/** How many groups the form holds, up to the last that has anything in it, or as many as it says. */
export function groupCount(draft: Draft, { path }: Pick<Field, 'path'>): number {
  const said = Number(draft.get(countName(path)) ?? 0)
  let count = Number.isSafeInteger(said) ? said : 0
  for (const name of draft.keys())
    if (name.startsWith(`${path}.`))
      count = Math.max(
        count,
        Number(/^\d{1,6}(?=\.)/.exec(name.slice(path.length + 1))?.[0] ?? -1) + 1,
      )
  return Math.min(MOST_GROUPS, count)
}

/** The same form without the groups that `isLeftOut`: those after one move up. */
export function withoutGroups(
  draft: Draft,
  field: Field,
  isLeftOut: (index: number) => boolean,
): Draft {
  const kept = Array.from({ length: groupCount(draft, field) }, (_, index) => index).filter(
    (index) => !isLeftOut(index),
  )
  const entries = [...draft].flatMap(([name, value]): [string, string][] => {
    if (!name.startsWith(`${field.path}.`))
      return name === countName(field.path) ? [] : [[name, value]]
    const [index = '', ...rest] = name.slice(field.path.length + 1).split('.')
    const place = kept.indexOf(Number(index))
    return place === -1 ? [] : [[[field.path, place, ...rest].join('.'), value]]
  })
  return new URLSearchParams([...entries, [countName(field.path), String(kept.length)]])
}

/** Has nobody typed anything into the group? The kind of a text is none yet. */
export function isEmptyGroup(draft: Draft, { path }: Field, index: number): boolean {
  const prefix = `${path}.${index}.`
  return ![...draft].some(
    ([name, value]) =>
      name.startsWith(prefix) && value !== '' && !(name.endsWith(':kind') && value === 'text'),
  )
}
