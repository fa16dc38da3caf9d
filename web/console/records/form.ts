/** The form of a record: what is new, or what is changed of it. */
import { validate as isUuid } from 'uuid'
import type { FieldErrors } from '../../../errors.ts'
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  button,
  buttonLink,
  type Choice,
  choiceField,
  type Errors,
  type FieldOptions,
  field as fieldParts,
  inPlace,
  note,
  pill,
  selectField,
  textArea,
  textField,
} from '../ui.ts'
import {
  countName,
  type Draft,
  type Field,
  groupCount,
  isLocal,
  type Kind,
  kindName,
  partsAt,
  SCALAR_KINDS,
} from './fields.ts'
import { isOfResources } from './keys.ts'
import { capital, label, noun, option } from './names.ts'
import {
  type Found,
  type Known,
  knownItem,
  referenceLink,
  secondText,
  textName,
} from './references.ts'
import { maySee, namedBy, referencedBy } from './resources.ts'
import { cell, withCode } from './values.ts'

export interface RecordForm {
  /** Below /console: where it is sent. */
  to: string
  cancel: string
  submit: string
  fields: Field[]
  draft: Draft
  known: Known
  user: User
  now: Date
  isNew: boolean
  /** As the API says them. */
  errors?: FieldErrors
  problem?: string
  /** What was searched for the field at a path. */
  found?: { path: string; found: Found }
  /** What is stored by now, by the path of the field. */
  stored?: Record<string, Content>
  /** What the form must bring back. */
  hidden?: [name: string, value: string][]
}

/** What a form that is sent can ask for, if not to be saved: to find or choose a record, to add or remove a group, or to be shown again. */
export type Asking = 'find' | 'choose' | 'add' | 'remove' | 'refresh'

/** No field of the contract has a colon in its name. */
export const askName = (asking: Asking): string => `ask:${asking}`

/** The id of what is put in place of itself. */
const FORM = 'record-form'

export function recordForm(form: RecordForm): Html {
  const { to, cancel, submit, fields, hidden = [] } = form
  const { errors, rest } = sentences(form)
  const problem = form.problem ?? (rest.length > 0 ? rest.join(' ') : undefined)
  const isWrong = problem !== undefined || Object.keys(errors).length > 0
  // The first button is what the Enter key presses.
  return html`<form class="form record-form" id="${FORM}" method="post" action="/console${to}" novalidate><button class="visually-hidden" tabindex="-1" aria-hidden="true">${submit}</button>${
    isWrong && note('bad', problem ?? 'Some of this cannot be accepted. See below.')
  }${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}${fields.map(
    (field) => control(field, { ...form, errors }),
  )}<div class="form-actions">${button(submit, 'primary')}${buttonLink(cancel, 'Cancel', 'quiet')}</div></form>`
}

/** The errors as sentences that begin with the name of their field, by its path; and those of what is no field. */
function sentences({ fields, draft, errors = {} }: RecordForm): { errors: Errors; rest: string[] } {
  const left = new Map(Object.entries(errors))
  const said: Errors = Object.create(null)
  const say = (path: string, name: string, key = path): void => {
    const messages = left.get(key)
    if (!messages) return
    left.delete(key)
    said[path] = [...(said[path] ?? []), ...messages.map((message) => `${name} ${message}`)]
  }
  const visit = (field: Field): void => {
    const name = nameOf(field)
    for (const part of partsIn(field, draft)) visit(part)
    say(field.path, name)
    const entries = [...left.keys()].filter((key) => key.startsWith(`${field.path}.`))
    for (const key of entries) say(field.path, `${name}, ${entryName(field, key)}`, key)
  }
  fields.forEach(visit)
  return {
    errors: said,
    rest: [...left].flatMap(([key, messages]) =>
      messages.map((message) => `${label(key)} ${message}`),
    ),
  }
}

function entryName({ path, kind }: Field, key: string): string {
  const rest = key.slice(path.length + 1)
  return kind === 'lines' && /^\d+$/.test(rest) ? `line ${Number(rest) + 1}` : rest
}

