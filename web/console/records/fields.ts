/** Form fields. Their kind decides all: which schemas have it, the control that shows it, and how values
 *  become form texts and texts become values. */
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Html, html } from '../../shared/html.ts'
import { boxId, fieldId, foldedFields } from '../form-fields.ts'
import { hiddenInput } from '../ui.ts'
import { amountProblem, typedAmount, writeAmount } from './amounts.ts'
import {
  amountControl,
  choiceControl,
  columnsControl,
  jsonControl,
  linesControl,
  numberControl,
  optionsControl,
  scalarControl,
  scalarsControl,
  textControl,
  timeControl,
  yesNoControl,
} from './controls.ts'
import { resolveDependent, withDrivers } from './dependent-fields.ts'
import { countName, type Draft, groupCount, serializeField } from './draft.ts'
import type { FieldKind, FormField, ReadContext } from './field.ts'
import {
  convertText,
  listOf,
  optionFor,
  readJsonField,
  readLines,
  readScalar,
  readScalars,
  readText,
  toBoolean,
  toInstant,
  toLocal,
  toNumber,
  writeLines,
  writeScalar,
  writeScalars,
  writeText,
} from './field-values.ts'
import {
  type ControlContext,
  draftValue,
  errorLine,
  fieldHint,
  formButton,
  formLabel,
  hintLine,
  storedValueNote,
} from './form-parts.ts'
import { label } from './labels.ts'
import { withKeys } from './question-keys.ts'
import { referenceControl } from './reference-control.ts'
import { referencedResource } from './resources.ts'
import { inFormOrder, wordingOf } from './wording.ts'

interface KindRules {
  fits(schema: Schema, name: string): boolean
  control(field: FormField, context: ControlContext): Html
  write(draft: Draft, field: FormField, value: unknown): void
  /** Undefined means "omit the field". `current` is the stored value. */
  read(draft: Draft, field: FormField, context: ReadContext, current: unknown): unknown
}

