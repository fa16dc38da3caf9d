/** The inputs of a record form, by the kind of their field. */

import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  type Choice,
  choiceField,
  type FieldOptions,
  field as fieldParts,
  selectField,
  textArea,
  textField,
} from '../form-fields.ts'
import { inPlace } from '../ui.ts'
import { cell } from './cells.ts'
import { common, errorLine, hintLine, nameOf, valueIn } from './control-parts.ts'
import { countName, groupCount, kindName } from './draft.ts'
import type { Field, Kind } from './field.ts'
import { isLocal, SCALAR_KINDS } from './field-values.ts'
import { partsAt } from './fields.ts'
import { askName, type ControlContext, elementId, FORM } from './form-context.ts'
import { isOfResources } from './keyed-fields.ts'
import { label, option } from './labels.ts'
import { reference } from './reference-control.ts'
import type { Known } from './references.ts'
import { maySee, namedBy } from './resources.ts'

export function control(field: Field, context: ControlContext): Html {
  return CONTROLS[field.kind](field, context)
}

const CONTROLS: Record<Kind, (field: Field, context: ControlContext) => Html> = {
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
      (attributes) => html`<input
  type="text" inputmode="${field.schema.type === 'integer' ? 'numeric' : 'decimal'}"
  ${attributes} value="${valueIn(field, context)}" autocomplete="off"
>`,
    ),
  text,
  lines: (field, context) => {
    const isJson = context.draft.get(kindName(field.path)) === 'json'
    return html`
${isJson && html`<input type="hidden" name="${kindName(field.path)}" value="json">`}
${textArea({ ...common(field, context), rows: 3, isCode: isJson })}`
  },
  options,
  joined: options,
  groups,
  group: fieldset,
  keyed: fieldset,
  scalar,
  json: (field, context) => textArea({ ...common(field, context), isCode: true, rows: 5 }),
}

/** A longer text gets an input of several lines. */
const MAX_LINE_LENGTH = 500

function text(field: Field, context: ControlContext): Html {
  const { maxLength, format } = field.schema
  const value = valueIn(field, context)
  // An input of one line would drop line breaks.
  if ((maxLength ?? 0) > MAX_LINE_LENGTH || /[\r\n]/.test(value))
    return textArea(common(field, context))
  return textField({ ...common(field, context), type: format === 'email' ? 'email' : 'text' })
}

