/** The inputs of a record form, by the kind of their field. */

import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import {
  addChoice,
  type Choice,
  choiceField,
  type FieldOptions,
  labelledField,
  selectField,
  textArea,
  textField,
} from '../form-fields.ts'
import { replace } from '../htmx.ts'
import { cell } from './cells.ts'
import {
  draftValue,
  errorLine,
  fieldLabel,
  fieldOptions,
  formButton,
  hintLine,
} from './control-parts.ts'
import { narrow } from './dependent-fields.ts'
import { countName, groupCount, kindName } from './draft.ts'
import type { FieldKind, FormField } from './field.ts'
import { isLocal, LIST_KINDS, SCALAR_KINDS, scalarKinds } from './field-values.ts'
import { groupFields } from './fields.ts'
import { actionName, type ControlContext, elementId, FORM } from './form-context.ts'
import { isResourceChoice } from './keyed-fields.ts'
import { label, option } from './labels.ts'
import { reference } from './reference-control.ts'
import type { KnownRecords } from './references.ts'
import { canViewResource, resourceByOption } from './resources.ts'

export function control(field: FormField, context: ControlContext): Html {
  return CONTROLS[field.kind](field, context)
}

const CONTROLS: Record<FieldKind, (field: FormField, context: ControlContext) => Html> = {
  reference,
  choice,
  yes_no: (field, context) =>
    selectField({
      ...fieldOptions(field, context),
      none: 'Not set',
      choices: [
        { value: 'true', label: 'Yes' },
        { value: 'false', label: 'No' },
      ],
    }),
  time: (field, context) => timeField(fieldOptions(field, context)),
  number: (field, context) =>
    labelledField(
      fieldOptions(field, context),
      (attributes) => html`<input
        type="text" inputmode="${field.schema.type === 'integer' ? 'numeric' : 'decimal'}"
        ${attributes} value="${draftValue(field, context)}" autocomplete="off"
      >`,
    ),
  text,
  lines: (field, context) => {
    const isJson = context.draft.get(kindName(field.path)) === 'json'
    return html`
      ${isJson && html`<input type="hidden" name="${kindName(field.path)}" value="json">`}
      ${textArea({ ...fieldOptions(field, context), rows: 3, isCode: isJson })}`
  },
  options,
  joined: options,
  groups,
  group: fieldset,
  keyed: fieldset,
  scalar,
  scalars,
  dependent: (field, context) => control(narrow(field, context.draft), context),
  json: (field, context) => textArea({ ...fieldOptions(field, context), isCode: true, rows: 5 }),
}

/** Longer texts, in characters, get a textarea. */
const MAX_LINE_LENGTH = 500

function text(field: FormField, context: ControlContext): Html {
  const { maxLength, format } = field.schema
  const value = draftValue(field, context)
  // A text input drops line breaks.
  if ((maxLength ?? 0) > MAX_LINE_LENGTH || /[\r\n]/.test(value))
    return textArea(fieldOptions(field, context))
  return textField({ ...fieldOptions(field, context), type: format === 'email' ? 'email' : 'text' })
}

/** A datetime-local input drops text that is not a time. */
export function timeField(options: FieldOptions): Html {
  return textField({ ...options, type: isLocal(options.value ?? '') ? 'datetime-local' : 'text' })
}

export function optionsOf({ enum: values = [] }: Schema): Choice[] {
  return values
    .filter((value) => value !== null)
    .map((value) => ({ value: String(value), label: option(value) }))
}

function choice(field: FormField, context: ControlContext): Html {
  const { schema, isRequired, refreshesForm } = field
  const value = context.draft.get(field.path) ?? String(schema.default ?? '')
  const possible = optionsOf(schema).filter(
    (one) => !isResourceChoice(field) || canViewOption(context.user, one.value),
  )
  const choices = addChoice(possible, value)
  const needsNone =
    schema.nullable || value === '' || (context.isNew && schema.default === undefined)
  const none = needsNone ? (isRequired ? 'Choose one' : 'None') : undefined
  const select = selectField({ ...fieldOptions(field, context), value, choices, none })
  if (!refreshesForm) return select
  const refresh = actionName('refresh')
  const path = `/console${context.to}?${refresh}=1`
  return html`<div class="driver"${replace(FORM, { path, method: 'post', trigger: 'change' })}>
    ${select}
    <button class="button needs-script-off" name="${refresh}" value="1" formnovalidate>
      Update form
    </button>
  </div>`
}

function canViewOption(user: User, value: string): boolean {
  const resource = resourceByOption(value)
  return resource !== undefined && canViewResource(user, resource)
}

/** More options get a scrolling list. */
const MAX_CHECKBOXES = 12

function options(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const values = context.draft.getAll(path).filter(Boolean)
  return multiSelectField({
    ...fieldOptions(field, context),
    choices: optionsOf(schema.items ?? {}),
    values,
  })
}