/** In this order: a field has the first kind that fits its schema. */
const KINDS: Record<FieldKind, KindRules> = {
  dependent: {
    fits: (schema) => schema['x-depends-on'] !== undefined,
    control: (field, context) => control(resolveDependent(field, context.draft), context),
    write: (draft, field, value) => writeField(draft, resolveDependent(field, draft), value),
    read: (draft, field, context, current) =>
      readField(draft, resolveDependent(field, draft), context, current),
  },
  reference: {
    fits: ({ type }, name) => type === 'string' && referencedResource(name) !== undefined,
    control: referenceControl,
    write: writeText,
    read: readText,
  },
  choice: {
    fits: (schema) => schema.enum !== undefined,
    control: choiceControl,
    write: writeText,
    read: (draft, field, context) =>
      convertText(readText(draft, field, context), (text) => optionFor(text, field.schema)),
  },
  yes_no: {
    fits: ({ type }) => type === 'boolean',
    control: yesNoControl,
    write: writeText,
    read: (draft, field, context) => convertText(readText(draft, field, context), toBoolean),
  },
  time: {
    fits: ({ type, format }) => type === 'string' && format === 'date-time',
    control: timeControl,
    write: (draft, field, value) => writeText(draft, field, convertText(value, toLocal)),
    read: (draft, field, context) => convertText(readText(draft, field, context), toInstant),
  },
  amount: {
    fits: (schema) => schema['x-currency'] !== undefined,
    control: amountControl,
    write: writeAmount,
    read: (draft, field, context) => {
      const problem = amountProblem(draft, field)
      if (problem !== undefined) context.problems[field.path] = [problem]
      return typedAmount(draft, field) ?? readText(draft, field, context)
    },
  },
  number: {
    fits: ({ type }) => type === 'integer' || type === 'number',
    control: numberControl,
    write: writeText,
    read: (draft, field, context) =>
      convertText(readText(draft, field, context), (text) => toNumber(text, field.schema)),
  },
  text: {
    fits: ({ type }) => type === 'string',
    control: textControl,
    write: writeText,
    read: readText,
  },
  /** One text per line. */
  lines: {
    fits: ({ type, items }) => type === 'array' && items?.type === 'string' && !items.enum,
    control: linesControl,
    write: writeLines,
    read: readLines,
  },
  options: {
    fits: ({ type, items }) => type === 'array' && items?.enum !== undefined,
    control: optionsControl,
    write: (draft, { path }, value) => {
      for (const one of listOf(value)) draft.append(path, String(one))
    },
    read: (draft, { path, schema }, { isNew }) => {
      const texts = draft.getAll(path).filter((text) => text !== '')
      const values = texts.map((text) => optionFor(text, schema.items ?? {}))
      return values.length === 0 && isNew ? undefined : values
    },
  },
  /** Columns of an export: see keyed-fields.ts. All of them are the default. JSON has no columns, so
   *  the form hides them. */
  columns: {
    fits: () => false,
    control: columnsControl,
    write: () => undefined,
    read: (draft, { path, schema }, { problems }) => {
      const columns = draft.getAll(path).filter(Boolean)
      if (columns.length === schema.items?.enum?.length || draft.get('format') === 'json')
        return undefined
      if (columns.length === 0) problems[path] = ['must have at least one.']
      return columns
    },
  },
  /** Options, joined with commas into one text: see keyed-fields.ts. */
  joined: {
    fits: () => false,
    control: optionsControl,
    write: (draft, { path }, value) => {
      for (const one of String(value).split(',')) draft.append(path, one)
    },
    read: (draft, { path }) => draft.getAll(path).filter(Boolean).join(',') || undefined,
  },
  /** A list of objects. */
  groups: {
    fits: ({ type, items }) => type === 'array' && items?.properties !== undefined,
    control: groupsControl,
    write: (draft, field, value) => {
      for (const [index, item] of listOf(value).entries())
        writeAll(draft, groupFields(field, index), item)
    },
    read: (draft, field, context, current) => {
      const groups = Array.from({ length: groupCount(draft, field) }, (_, index) =>
        readAll(draft, groupFields(field, index), context, listOf(current)[index]),
      )
      if (groups.length === 0 && context.isNew) return undefined
      return withKeys(groups, field.schema.items ?? {})
    },
  },
  group: {
    fits: ({ type, properties, additionalProperties }) =>
      type === 'object' && properties !== undefined && !additionalProperties,
    control: partsControl,
    write: writeParts,
    read: readParts,
  },
  /** An object whose keys another field decides: see keyed-fields.ts. */
  keyed: { fits: () => false, control: partsControl, write: writeParts, read: readKeyedParts },
  /** A text, a number or a boolean. */
  scalar: {
    fits: isScalar,
    control: scalarControl,
    write: writeScalar,
    read: readScalar,
  },
  /** A list of texts, numbers or booleans. */
  scalars: {
    fits: ({ type, items }) => type === 'array' && isScalar(items ?? {}),
    control: scalarsControl,
    write: writeScalars,
    read: readScalars,
  },
  json: {
    fits: () => true,
    control: jsonControl,
    write: (draft, { path }, value) => draft.set(path, JSON.stringify(value, null, 2)),
    read: readJsonField,
  },
}

const SCALARS = ['string', 'number', 'integer', 'boolean']

function isScalar({ oneOf }: Schema): boolean {
  return oneOf?.every(({ type = '' }) => SCALARS.includes(type)) ?? false
}

interface FormFieldOptions {
  /** Default: the last part of the path. */
  name?: string
  isRequired?: boolean
}

export function toFormField(
  path: string,
  schema: Schema,
  { name = path.slice(path.lastIndexOf('.') + 1), isRequired = false }: FormFieldOptions = {},
): FormField {
  const kind =
    (Object.keys(KINDS) as FieldKind[]).find((candidate) => KINDS[candidate].fits(schema, name)) ??
    'json'
  return {
    path,
    name,
    schema,
    isRequired,
    kind,
    ...(kind === 'amount' && {
      currency: path.slice(0, path.length - name.length) + schema['x-currency'],
    }),
    ...(kind === 'group' && { parts: schemaFields(`${path}.`, schema) }),
  }
}

