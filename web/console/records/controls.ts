/** The inputs of a record form, by the kind of their field. */
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Html, html } from '../../shared/html.ts'
import {
  addChoice,
  type Choice,
  choiceField,
  type FieldOptions,
  fieldId,
  labelledField,
  selectField,
  textArea,
  textField,
} from '../form-fields.ts'
import { replace } from '../htmx.ts'
import { hiddenInput } from '../ui.ts'
import { amountPreview, amountProblem, currencyName, hasCurrencies, seenName } from './amounts.ts'
import { resolveDependent } from './dependent-fields.ts'
import { countName, groupCount, kindName } from './draft.ts'
import type { FieldKind, FormField } from './field.ts'
import { fitsTimeInput, LIST_KINDS, SCALAR_KINDS, scalarKinds } from './field-values.ts'
import { groupFields } from './fields.ts'
import {
  actionName,
  type ControlContext,
  draftValue,
  elementId,
  errorLine,
  FORM_ID,
  fieldHint,
  fieldOptions,
  formButton,
  formLabel,
  hintLine,
  storedValueNote,
} from './form-parts.ts'
import { isResourceChoice } from './keyed-fields.ts'
import { label, option } from './labels.ts'
import { reference } from './reference-control.ts'
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
  amount,
  number,
  text,
  lines: (field, context) => {
    const name = kindName(field.path)
    const isJson = context.draft.get(name) === 'json'
    return html`
      ${isJson && hiddenInput(name, 'json')}
      ${textArea({ ...fieldOptions(field, context), rows: 3, isCode: isJson })}`
  },
  options,
  joined: options,
  groups,
  group: fieldset,
  keyed: fieldset,
  scalar,
  scalars,
  dependent: (field, context) => control(resolveDependent(field, context.draft), context),
  json: (field, context) => textArea({ ...fieldOptions(field, context), isCode: true, rows: 5 }),
}

/** The amount as people write it, and below it the amount as the console reads it. */
function amount(field: FormField, context: ControlContext): Html {
  const { path, currency = '' } = field
  const previewId = `preview-${elementId(path)}`
  const refresh = replace(previewId, {
    path: `/console${context.to}?${actionName('refresh')}=1`,
    method: 'post',
    trigger: `input changed delay:150ms, change from:#${fieldId(currency)}`,
  })
  const preview = amountPreview(context.draft, field)
  const problem = !context.errors[path] && amountProblem(context.draft, field)
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`<input
        type="text"
        inputmode="decimal"
        ${attributes}
        value="${draftValue(field, context)}"
        autocomplete="off"
        ${refresh}
      >
      <p class="amount-preview" id="${previewId}" aria-live="polite">
        ${preview ?? (problem && `${formLabel(field)} ${problem}`)}
        ${preview && hiddenInput(seenName(field), preview)}
      </p>`,
  )
}

function number(field: FormField, context: ControlContext): Html {
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`<input
      type="text"
      inputmode="${field.schema.type === 'integer' ? 'numeric' : 'decimal'}"
      ${attributes}
      value="${draftValue(field, context)}"
      autocomplete="off"
    >`,
  )
}

/** A field gets a textarea if the contract permits more characters. */
const MAX_INPUT_CHARACTERS = 500

function text(field: FormField, context: ControlContext): Html {
  const { maxLength, format } = field.schema
  const value = draftValue(field, context)
  // A text input drops line breaks.
  if ((maxLength ?? 0) > MAX_INPUT_CHARACTERS || /[\r\n]/.test(value))
    return textArea(fieldOptions(field, context))
  return textField({ ...fieldOptions(field, context), type: format === 'email' ? 'email' : 'text' })
}

/** A `datetime-local` input drops text that is not a time, so such text gets a text input. */
export function timeField(options: FieldOptions): Html {
  const type = fitsTimeInput(options.value ?? '') ? 'datetime-local' : 'text'
  return textField({ ...options, type })
}

export function optionsOf(schema: Schema): Choice[] {
  const toLabel = hasCurrencies(schema)
    ? currencyName
    : (value: string): string => option(value, schema)
  return (schema.enum ?? [])
    .filter((value) => value !== null)
    .map((value) => ({ value: String(value), label: toLabel(String(value)) }))
}

