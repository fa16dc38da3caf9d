/** Renders the values of records. */
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { absoluteTime, bytes, count } from '../format.ts'
import { jsonBlock } from '../json-block.ts'
import { copyableId, facts, NO_VALUE, pill, type Tone, table, timeElement } from '../ui.ts'
import { amountOf, currencyName, hasCurrencies } from './amounts.ts'
import { label, option } from './labels.ts'
import { type KnownRecords, referenceLink } from './references.ts'
import { referencedResource } from './resources.ts'
import { inFormOrder, wordingOf } from './wording.ts'

export interface ValueContext {
  now: Date
  known: KnownRecords
  /** The record that contains the value. */
  item?: Readonly<Record<string, unknown>>
  /** Labels for the keys of an object. */
  keyLabels?: Record<string, string>
}

/** The colours of states. Other states are grey. */
const TONES: Record<string, Tone> = {
  active: 'ok',
  completed: 'ok',
  paid: 'ok',
  accepted: 'ok',
  meets_all: 'ok',
  open: 'busy',
  in_progress: 'busy',
  processing: 'busy',
  shortlisted: 'busy',
  pending: 'warn',
  missing_nice_to_have: 'warn',
  failed: 'bad',
  rejected: 'bad',
  missing_must_have: 'bad',
}

const MAX_CELL_CHIPS = 2

/** The short form, for tables. */
export function cell(name: string, schema: Schema, value: unknown, context: ValueContext): Content {
  if (isEmptyValue(value)) return NO_VALUE
  if (isTable(schema)) return count((value as unknown[]).length)
  if (schema.format === 'date-time')
    return [
      timeElement(Date.parse(String(value)), context.now),
      isOverdue(name, value, context) && OVERDUE,
    ]
  if (Array.isArray(value)) return chips(value, MAX_CELL_CHIPS)
  return inlineValue(name, schema, value, context)
}

/** The complete value, for the page of the record. */
export function fullValue(
  name: string,
  schema: Schema,
  value: unknown,
  context: ValueContext,
): Content {
  if (isEmptyValue(value)) return NO_VALUE
  if (schema.format === 'date-time')
    return [exactTime(String(value), context.now), isOverdue(name, value, context) && OVERDUE]
  if (name === 'id') return copyableId(String(value))
  if (name === 'sha256') return copyableId(String(value), 'SHA-256')
  if (hasCurrencies(schema)) return currencyName(String(value))
  if (Array.isArray(value)) return chips(value)
  if (typeof value === 'object')
    return objectValue(value as Record<string, unknown>, schema, context)
  if (typeof value === 'string' && !schema.enum && !referencedResource(name))
    return html`<span class="prose">${value}</span>`
  return inlineValue(name, schema, value, context)
}

export const OVERDUE = html` <span class="tone bad">Overdue</span>`

/** Whether a task is unfinished after it was due. */
function isOverdue(name: string, value: unknown, { now, item }: ValueContext): boolean {
  const isUnfinished = item?.status === 'open' || item?.status === 'in_progress'
  return name === 'due_at' && isUnfinished && Date.parse(String(value)) < now.getTime()
}

function isEmptyValue(value: unknown): value is null | undefined {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (Array.isArray(value) && value.length === 0)
  )
}

/** A value of one line, the same in tables and on pages. */
function inlineValue(
  name: string,
  schema: Schema,
  value: unknown,
  { known, item }: ValueContext,
): Content {
  if (referencedResource(name)) return referenceLink(known, name, String(value))
  if (isState(name, schema)) return statePill(value)
  if (schema.enum) return option(value, schema)
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  const amount = amountOf(schema, value, item)
  if (amount !== undefined) return amount
  if (typeof value === 'number') return name.startsWith('byte') ? bytes(value) : count(value)
  return html`<span class="clip">${toText(value)}</span>`
}

export function statePill(state: unknown): Html {
  return pill(toneOf(state), option(state))
}

export function toneOf(state: unknown): Tone {
  return TONES[String(state)] ?? 'quiet'
}

/** States have a colour. Other enums, such as currencies, do not. */
function isState(name: string, { enum: values }: Schema): boolean {
  return values !== undefined && (name === 'status' || values.some((value) => `${value}` in TONES))
}

function chips(values: unknown[], most = values.length): Html {
  const hiddenCount = values.length - most
  const shown = values.slice(0, most).map((value) => html`<span>${toText(value)}</span>`)
  return html`<span class="chips">${shown}${hiddenCount > 0 && html`<b>+${hiddenCount}</b>`}</span>`
}

export function toText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function exactTime(value: string, now: Date): Content {
  const at = Date.parse(value)
  return html`${absoluteTime(at)} <span class="muted">(${timeElement(at, now)})</span>`
}

function objectValue(
  value: Record<string, unknown>,
  { properties = {} }: Schema,
  context: ValueContext,
): Content {
  const entries = Object.entries(value)
  if (entries.length === 0) return NO_VALUE
  if (entries.some(([, part]) => typeof part === 'object'))
    return jsonBlock(JSON.stringify(value), 'value')
  return facts(
    entries.map(([key, part]) => {
      const schema = properties[key]
      // A key that users choose has no meaning for the console, even if it is `id`.
      return [
        context.keyLabels?.[key] ?? (schema ? label(key) : key),
        fullValue(schema ? key : '', schema ?? {}, part, context),
      ]
    }),
  )
}

/** Whether the value is a list of objects, which is shown as a table. */
export function isTable({ type, items }: Schema): boolean {
  return type === 'array' && items?.properties !== undefined
}

export function valueTable(
  name: string,
  { items }: Schema,
  values: unknown[],
  context: ValueContext,
): Html {
  const columns = inFormOrder(name, Object.entries(items?.properties ?? {}))
  const rows = (values as Record<string, unknown>[]).map((value) => ({
    cells: columns.map(([column, schema]) => fullValue(column, schema, value[column], context)),
  }))
  const labels = columns.map(([column]) => wordingOf(`${name}.${column}`).label ?? label(column))
  return table(label(name), labels, rows)
}