/** The fields of an object schema. Their paths begin with `prefix`. */
export function schemaFields(
  prefix: string,
  { properties = {}, required = [] }: Schema,
): FormField[] {
  const parent = prefix.replace(/\.$/, '')
  const fields = inFormOrder(parent, Object.entries(properties)).map(([name, schema]) => {
    const path = `${prefix}${name}`
    const isRequired = required.includes(name) && !isFolded(path)
    return toFormField(path, schema, { name, isRequired })
  })
  return withDrivers(afterCurrencies(fields))
}

/** Moves each amount after its currency, because the currency decides how the amount is written. */
function afterCurrencies(fields: FormField[]): FormField[] {
  const ofCurrency = ({ path }: FormField): FormField[] =>
    fields.filter(({ currency }) => currency === path)
  return fields
    .filter(({ currency }) => currency === undefined)
    .flatMap((field) => [field, ...ofCurrency(field)])
}

export function groupFields({ path, schema }: FormField, index: number): FormField[] {
  return schemaFields(`${path}.${index}.`, schema.items ?? {})
}

export function writeField(draft: Draft, field: FormField, value: unknown): void {
  KINDS[field.kind].write(draft, field, value)
}

/** Returns `current`, the stored value, if the field is unchanged: its texts may not represent that
 *  value completely. */
export function readField(
  draft: Draft,
  field: FormField,
  context: ReadContext,
  current?: unknown,
): unknown {
  if (current !== undefined && matchesValue(draft, field, current)) return current
  return KINDS[field.kind].read(draft, field, context, current)
}

/** Whether the field has the texts that `writeField` would write for `value`. */
export function matchesValue(draft: Draft, field: FormField, value: unknown): boolean {
  const { currency } = field
  const expected = new URLSearchParams(currency && { [currency]: draft.get(currency) ?? '' })
  writeField(expected, field, value)
  return serializeField(draft, field) === serializeField(expected, field)
}

function writeAll(draft: Draft, fields: FormField[], value: unknown): void {
  for (const field of fields) {
    const part = partValue(value, field)
    if (part !== undefined) writeField(draft, field, part)
  }
}

function readAll(
  draft: Draft,
  fields: FormField[],
  context: ReadContext,
  current: unknown,
): Record<string, unknown> {
  // The API replaces nested objects as a whole, so empty fields are omitted as on creation.
  const nested = { ...context, isNew: true }
  const entries = fields.map((field) => [
    field.name,
    readField(draft, field, nested, partValue(current, field)),
  ])
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
}

function writeParts(draft: Draft, { parts = [] }: FormField, value: unknown): void {
  writeAll(draft, parts, value)
}

function readParts(
  draft: Draft,
  { parts = [] }: FormField,
  context: ReadContext,
  current: unknown,
): unknown {
  const value = readAll(draft, parts, context, current)
  return Object.keys(value).length === 0 && context.isNew ? undefined : value
}

/** Rejects a text in a number field, unless the text is the stored value. The contract would not
 *  reject the text, because it has one schema for the values of all keys. */
function readKeyedParts(
  draft: Draft,
  field: FormField,
  context: ReadContext,
  current: unknown,
): unknown {
  const value = readParts(draft, field, context, current)
  for (const part of field.parts ?? []) {
    const read = partValue(value, part)
    const isTextForNumber = part.kind === 'number' && typeof read === 'string'
    if (isTextForNumber && read !== partValue(current, part))
      context.problems[part.path] = ['must be a number.']
  }
  return value
}

function partValue(value: unknown, { name }: FormField): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