function choice(field: FormField, context: ControlContext): Html {
  const { schema, isRequired, refreshesForm } = field
  const value = context.draft.get(field.path) ?? String(schema.default ?? '')
  const isOffered = ({ value: option }: Choice): boolean =>
    !isResourceChoice(field) || canViewOption(context.user, option)
  const choices = addChoice(optionsOf(schema).filter(isOffered), value)
  const canBeNone =
    schema.nullable || value === '' || (context.isNew && schema.default === undefined)
  const select = selectField({
    ...fieldOptions(field, context),
    value,
    choices,
    ...(canBeNone && { none: isRequired ? 'Choose one' : 'None' }),
  })
  if (!refreshesForm) return select
  const refresh = actionName('refresh')
  const path = `/console${context.to}?${refresh}=1`
  return html`<div class="driver"${replace(FORM_ID, { path, method: 'post', trigger: 'change' })}>
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

/** A field with more options gets a scrolling list. */
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
  const { name, label: legend, hint, values, errors } = field
  const choices = values.reduce(addChoice, field.choices)
  if (choices.length <= MAX_CHECKBOXES)
    return choiceField({ name, legend, hint, choices, values, isMultiple: true, errors })
  const isSelected = ({ value }: Choice): boolean => values.includes(value)
  const selectedFirst = [
    ...choices.filter(isSelected),
    ...choices.filter((choice) => !isSelected(choice)),
  ]
  return labelledField(
    field,
    (attributes) => html`<select ${attributes} multiple size="5">
      ${selectedFirst.map((choice) => optionElement(choice, isSelected(choice)))}
    </select>`,
  )
}

function optionElement({ value, label }: Choice, isSelected: boolean): Html {
  return html`<option value="${value}"${isSelected && html` selected`}>${label}</option>`
}

/** A list of objects. Each object is a group of fields. An empty list shows one empty group. */
function groups(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const count = Math.max(1, groupCount(context.draft, field))
  const canAdd = count < (schema.maxItems ?? Number.POSITIVE_INFINITY)
  return html`<fieldset class="field record-groups" id="group-${elementId(path)}">
    ${legend(field)}
    ${hintLine(fieldHint(field, context))}
    ${hiddenInput(countName(path), String(count))}
    ${Array.from({ length: count }, (_, index) => group(field, context, index))}
    ${canAdd && formButton(context, { action: 'add', value: path, style: 'button' }, 'Add another')}
    ${errorLine(field, context)}
  </fieldset>`
}

function group(field: FormField, context: ControlContext, index: number): Html {
  const title = `${label(field.path).replace(/s$/, '')} ${index + 1}`
  return html`<fieldset class="record-group">
    <legend>${title}</legend>
    ${groupFields(field, index).map((part) => control(part, context))}
    ${formButton(
      context,
      { action: 'remove', value: `${field.path}.${index}`, style: 'button quiet' },
      html`Remove<span class="visually-hidden"> ${title.toLowerCase()}</span>`,
    )}
  </fieldset>`
}

function legend(field: FormField): Html {
  const optional = !field.isRequired && html` <span class="optional">optional</span>`
  return html`<legend>${formLabel(field)}${optional}</legend>`
}

function fieldset(field: FormField, context: ControlContext): Html {
  const { kind, parts = [], waitsFor } = field
  // The hint explains the possible keys. The parts of a keyed field show them already.
  const showsKeys = kind === 'keyed' && parts.length > 0
  const hint = showsKeys ? storedValueNote(field, context) : fieldHint(field, context)
  const isEmpty = waitsFor === undefined && parts.length === 0
  return html`<fieldset class="field record-group">
    ${legend(field)}
    ${hintLine(hint)}
    ${waitsFor !== undefined && html`<p class="muted">${waitsFor}</p>`}
    ${isEmpty && html`<p class="muted">No fields to fill in.</p>`}
    ${parts.map((part) => control(part, context))}
    ${errorLine(field, context)}
  </fieldset>`
}

/** An input for the kind of the value (`SCALAR_KINDS`) and one for its text. If only one kind is
 *  possible, the user need not choose it. */
function scalar(field: FormField, context: ControlContext): Html {
  const { path, schema } = field
  const kinds = scalarKinds(schema)
  const choices = kinds.map((value) => ({ value, label: SCALAR_KINDS[value] }))
  const name = kindName(path)
  const [onlyKind, ...otherKinds] = kinds
  const kindInput =
    onlyKind !== undefined && otherKinds.length === 0
      ? hiddenInput(name, onlyKind)
      : kindSelect(field, choices, context.draft.get(name) ?? 'text')
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`<span class="scalar">
      ${kindInput}
      <input type="text" ${attributes} value="${draftValue(field, context)}" autocomplete="off">
    </span>`,
  )
}

/** An input for the kind of the values (`LIST_KINDS`), and a text with one value per line. */
function scalars(field: FormField, context: ControlContext): Html {
  const kind = context.draft.get(kindName(field.path)) ?? 'text'
  // JSON is offered only for a list that is JSON already: lines cannot represent such a list.
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
  return html`<select name="${kindName(field.path)}" aria-label="Kind of ${formLabel(field)}">
    ${kinds.map((kind) => optionElement(kind, kind.value === selected))}
  </select>`
}