export function multiSelectField(
  field: FieldOptions & { choices: Choice[]; values: string[] },
): Html {
  const { name, label: legend, hint, choices, values, errors } = field
  const all = values.reduce(addChoice, choices)
  const selectedFirst = [...all].sort(
    (a, b) => Number(values.includes(b.value)) - Number(values.includes(a.value)),
  )
  if (all.length <= MAX_CHECKBOXES)
    return choiceField({ name, legend, hint, choices: all, values, isMultiple: true, errors })
  return labelledField(
    field,
    (attributes) =>
      html`<select ${attributes} multiple size="5">
        ${selectedFirst.map((one) => optionElement(one, values.includes(one.value)))}
      </select>`,
  )
}

function optionElement({ value, label }: Choice, isSelected: boolean): Html {
  return html`<option value="${value}"${isSelected && html` selected`}>${label}</option>`
}

/** A list of objects. Starts with one empty group. */
function groups(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const count = Math.max(1, groupCount(context.draft, field))
  const canAdd = count < (schema.maxItems ?? Number.POSITIVE_INFINITY)
  return html`<fieldset class="field record-groups" id="group-${elementId(path)}">
    ${legend(field)}
    ${hintLine(field, context)}
    <input type="hidden" name="${countName(path)}" value="${count}">
    ${Array.from({ length: count }, (_, index) => group(field, context, index))}
    ${canAdd && formButton(context, { action: 'add', value: path, style: 'button' }, 'Add another')}
    ${errorLine(field, context)}
  </fieldset>`
}

function group(field: FormField, context: ControlContext, index: number): Html {
  const { path } = field
  const noun = label(path).replace(/s$/, '')
  const remove = html`Remove<span class="visually-hidden"> ${noun.toLowerCase()} ${index + 1}</span>`
  return html`<fieldset class="record-group">
    <legend>${noun} ${index + 1}</legend>
    ${groupFields(field, index).map((part) => control(part, context))}
    ${formButton(context, { action: 'remove', value: `${path}.${index}`, style: 'button quiet' }, remove)}
  </fieldset>`
}

function legend({ isRequired, ...field }: FormField): Html {
  const optional = !isRequired && html` <span class="optional">optional</span>`
  return html`<legend>${fieldLabel({ ...field, isRequired })}${optional}</legend>`
}

function fieldset(field: FormField, context: ControlContext): Html {
  const { kind, parts = [], waitsFor } = field
  const isExplained = kind === 'keyed' && parts.length > 0
  const isEmpty = waitsFor === undefined && parts.length === 0
  return html`<fieldset class="field record-group">
    ${legend(field)}
    ${!isExplained && hintLine(field, context)}
    ${waitsFor !== undefined && html`<p class="muted">First choose: ${waitsFor}.</p>`}
    ${isEmpty && html`<p class="muted">No fields to fill in.</p>`}
    ${parts.map((part) => control(part, context))}
    ${errorLine(field, context)}
  </fieldset>`
}

/** A type and a text. A single possible type needs no choice. */
function scalar(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const kinds = scalarKinds(schema)
  const choices = kinds.map((value) => ({ value, label: SCALAR_KINDS[value] }))
  const name = kindName(path)
  const kind = context.draft.get(name) ?? 'text'
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`<span class="scalar">
      ${
        kinds.length === 1
          ? html`<input type="hidden" name="${name}" value="${kinds[0]}">`
          : kindSelect(field, choices, kind)
      }
      <input type="text" ${attributes} value="${draftValue(field, context)}" autocomplete="off">
    </span>`,
  )
}

/** A type and a text with one value per line. */
function scalars(field: FormField, context: ControlContext): Html {
  const kind = context.draft.get(kindName(field.path)) ?? 'text'
  const kinds = Object.entries(LIST_KINDS)
    .filter(([value]) => value !== 'json' || kind === 'json')
    .map(([value, label]) => ({ value, label }))
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`<span class="scalar">
      ${kindSelect(field, kinds, kind)}
      <textarea ${attributes} rows="3">\n${draftValue(field, context)}</textarea>
    </span>`,
  )
}

function kindSelect(field: FormField, kinds: Choice[], selected: string): Html {
  return html`<select name="${kindName(field.path)}" aria-label="Kind of ${fieldLabel(field)}">
    ${kinds.map((kind) => optionElement(kind, kind.value === selected))}
  </select>`
}

/** The stored value, beside its field after a conflict. */
export function storedValue(
  field: FormField,
  value: unknown,
  known: KnownRecords,
  now: Date,
): Content {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return JSON.stringify(value)
  if (Array.isArray(value))
    return value.length === 0
      ? 'empty'
      : value.map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one))).join(', ')
  return cell(field.name, field.schema, value, { known, now })
}
