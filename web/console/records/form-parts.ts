/** What a record form shows, and the parts that its controls share: label, hint, value, errors and
 *  buttons of a field. */
import type { FieldErrors } from '../../../errors.ts'
import type { User } from '../../../records/users.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { boxId, type Errors, type FieldOptions } from '../form-fields.ts'
import { zoneTitle } from '../format.ts'
import { replace } from '../htmx.ts'
import { withCode } from '../ui.ts'
import { hasCurrencies, shownName } from './amounts.ts'
import type { Draft } from './draft.ts'
import type { FormField } from './field.ts'
import type { KnownRecords, SearchResult } from './references.ts'
import { fieldLabel } from './resources.ts'
import { wordingOf } from './wording.ts'

export interface RecordForm {
  /** The path that receives the form, relative to /console. */
  to: string
  /** The path that Cancel leads to, relative to /console. */
  cancel: string
  /** The label of the button that saves. */
  submit: string
  fields: FormField[]
  draft: Draft
  known: KnownRecords
  user: User
  now: Date
  isNew: boolean
  /** By field path, as the API returns them: `must be a time.` */
  errors?: FieldErrors
  problem?: string
  /** What the user must check before the form is saved. */
  notice?: string
  /** Search results for the reference at this path. */
  suggestions?: { path: string; result: SearchResult }
  /** Set if another user has updated the record meanwhile. By field path: the stored values that
   *  differ from what `user` entered. */
  stored?: Record<string, Content>
  hidden?: Record<string, string>
}

/** Buttons that submit the form without saving it. `find` and `choose` belong to references, `add`
 *  and `remove` to lists of objects; `refresh` renders the form again. */
export type FormAction = 'find' | 'choose' | 'add' | 'remove' | 'refresh'

/** The colon keeps these names apart from fields: no field name in the contract contains one. */
export const actionName = (action: FormAction): string => `ask:${action}`

/** Here, `errors` are sentences: `Due must be a time.` */
export type ControlContext = RecordForm & { errors: Errors }

export const elementId = (path: string): string => path.replace(/\W/g, '-')

export function formLabel({ path, name, label, schema }: FormField): string {
  return label ?? wordingOf(path).label ?? fieldLabel(shownName(name, schema))
}

export const draftValue = ({ path }: FormField, { draft }: ControlContext): string =>
  draft.get(path) ?? ''

export function fieldOptions(field: FormField, context: ControlContext): FieldOptions {
  const { path, schema, isRequired, isFilter, mark } = field
  // A choice with a default has a value, and an update cannot remove it unless it is nullable.
  const keepsValue =
    schema.enum !== undefined &&
    !schema.nullable &&
    (!context.isNew || schema.default !== undefined)
  return {
    name: path,
    label: formLabel(field),
    hint: fieldHint(field, context),
    value: draftValue(field, context),
    errors: context.errors,
    isRequired: isRequired || keepsValue,
    mark: isFilter ? '' : mark,
    placeholder: wordingOf(path).placeholder,
  }
}

/** The field's own hint or, if it has none, its description in the contract. After that, the
 *  format, the range and `storedValueNote`. */
export function fieldHint(field: FormField, context: ControlContext): Content {
  const { schema, kind } = field
  // These need no hint: the form shows names of currencies and records, and how it reads an amount.
  const explainsItself = ['amount', 'reference'].includes(kind) || hasCurrencies(schema)
  const { description, minimum, maximum } = explainsItself ? {} : schema
  const sentences = [
    field.hint ?? wordingOf(field.path).hint ?? description,
    kind === 'time' && !field.isFilter && `In ${zoneTitle()}.`,
    (kind === 'lines' || kind === 'scalars') && 'One per line.',
    minimum !== undefined &&
      maximum !== undefined &&
      `From ${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}.`,
  ].filter((sentence) => typeof sentence === 'string' && sentence !== '')
  const conflict = storedValueNote(field, context)
  if (sentences.length === 0 && !conflict) return undefined
  return html`${withCode(sentences.join(' '))}${conflict}`
}

/** The stored value, if the form shows a conflict with another update (`conflictPage` in
 *  edit-record.ts) and the user changed this field. Otherwise false. */
export function storedValueNote({ path }: FormField, { stored = {} }: ControlContext): Content {
  return path in stored && html` <strong class="now-stored">Now stored: ${stored[path]}</strong>`
}

export function hintLine(hint: Content): Content {
  return hint && html`<p class="hint">${hint}</p>`
}

export function errorLine({ path }: FormField, { errors }: ControlContext): Content {
  return errors[path] && html`<p class="field-error">${errors[path].join(' ')}</p>`
}

/** Renders the form again, and replaces only the fields at `paths`. What the user types meanwhile
 *  stays: in other fields because they stay, and in these by client/live.js. */
export function reloadFields(
  { to }: ControlContext,
  [path = '', ...others]: string[],
  { query = '', trigger }: { query?: string; trigger?: string } = {},
): Html {
  return replace(boxId(path), {
    path: `/console${to}${query}`,
    method: 'post',
    trigger,
    also: others.map((other) => `#${boxId(other)}`).join() || undefined,
  })
}

interface FormButton {
  action: FormAction
  value: string
  /** The paths of the fields that the action changes. */
  changes: string[]
  style?: string
  attributes?: Content
}

/** A button that applies the action to the form, without saving. */
export function formButton(
  context: ControlContext,
  { action, value, changes, style = '', attributes }: FormButton,
  text: Content,
): Html {
  return html`<button
    class="${style}"
    name="${actionName(action)}"
    value="${value}"
    formnovalidate
    ${attributes}
    ${reloadFields(context, changes)}
  >${text}</button>`
}
