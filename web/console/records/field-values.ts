/** Conversions between the texts of a form and the values of the contract. */
import type { Schema } from '../../../scripts/model/schema.ts'
import { convertParameter } from '../../../validation.ts'
import { parseDateTimeInput } from '../../shared/date-time-input.ts'
import { fromWallClock, toWallClock } from '../../shared/zone.ts'
import { type Draft, kindName, withLineFeeds } from './draft.ts'
import type { FormField, ReadContext } from './field.ts'

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

export function writeText(draft: Draft, { path }: FormField, value: unknown): void {
  draft.set(path, value === null ? '' : String(value))
}

export function readText(
  draft: Draft,
  { path, schema }: FormField,
  { isNew }: ReadContext,
): unknown {
  return withLineFeeds(draft.get(path) ?? '') || emptyValue(schema, isNew)
}

/** On creation, an empty field is omitted. An update sends null, or an empty value of its type. */
function emptyValue({ type, nullable }: Schema, isNew: boolean): unknown {
  if (isNew) return undefined
  if (nullable) return null
  if (type === 'array') return []
  return type === 'object' ? {} : ''
}

/** Leaves null, undefined and empty texts as they are. */
export function convertText(value: unknown, convert: (text: string) => unknown): unknown {
  return typeof value === 'string' && value !== '' ? convert(value) : value
}

/** The option with this text. Options can be numbers or booleans. Returns the text if no option has
 *  it. */
export function optionFor(text: string, { enum: options = [] }: Schema): unknown {
  return options.find((one) => String(one) === text) ?? text
}

/** Returns the text if it is not a boolean; the contract then rejects it. */
export function toBoolean(text: string): unknown {
  if (text === 'true') return true
  return text === 'false' ? false : text
}

/** Returns the text if it is not a number, so that the contract or the caller rejects it. */
export function toNumber(text: string, { type }: Schema): unknown {
  if (type === 'integer') return convertParameter(text.trim(), { type: 'integer' })
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text.trim()) && Number.isFinite(Number(text))
    ? Number(text)
    : text
}

/** The value of a `datetime-local` input. */
const DATE_TIME_LOCAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?$/

/** An ISO 8601 time as the value of a `datetime-local` input: without seconds or milliseconds that
 *  are 0. Returns any other text unchanged, and a time of the hour that the clocks show twice when
 *  they go back: the input could mean either. */
export function toLocal(time: string): string {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return time
  const text = `${toWallClock(at)}${new Date(at).toISOString().slice(19, 23)}`
  return fromWallClock(text) === at ? text.replace(/(:00)?\.000$/, '') : time
}

/** The value of a `datetime-local` input as an ISO 8601 time. Returns any other text unchanged, and
 *  a day that does not exist, which the contract then rejects. */
export function toInstant(text: string): string {
  const at = DATE_TIME_LOCAL.test(text) ? parseDateTimeInput(text) : undefined
  return at === undefined ? text : new Date(at).toISOString().replace('.000Z', 'Z')
}

/** Whether a `datetime-local` input can show the text. */
export function fitsTimeInput(text: string): boolean {
  return text === '' || DATE_TIME_LOCAL.test(text)
}

/** Writes one text per line, or JSON if a text is empty or has a line break: such a text cannot be
 *  one line. */
export function writeLines(draft: Draft, { path }: FormField, value: unknown): void {
  const lines = listOf(value).map(String)
  const fitsLines = lines.every((line) => line !== '' && !/[\r\n]/.test(line))
  if (!fitsLines) draft.set(kindName(path), 'json')
  draft.set(path, fitsLines ? lines.join('\n') : JSON.stringify(lines, null, 2))
}

export function readLines(draft: Draft, field: FormField, context: ReadContext): unknown {
  if (draft.get(kindName(field.path)) === 'json') return readJsonField(draft, field, context)
  const lines = withLineFeeds(draft.get(field.path) ?? '')
    .split('\n')
    .filter((line) => line !== '')
  return lines.length === 0 && context.isNew ? undefined : lines
}

/** The kinds of a scalar, and their labels. Yes and No are values already, and need no text. */
export const SCALAR_KINDS = { text: 'Text', number: 'Number', true: 'Yes', false: 'No' } as const
type ScalarKind = keyof typeof SCALAR_KINDS

export function writeScalar(draft: Draft, { path }: FormField, value: unknown): void {
  const isBoolean = typeof value === 'boolean'
  const kind = typeof value === 'number' ? 'number' : 'text'
  draft.set(kindName(path), isBoolean ? String(value) : kind)
  draft.set(path, isBoolean ? '' : String(value))
}

const KINDS_BY_TYPE: Record<string, ScalarKind[]> = {
  string: ['text'],
  number: ['number'],
  integer: ['number'],
  boolean: ['true', 'false'],
}

/** The kinds that the schema permits. */
export function scalarKinds({ oneOf = [] }: Schema): ScalarKind[] {
  const permitted = oneOf.flatMap(({ type = '' }) => KINDS_BY_TYPE[type] ?? [])
  return (Object.keys(SCALAR_KINDS) as ScalarKind[]).filter((kind) => permitted.includes(kind))
}

export function readScalar(
  draft: Draft,
  { path, schema, isRequired }: FormField,
  { problems }: ReadContext,
): unknown {
  const kinds = scalarKinds(schema)
  const kind = kinds.length === 1 ? kinds[0] : draft.get(kindName(path))
  if (kind === 'true' || kind === 'false') return kind === 'true'
  const text = withLineFeeds(draft.get(path) ?? '')
  if (text === '') {
    if (isRequired && kinds.includes('true'))
      problems[path] = ['is empty. Enter it, or choose Yes or No.']
    return undefined
  }
  if (kind !== 'number') return text
  const value = toNumber(text, schema)
  if (typeof value !== 'number') problems[path] = ['must be a number.']
  return value
}

/** The kinds of a list with one value per line. JSON is for lists that lines cannot represent. */
export const LIST_KINDS = { text: 'Texts', number: 'Numbers', json: 'JSON' } as const

export function writeScalars(draft: Draft, field: FormField, value: unknown): void {
  const values = listOf(value)
  const areNumbers = values.length > 0 && values.every((one) => typeof one === 'number')
  const areTexts = values.every((one) => typeof one === 'string')
  if (areNumbers || areTexts) {
    draft.set(kindName(field.path), areNumbers ? 'number' : 'text')
    writeLines(draft, field, values)
  } else {
    draft.set(kindName(field.path), 'json')
    draft.set(field.path, JSON.stringify(values, null, 2))
  }
}

export function readScalars(draft: Draft, field: FormField, context: ReadContext): unknown {
  const lines = readLines(draft, field, context)
  if (draft.get(kindName(field.path)) !== 'number' || !Array.isArray(lines)) return lines
  const values = lines.map((line) => toNumber(line, { type: 'number' }))
  if (values.some((value) => typeof value !== 'number'))
    context.problems[field.path] = ['must be one number per line.']
  return values
}

export function readJsonField(
  draft: Draft,
  { path, schema }: FormField,
  { isNew, problems }: ReadContext,
): unknown {
  const text = draft.get(path) ?? ''
  if (text.trim() === '') return emptyValue(schema, isNew)
  try {
    return JSON.parse(text)
  } catch (error) {
    const where = /line \d+ column \d+/.exec((error as Error).message)?.[0]
    problems[path] = [`must be valid JSON${where === undefined ? '' : `: see ${where}`}.`]
    return undefined
  }
}
