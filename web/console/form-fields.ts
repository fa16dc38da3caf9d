import { Refused } from '../../errors.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import type { ConsolePage } from './page.ts'
import { button, buttonLink, card, note } from './ui.ts'

/** The errors of a form: sentences, by the name of the field. */
export type Errors = Record<string, string[]>

/** The outcome of a submitted form, which its page shows. */
export interface FormOutcome {
  status?: number
  problem?: string
  errors?: Errors
}

export function hasErrors(errors: Errors): boolean {
  return Object.keys(errors).length > 0
}

/** The HTTP status of the page that shows a form with these errors. */
export function formStatus(errors: Errors): number {
  return hasErrors(errors) ? 422 : 200
}

/** The errors of the fields whose check throws `Refused`. */
export function checkFields(checks: Record<string, () => unknown>): Errors {
  const errors: Errors = {}
  for (const [name, check] of Object.entries(checks)) {
    try {
      check()
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      const isSentence = /[.!?]$/.test(error.message)
      errors[name] = [isSentence ? error.message : `${error.message}.`]
    }
  }
  return errors
}

export interface FieldOptions {
  name: string
  label: Content
  /** Shown under the label. */
  hint?: Content
  value?: string
  /** The errors of all fields of the form. */
  errors?: Errors
  isRequired?: boolean
  /** Beside the label. Default: `optional`, unless the field is required. */
  mark?: string
  placeholder?: string
}

/** Returns a function that creates the options of a required field. The value of the field is what
 *  the user typed, or `initial` before the form is sent. */
export function typedFields(input: URLSearchParams, errors: Errors) {
  return (name: string, label: string, initial = ''): FieldOptions => ({
    name,
    label,
    value: input.get(name) ?? initial,
    isRequired: true,
    errors,
  })
}

/** Label, hint, input and error of a field. IDs connect them for screen readers. */
export function labelledField(
  { name, label, hint, errors = {}, isRequired, mark = isRequired ? '' : 'optional' }: FieldOptions,
  input: (attributes: Html) => Html,
): Html {
  const id = fieldId(name)
  const messages = errors[name]
  const describedBy = [hint && `${id}-hint`, messages && `${id}-error`].filter(Boolean).join(' ')
  const attributes = [
    html`id="${id}" name="${name}"`,
    isRequired && html` required`,
    describedBy !== '' && html` aria-describedby="${describedBy}"`,
    messages && html` aria-invalid="true"`,
  ]
  const shownMark = mark !== '' && html` <span class="optional">${mark}</span>`
  return html`<div class="field" id="${boxId(name)}">
    <label for="${id}">${label}${shownMark}</label>
    ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
    ${input(html`${attributes}`)}
    ${messages && fieldError(id, messages)}
  </div>`
}

export function fieldId(name: string): string {
  return `field-${name.replace(/[^\w]/g, '-')}`
}

/** The ID of the element that has the label, the hint, the input and the error of a field. */
export function boxId(name: string): string {
  return `${fieldId(name)}-box`
}

function fieldError(id: string, messages: string[]): Html {
  return html`<p class="field-error" id="${id}-error">${messages.join(' ')}</p>`
}

export function textField(
  options: FieldOptions & {
    type?: 'text' | 'email' | 'password' | 'url' | 'search' | 'number' | 'datetime-local'
    autocomplete?: string
    maxLength?: number
  },
): Html {
  const { type = 'text', value = '', autocomplete = 'off', maxLength, placeholder } = options
  const label =
    type === 'datetime-local' ? html`${options.label} ${shownTime(value)}` : options.label
  const optionalAttributes = [
    maxLength !== undefined && html` maxlength="${maxLength}"`,
    placeholder && html` placeholder="${placeholder}"`,
  ]
  return labelledField(
    { ...options, label },
    (attributes) => html`<input
      type="${type}" ${attributes}
      value="${type === 'password' ? '' : value}"
      autocomplete="${autocomplete}"${optionalAttributes}
    >`,
  )
}

/** The time of an input as all pages show it: browsers show it in the format of their own language,
 *  such as 12/03/2026. Changes with the input: see client/console.js. */
function shownTime(value: string): Html {
  return html`<span class="shown-time" aria-hidden="true">${value.slice(0, 16).replace('T', ' ')}</span>`
}

/** A password field with a Show button (JavaScript only). Never repeats the submitted password. */
export function passwordField(
  options: FieldOptions & { autocomplete: 'current-password' | 'new-password' },
): Html {
  return labelledField(
    { isRequired: true, ...options },
    (attributes) => html`<span class="secret">
      <input type="password" ${attributes} autocomplete="${options.autocomplete}">
      <button type="button" class="button quiet" data-reveal>${SHOW_PASSWORD}</button>
    </span>`,
  )
}