function partsIn(field: Field, draft: Draft): Field[] {
  if (field.kind !== 'groups') return field.parts ?? []
  return Array.from({ length: groupCount(draft, field) }, (_, index) =>
    partsAt(field, index),
  ).flat()
}

function nameOf({ name, label: own, kind }: Field): string {
  return (
    own ??
    (kind === 'reference' ? capital(noun(referencedBy(name) ?? { type: name })) : label(name))
  )
}

type Context = RecordForm & { errors: Errors }

function control(field: Field, context: Context): Html {
  return CONTROLS[field.kind](field, context)
}

const CONTROLS: Record<Kind, (field: Field, context: Context) => Html> = {
  reference,
  choice,
  yes_no: (field, context) =>
    selectField({
      ...common(field, context),
      none: 'Not said',
      choices: [
        { value: 'true', label: 'Yes' },
        { value: 'false', label: 'No' },
      ],
    }),
  time,
  number: (field, context) =>
    fieldParts(
      common(field, context),
      (attributes) =>
        html`<input type="text" inputmode="${field.schema.type === 'integer' ? 'numeric' : 'decimal'}" ${attributes} value="${valueIn(field, context)}" autocomplete="off">`,
    ),
  text,
  lines: (field, context) => {
    const isJson = context.draft.get(kindName(field.path)) === 'json'
    return html`${isJson && html`<input type="hidden" name="${kindName(field.path)}" value="json">`}${textArea({ ...common(field, context), rows: 3, isCode: isJson })}`
  },
  options,
  joined: options,
  groups,
  group: fieldset,
  keyed: fieldset,
  scalar,
  json: (field, context) => textArea({ ...common(field, context), isCode: true, rows: 5 }),
}

const valueIn = ({ path }: Field, { draft }: Context): string => draft.get(path) ?? ''

function common(field: Field, context: Context): FieldOptions {
  const { path, schema, isRequired } = field
  return {
    name: path,
    label: nameOf(field),
    hint: hintOf(field, context),
    value: valueIn(field, context),
    errors: context.errors,
    isRequired: isRequired || (!context.isNew && schema.enum !== undefined && !schema.nullable),
  }
}

/** What the contract says of it, and what is stored by now if that is something else. */
function hintOf(field: Field, { stored = {} }: Context): Content {
  const { path, schema, kind } = field
  const { description, maxLength, minimum, maximum } = schema
  const sentences = [
    field.hint ?? (kind === 'time' ? undefined : description),
    kind === 'time' && `${field.hint === undefined ? (description ?? '') : ''} In UTC.`.trim(),
    kind === 'lines' && 'One on each line.',
    kind === 'text' &&
      maxLength !== undefined &&
      `At most ${maxLength.toLocaleString('en')} characters.`,
    minimum !== undefined &&
      maximum !== undefined &&
      `From ${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}.`,
  ].filter((sentence) => typeof sentence === 'string' && sentence !== '')
  const now = stored[path]
  if (sentences.length === 0 && now === undefined) return undefined
  return html`${withCode(sentences.join(' '))}${now !== undefined && html` <strong class="now-stored">Now stored: ${now}</strong>`}`
}

/** More than this many characters want more than one line. */
const LONG_TEXT = 500

function text(field: Field, context: Context): Html {
  const { maxLength, format } = field.schema
  const value = valueIn(field, context)
  // A line of its own would lose the breaks.
  if ((maxLength ?? 0) > LONG_TEXT || /[\r\n]/.test(value)) return textArea(common(field, context))
  return textField({ ...common(field, context), type: format === 'email' ? 'email' : 'text' })
}

/** Text that is no time would be lost in a field for times. */
function time(field: Field, context: Context): Html {
  return textField({
    ...common(field, context),
    type: isLocal(valueIn(field, context)) ? 'datetime-local' : 'text',
  })
}

function optionsOf({ enum: values = [] }: Schema): Choice[] {
  return values
    .filter((value) => value !== null)
    .map((value) => ({ value: String(value), label: option(value) }))
}