/** The input of the field, with its label, hint and errors. */
export function control(field: FormField, context: ControlContext): Html {
  const { path, kind } = field
  const { errors, stored = {} } = context
  const shown = KINDS[kind].control(field, context)
  const { foldedAs } = wordingOf(path)
  if (foldedAs === undefined) return shown
  // Each stored question has a key, so that a value is no reason to show the key.
  const isSet = !path.includes('.') && draftValue(field, context) !== ''
  return foldedFields(foldedAs, shown, isSet || path in errors || path in stored)
}

function isFolded(path: string): boolean {
  return wordingOf(path).foldedAs !== undefined
}

/** A list of objects. Each object is a group of fields. An empty list shows one empty group. */
function groupsControl(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const count = Math.max(1, groupCount(context.draft, field))
  const canAdd = count < (schema.maxItems ?? Number.POSITIVE_INFINITY)
  // The first field of the new group gets the focus, because it has the ID of the button.
  const first = groupFields(field, count).find(({ path }) => !isFolded(path))
  const attributes = first && html`id="${fieldId(first.path)}"`
  return html`<fieldset class="field record-groups" id="${boxId(path)}">
    ${legend(field)}
    ${hintLine(fieldHint(field, context))}
    ${hiddenInput(countName(path), String(count))}
    ${Array.from({ length: count }, (_, index) => group(field, context, index))}
    ${
      canAdd &&
      formButton(
        context,
        { action: 'add', value: path, changes: [path], style: 'button', attributes },
        'Add another',
      )
    }
    ${errorLine(field, context)}
  </fieldset>`
}

function group(field: FormField, context: ControlContext, index: number): Html {
  const title = `${label(field.path).replace(/s$/, '')} ${index + 1}`
  const parts = groupFields(field, index)
  return html`<fieldset class="record-group">
    <legend>${title}</legend>
    ${parts.filter(({ path }) => !isFolded(path)).map((part) => control(part, context))}
    <div class="group-foot">
      ${parts.filter(({ path }) => isFolded(path)).map((part) => control(part, context))}
      ${formButton(
        context,
        {
          action: 'remove',
          value: `${field.path}.${index}`,
          changes: [field.path],
          style: 'button quiet',
        },
        html`Remove<span class="visually-hidden"> ${title.toLowerCase()}</span>`,
      )}
    </div>
  </fieldset>`
}

function legend(field: FormField): Html {
  const optional = !field.isRequired && html` <span class="optional">optional</span>`
  return html`<legend>${formLabel(field)}${optional}</legend>`
}

function partsControl(field: FormField, context: ControlContext): Html {
  const { path, kind, parts = [], waitsFor } = field
  const isFoldable = field.isCompact && waitsFor === undefined
  // The hint explains the possible keys. The parts of a keyed field show them already.
  const showsKeys = kind === 'keyed' && parts.length > 0
  const hint = showsKeys ? storedValueNote(field, context) : fieldHint(field, context)
  const isEmpty = waitsFor === undefined && parts.length === 0
  const fieldset = (className: string, heading: Html): Html => html`<fieldset class="${className}">
    ${heading}
    ${hintLine(hint)}
    ${waitsFor !== undefined && html`<p class="muted">${waitsFor}</p>`}
    ${isEmpty && html`<p class="muted">No fields to fill in.</p>`}
    ${parts.map((part) => control(part, context))}
    ${errorLine(field, context)}
  </fieldset>`
  const shown = isFoldable
    ? foldedFields(
        formLabel(field),
        fieldset('field pairs', html`<legend class="visually-hidden">${formLabel(field)}</legend>`),
        path in context.errors || parts.some((part) => isUsed(part, context)),
      )
    : fieldset('field record-group', legend(field))
  return html`<div id="${boxId(path)}">${shown}</div>`
}

function isUsed(field: FormField, { draft, errors, suggestions }: ControlContext): boolean {
  const { path } = field
  return path in errors || path === suggestions?.path || serializeField(draft, field) !== '[]'
}