const SHOW_PASSWORD = html`Show<span class="visually-hidden"> the password</span>`

export function textArea(options: FieldOptions & { rows?: number; isCode?: boolean }): Html {
  const { value = '', rows = 4, isCode } = options
  const codeAttributes = isCode && html` class="mono" spellcheck="false"`
  return labelledField(
    options,
    (attributes) =>
      // Without this \n, HTML would drop a line break at the start of `value`.
      html`<textarea ${attributes} rows="${rows}"${codeAttributes}>\n${value}</textarea>`,
  )
}

export interface Choice {
  value: string
  label: Content
  hint?: Content
}

/** The choices, with an additional one if `value` is not empty and no choice has it. */
export function addChoice(choices: Choice[], value: string): Choice[] {
  const isKnown = value === '' || choices.some((choice) => choice.value === value)
  return isKnown ? choices : [...choices, { value, label: value }]
}

export function selectField(options: FieldOptions & { choices: Choice[]; none?: string }): Html {
  const { value = '', choices, none } = options
  return labelledField(
    options,
    (attributes) => html`<select ${attributes}>
      ${none !== undefined && html`<option value="">${none}</option>`}
      ${choices.map((choice) => {
        const selected = choice.value === value && html` selected`
        return html`<option value="${choice.value}"${selected}>${choice.label}</option>`
      })}
    </select>`,
  )
}

/** Radio buttons, or checkboxes with `isMultiple`. */
export function choiceField(options: {
  name: string
  legend: Content
  hint?: Content
  choices: Choice[]
  /** The values of the checked choices. */
  values: string[]
  isMultiple?: boolean
  errors?: Errors
}): Html {
  const { name, legend, hint, choices, values, isMultiple = false, errors = {} } = options
  const id = fieldId(name)
  const messages = errors[name]
  const type = isMultiple ? 'checkbox' : 'radio'
  return html`<fieldset class="field choices"${messages && html` aria-describedby="${id}-error"`}>
    <legend>${legend}</legend>
    ${hint && html`<p class="hint">${hint}</p>`}
    ${choices.map((choice) => choiceInput(choice, { type, name, values }))}
    ${messages && fieldError(id, messages)}
  </fieldset>`
}

interface ChoiceInput {
  type: 'checkbox' | 'radio'
  name: string
  values: string[]
}

export function choiceInput(
  { value, label, hint }: Choice,
  { type, name, values }: ChoiceInput,
): Html {
  const checked = values.includes(value) && html` checked`
  return html`<label class="choice">
    <input type="${type}" name="${name}" value="${value}"${checked}>
    <span>
      <span class="choice-label">${label}</span>
      ${hint && html`<span class="hint">${hint}</span>`}
    </span>
  </label>`
}

/** Fields that most people leave as they are. */
export function foldedFields(summary: Content, fields: Content, isOpen: boolean): Html {
  return html`<details class="more-fields"${isOpen && html` open`}>
    <summary>${summary}</summary>
    ${fields}
  </details>`
}

interface FormOptions {
  /** The path that receives the form, below /console. */
  to: string
  submit: string
  style?: 'primary' | 'danger' | ''
  /** The path that Cancel leads to, below /console. Without it, there is no Cancel. */
  cancel?: string
  /** An error of the whole form. */
  problem?: string
  errors?: Errors
  hasFile?: boolean
}

/** If the form has errors, a note at its top says so; `fields` show their own errors. */
export function form(
  { to, submit, style = 'primary', cancel, problem, errors = {}, hasFile }: FormOptions,
  fields: Content,
): Html {
  const encoding = hasFile && html` enctype="multipart/form-data"`
  return html`<form class="form" method="post" action="/console${to}"${encoding} novalidate>
    ${formNote(errors, problem)}
    ${fields}
    <div class="form-actions">
      ${button(submit, style)}
      ${cancel !== undefined && buttonLink(cancel, 'Cancel', 'quiet')}
    </div>
  </form>`
}

export function formNote(errors: Errors, problem?: string): Content {
  if (problem === undefined && !hasErrors(errors)) return false
  return note('bad', problem ?? 'Please fix the fields marked below.')
}

export function formPage(
  head: Pick<ConsolePage, 'title' | 'lead' | 'crumbs'>,
  options: FormOptions,
  fields: Content,
): ConsolePage {
  const { problem, errors = {} } = options
  return {
    ...head,
    status: problem === undefined ? formStatus(errors) : 422,
    isNarrow: true,
    body: card('', form(options, fields)),
  }
}