function choice(field: Field, context: Context): Html {
  const { schema, isRequired, isDriver } = field
  const value = valueIn(field, context)
  const possible = optionsOf(schema).filter(
    (one) => !isOfResources(field) || canSee(context.user, one.value),
  )
  // What was sent stays, also when it is none of the options.
  const choices =
    value === '' || possible.some((one) => one.value === value)
      ? possible
      : [...possible, { value, label: value }]
  const needsNone =
    schema.nullable || value === '' || (context.isNew && schema.default === undefined)
  const none = needsNone ? (isRequired ? 'Choose one' : 'None') : undefined
  const select = selectField({ ...common(field, context), choices, none })
  if (!isDriver) return select
  return html`<div class="driver" hx-post="/console${context.to}?${askName('refresh')}=1" hx-trigger="change" hx-target="#${FORM}" hx-select="#${FORM}" hx-swap="outerHTML">${select}<button class="button needs-script-off" name="${askName('refresh')}" value="1" formnovalidate>Show what goes with it</button></div>`
}

function canSee(user: User, value: string): boolean {
  const resource = namedBy(value)
  return resource !== undefined && maySee(user, resource)
}

/** More options than this are a list to scroll in. */
const MANY_OPTIONS = 12

function options(field: Field, context: Context): Html {
  const { path, schema } = field
  const values = context.draft.getAll(path).filter(Boolean)
  return manyOf({ ...common(field, context), choices: optionsOf(schema.items ?? {}), values })
}

/** Several of some options. */
export function manyOf(given: FieldOptions & { choices: Choice[]; values: string[] }): Html {
  const { name, label: legend, hint, choices, values, errors } = given
  const unknown = values
    .filter((value) => !choices.some((one) => one.value === value))
    .map((value) => ({ value, label: value }))
  const all = [...choices, ...unknown]
  const chosenFirst = [...all].sort(
    (a, b) => Number(values.includes(b.value)) - Number(values.includes(a.value)),
  )
  if (all.length <= MANY_OPTIONS)
    return choiceField({ name, legend, hint, choices: all, values, isMultiple: true, errors })
  return fieldParts(
    given,
    (attributes) =>
      html`<select ${attributes} multiple size="5">${chosenFirst.map(
        (one) =>
          html`<option value="${one.value}"${values.includes(one.value) && html` selected`}>${one.label}</option>`,
      )}</select>`,
  )
}

const idOf = (path: string): string => path.replace(/\W/g, '-')

/** The id of a record, with a search for it. */
function reference(field: Field, context: Context): Html {
  const { path, name } = field
  const resource = referencedBy(name)
  if (!resource || !maySee(context.user, resource)) return textField(common(field, context))
  const found = `found-${idOf(path)}`
  const address = `/console${context.to}?${askName('find')}=${encodeURIComponent(path)}`
  return fieldParts(
    {
      ...common(field, context),
      hint: html`${hintOf(field, context)} Type some of the name, or an ID.`,
    },
    (attributes) =>
      html`<span class="reference"><input type="text" ${attributes} value="${valueIn(field, context)}" autocomplete="off" spellcheck="false" hx-post="${address}" hx-trigger="input changed delay:250ms, focus once" hx-target="#${found}" hx-select="#${found}" hx-swap="outerHTML"><button class="button" name="${askName('find')}" value="${path}" formnovalidate>Find<span class="visually-hidden"> a ${noun(resource)}</span></button></span><div class="found" id="${found}" aria-live="polite">${foundFor(field, context)}</div>`,
  )
}

function foundFor(field: Field, context: Context): Content {
  const { path, name } = field
  const value = valueIn(field, context)
  const { known, found } = context
  const item = isUuid(value) ? knownItem(known, name, value) : undefined
  const chosen = item && html`<p class="chosen">${referenceLink(known, name, item.id)}</p>`
  if (found?.path !== path || item) return chosen
  const { resource, items, total } = found.found
  if (items.length === 0) return html`<p class="muted">No ${noun(resource)} is found by that.</p>`
  const more = total - items.length
  return html`<ul>${items.map(
    (one) =>
      html`<li><button name="${askName('choose')}" value="${path}=${one.id}" formnovalidate${inPlace('post', `/console${context.to}`, FORM)}><span>${textName(resource, one) ?? one.id}</span> <small>${secondText(resource, one)}</small>${statusOf(one)}</button></li>`,
  )}</ul>${more > 0 && html`<p class="muted">And ${more.toLocaleString('en')} more: type more of the name.</p>`}`
}