/** A datetime-local input would drop text that is not a time. */
function time(field: Field, context: ControlContext): Html {
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

function choice(field: Field, context: ControlContext): Html {
  const { schema, isRequired, isDriver } = field
  const value = valueIn(field, context)
  const possible = optionsOf(schema).filter(
    (one) => !isOfResources(field) || canSee(context.user, one.value),
  )
  // A submitted value stays, even when it is not an option.
  const choices =
    value === '' || possible.some((one) => one.value === value)
      ? possible
      : [...possible, { value, label: value }]
  const needsNone =
    schema.nullable || value === '' || (context.isNew && schema.default === undefined)
  const none = needsNone ? (isRequired ? 'Choose one' : 'None') : undefined
  const select = selectField({ ...common(field, context), choices, none })
  if (!isDriver) return select
  const refresh = askName('refresh')
  return html`<div
  class="driver" hx-post="/console${context.to}?${refresh}=1" hx-trigger="change"
  hx-target="#${FORM}" hx-select="#${FORM}" hx-swap="outerHTML"
>
${select}
<button class="button needs-script-off" name="${refresh}" value="1" formnovalidate>Show its fields</button>
</div>`
}

function canSee(user: User, value: string): boolean {
  const resource = namedBy(value)
  return resource !== undefined && maySee(user, resource)
}

/** More options are shown in a scrolling list. */
const MAX_CHECKBOXES = 12

function options(field: Field, context: ControlContext): Html {
  const { path, schema } = field
  const values = context.draft.getAll(path).filter(Boolean)
  return manyOf({ ...common(field, context), choices: optionsOf(schema.items ?? {}), values })
}

/** Several options can be selected. */
export function manyOf(control: FieldOptions & { choices: Choice[]; values: string[] }): Html {
  const { name, label: legend, hint, choices, values, errors } = control
  const unknown = values
    .filter((value) => !choices.some((one) => one.value === value))
    .map((value) => ({ value, label: value }))
  const all = [...choices, ...unknown]
  const selectedFirst = [...all].sort(
    (a, b) => Number(values.includes(b.value)) - Number(values.includes(a.value)),
  )
  if (all.length <= MAX_CHECKBOXES)
    return choiceField({ name, legend, hint, choices: all, values, isMultiple: true, errors })
  return fieldParts(
    control,
    (attributes) =>
      html`<select ${attributes} multiple size="5">
${selectedFirst.map((one) => optionElement(one, values.includes(one.value)))}
</select>`,
  )
}

function optionElement({ value, label }: Choice, isSelected: boolean): Html {
  return html`<option value="${value}"${isSelected && html` selected`}>${label}</option>`
}

/** A list of objects. It starts with one empty group, so that the first needs no button. */
function groups(field: Field, context: ControlContext): Html {
  const { path, schema } = field
  const count = Math.max(1, groupCount(context.draft, field))
  const canAdd = count < (schema.maxItems ?? Number.POSITIVE_INFINITY)
  return html`<fieldset class="field record-groups" id="group-${elementId(path)}">
${legend(field)}
${hintLine(field, context)}
<input type="hidden" name="${countName(path)}" value="${count}">
${Array.from({ length: count }, (_, index) => group(field, context, index))}
${canAdd && groupButton('add', path, 'Add another', context, '')}
${errorLine(field, context)}
</fieldset>`
}

function group(field: Field, context: ControlContext, index: number): Html {
  const { path } = field
  const noun = label(path).replace(/s$/, '')
  const remove = html`Remove<span class="visually-hidden"> ${noun.toLowerCase()} ${index + 1}</span>`
  return html`<fieldset class="record-group">
<legend>${noun} ${index + 1}</legend>
${partsAt(field, index).map((part) => control(part, context))}
${groupButton('remove', `${path}.${index}`, remove, context, 'quiet')}
</fieldset>`
}

function groupButton(
  verb: 'add' | 'remove',
  value: string,
  text: Content,
  { to }: ControlContext,
  style: '' | 'quiet',
): Html {
  return html`<button
  class="button ${style}" name="${askName(verb)}" value="${value}" formnovalidate
  ${inPlace('post', `/console${to}`, FORM)}
>${text}</button>`
}

function legend({ isRequired, ...field }: Field): Html {
  const optional = !isRequired && html` <span class="optional">optional</span>`
  return html`<legend>${nameOf({ ...field, isRequired })}${optional}</legend>`
}

function fieldset(field: Field, context: ControlContext): Html {
  const { kind, parts = [], waitsFor } = field
  const isExplained = kind === 'keyed' && parts.length > 0
  const isEmpty = waitsFor === undefined && parts.length === 0
  return html`<fieldset class="field record-group">
${legend(field)}
${!isExplained && hintLine(field, context)}
${waitsFor !== undefined && html`<p class="muted">First choose: ${waitsFor}. Then there are fields here.</p>`}
${isEmpty && html`<p class="muted">There is nothing to fill in.</p>`}
${parts.map((part) => control(part, context))}
${errorLine(field, context)}
</fieldset>`
}

/** A value of one of several types: its type and its text. */
function scalar(field: Field, context: ControlContext): Html {
  const { path, schema } = field
  const types = new Set(schema.oneOf?.map(({ type }) => (type === 'integer' ? 'number' : type)))
  const isPossible = (kind: string): boolean =>
    types.has(kind === 'text' ? 'string' : kind === 'number' ? 'number' : 'boolean')
  const kind = context.draft.get(kindName(path)) ?? 'text'
  const kinds = Object.entries(SCALAR_KINDS).filter(([name]) => isPossible(name))
  return fieldParts(
    common(field, context),
    (attributes) => html`<span class="scalar">
<select name="${kindName(path)}" aria-label="Kind of ${nameOf(field)}">
${kinds.map(([value, label]) => optionElement({ value, label }, value === kind))}
</select>
<input type="text" ${attributes} value="${valueIn(field, context)}" autocomplete="off">
</span>`,
  )
}

/** A stored value, as shown beside its field. */
export function storedValue(field: Field, value: unknown, known: Known, now: Date): Content {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return JSON.stringify(value)
  if (Array.isArray(value))
    return value.length === 0
      ? 'nothing'
      : value.map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one))).join(', ')
  return cell(field.name, field.schema, value, { known, now })
}
