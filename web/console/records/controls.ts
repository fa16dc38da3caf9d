/** The inputs of a record form, by the kind of their field. */
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Html, html } from '../../shared/html.ts'
import {
  addChoice,
  boxId,
  type Choice,
  choiceField,
  type FieldOptions,
  fieldId,
  foldedFields,
  labelledField,
  selectField,
  textArea,
  textField,
} from '../form-fields.ts'
import { replace } from '../htmx.ts'
import { hiddenInput } from '../ui.ts'
import { amountPreview, amountProblem, currencyName, hasCurrencies, seenName } from './amounts.ts'
import { kindName } from './draft.ts'
import type { FormField } from './field.ts'
import { fitsTimeInput, LIST_KINDS, SCALAR_KINDS, scalarKinds } from './field-values.ts'
import {
  actionName,
  type ControlContext,
  draftValue,
  elementId,
  fieldOptions,
  formLabel,
  reloadFields,
} from './form-parts.ts'
import { columnLabel, option } from './labels.ts'
import { canViewResource, isResourceChoice, resourceByOption } from './resources.ts'
import { wordingOf } from './wording.ts'

export function yesNoControl(field: FormField, context: ControlContext): Html {
  return selectField({
    ...fieldOptions(field, context),
    none: 'Not set',
    choices: [
      { value: 'true', label: 'Yes' },
      { value: 'false', label: 'No' },
    ],
  })
}

export function timeControl(field: FormField, context: ControlContext): Html {
  return timeField(fieldOptions(field, context))
}

export function linesControl(field: FormField, context: ControlContext): Html {
  const name = kindName(field.path)
  const isJson = context.draft.get(name) === 'json'
  return html`
    ${isJson && hiddenInput(name, 'json')}
    ${textArea({ ...fieldOptions(field, context), rows: 3, isCode: isJson })}`
}

export function jsonControl(field: FormField, context: ControlContext): Html {
  return textArea({ ...fieldOptions(field, context), isCode: true, rows: 5 })
}

/** The amount as people write it, and below it the amount as the console reads it. */
export function amountControl(field: FormField, context: ControlContext): Html {
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

export function numberControl(field: FormField, context: ControlContext): Html {
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
/** A textarea for more characters has more lines. */
const MAX_NOTE_CHARACTERS = 2_000

export function textControl(field: FormField, context: ControlContext): Html {
  const { maxLength, format } = field.schema
  const value = draftValue(field, context)
  // A text input drops line breaks.
  if ((maxLength ?? 0) > MAX_INPUT_CHARACTERS || /[\r\n]/.test(value))
    return textArea({
      ...fieldOptions(field, context),
      rows: (maxLength ?? 0) > MAX_NOTE_CHARACTERS ? 3 : 2,
    })
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

export function choiceControl(field: FormField, context: ControlContext): Html {
  const { schema, isRequired, dependents } = field
  const value = context.draft.get(field.path) ?? String(schema.default ?? '')
  const isOffered = ({ value: option }: Choice): boolean =>
    !isResourceChoice(field) || canViewOption(context.user, option)
  const choices = addChoice(optionsOf(schema).filter(isOffered), value)
  const { options: meanings } = wordingOf(field.path)
  if (meanings) return radioButtons(field, context, { choices, value, meanings })
  const canBeNone =
    schema.nullable || value === '' || (context.isNew && schema.default === undefined)
  const select = selectField({
    ...fieldOptions(field, context),
    value,
    choices,
    ...(canBeNone && { none: isRequired ? 'Choose one' : 'None' }),
  })
  if (!dependents) return select
  const refresh = actionName('refresh')
  const reload = reloadFields(context, dependents, { query: `?${refresh}=1`, trigger: 'change' })
  return html`<div class="driver"${reload}>
    ${select}
    <button class="button needs-script-off" name="${refresh}" value="1" formnovalidate>
      Update form
    </button>
  </div>`
}

function radioButtons(
  field: FormField,
  { errors }: ControlContext,
  {
    choices,
    value,
    meanings,
  }: { choices: Choice[]; value: string; meanings: Record<string, string> },
): Html {
  return choiceField({
    name: field.path,
    legend: formLabel(field),
    choices: choices.map((choice) => ({ ...choice, hint: meanings[choice.value] })),
    values: [value || (choices[0]?.value ?? '')],
    errors,
  })
}

/** The columns of an export. */
export function columnsControl(field: FormField, { draft, errors }: ControlContext): Html {
  const { path, schema } = field
  const names = (schema.items?.enum ?? []).map(String)
  if (names.length === 0) return html`<div id="${boxId(path)}"></div>`
  const fieldset = choiceField({
    name: path,
    legend: html`<span class="visually-hidden">${formLabel(field)}</span>`,
    choices: names.map((name) => ({ value: name, label: columnLabel(name) })),
    values: draft.getAll(path),
    isMultiple: true,
    errors,
  })
  const shownFor = hiddenInput(kindName(path), draft.get(kindName(path)) ?? '')
  const isUsed = path in errors || draft.getAll(path).length < names.length
  return html`<div class="export-columns" id="${boxId(path)}">
    ${shownFor}
    ${foldedFields(formLabel(field), fieldset, isUsed)}
  </div>`
}

function canViewOption(user: User, value: string): boolean {
  const resource = resourceByOption(value)
  return resource !== undefined && canViewResource(user, resource)
}

/** A field with more options gets a scrolling list. */
const MAX_CHECKBOXES = 12

export function optionsControl(field: FormField, context: ControlContext): Html {
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

/** An input for the kind of the value (`SCALAR_KINDS`) and one for its text. If only one kind is
 *  possible, the user need not choose it. */
export function scalarControl(field: FormField, context: ControlContext): Html {
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
export function scalarsControl(field: FormField, context: ControlContext): Html {
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