function statusOf(item: Record<string, unknown>): Content {
  return typeof item.status === 'string' && pill('quiet', option(item.status))
}

/** Several of the same parts. One empty one is always there, so that adding the first needs no button. */
function groups(field: Field, context: Context): Html {
  const { path, schema } = field
  const count = Math.max(1, groupCount(context.draft, field))
  const one = label(path).replace(/s$/, '')
  const again = inPlace('post', `/console${context.to}`, FORM)
  const group = (index: number): Html =>
    html`<fieldset class="record-group"><legend>${one} ${index + 1}</legend>${partsAt(field, index).map((part) => control(part, context))}<button class="button quiet" name="${askName('remove')}" value="${path}.${index}" formnovalidate${again}>Remove<span class="visually-hidden"> ${one.toLowerCase()} ${index + 1}</span></button></fieldset>`
  return html`<fieldset class="field record-groups" id="group-${idOf(path)}"><legend>${nameOf(field)}${!field.isRequired && html` <span class="optional">optional</span>`}</legend>${hintLine(field, context)}<input type="hidden" name="${countName(path)}" value="${count}">${Array.from({ length: count }, (_, index) => group(index))}${
    count < (schema.maxItems ?? Number.POSITIVE_INFINITY) &&
    html`<button class="button" name="${askName('add')}" value="${path}" formnovalidate${again}>Add another</button>`
  }${errorLine(field, context)}</fieldset>`
}

function fieldset(field: Field, context: Context): Html {
  const { kind, parts = [], waitsFor } = field
  const isExplained = kind === 'keyed' && parts.length > 0
  return html`<fieldset class="field record-group"><legend>${nameOf(field)}${!field.isRequired && html` <span class="optional">optional</span>`}</legend>${!isExplained && hintLine(field, context)}${
    waitsFor !== undefined &&
    html`<p class="muted">First choose: ${waitsFor}. Then there are fields here.</p>`
  }${waitsFor === undefined && parts.length === 0 && html`<p class="muted">There is nothing to fill in.</p>`}${parts.map((part) => control(part, context))}${errorLine(field, context)}</fieldset>`
}

function hintLine(field: Field, context: Context): Content {
  const hint = hintOf(field, context)
  return hint && html`<p class="hint">${hint}</p>`
}

function errorLine({ path }: Field, { errors }: Context): Content {
  return errors[path] && html`<p class="field-error">${errors[path].join(' ')}</p>`
}

/** A value of one of several types: which, and its text. */
function scalar(field: Field, context: Context): Html {
  const { path, schema } = field
  const types = new Set(schema.oneOf?.map(({ type }) => (type === 'integer' ? 'number' : type)))
  const isPossible = (kind: string): boolean =>
    types.has(kind === 'text' ? 'string' : kind === 'number' ? 'number' : 'boolean')
  const kind = context.draft.get(kindName(path)) ?? 'text'
  const kinds = Object.entries(SCALAR_KINDS).filter(([name]) => isPossible(name))
  return fieldParts(
    common(field, context),
    (attributes) =>
      html`<span class="scalar"><select name="${kindName(path)}" aria-label="Kind of ${nameOf(field)}">${kinds.map(
        ([name, text]) =>
          html`<option value="${name}"${name === kind && html` selected`}>${text}</option>`,
      )}</select><input type="text" ${attributes} value="${valueIn(field, context)}" autocomplete="off"></span>`,
  )
}

/** A value as it is told beside a field. */
export function storedValue(field: Field, value: unknown, known: Known, now: Date): Content {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return JSON.stringify(value)
  if (Array.isArray(value))
    return value.length === 0
      ? 'nothing'
      : value.map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one))).join(', ')
  return cell(field.name, field.schema, value, { known, now })
}
