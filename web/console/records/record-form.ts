/** The form that creates or updates a record. */

import { type Html, html } from '../../shared/html.ts'
import { type Errors, formNote } from '../form-fields.ts'
import { button, buttonLink, hiddenInput } from '../ui.ts'
import { fieldLabel } from './control-parts.ts'
import { control } from './controls.ts'
import { type Draft, groupCount } from './draft.ts'
import type { FormField } from './field.ts'
import { groupFields } from './fields.ts'
import { FORM, type RecordForm } from './form-context.ts'
import { label } from './labels.ts'

export function recordForm(form: RecordForm): Html {
  const { to, cancel, submit, fields, hidden = {} } = form
  const { errors, rest } = sentences(form)
  const problem = form.problem ?? (rest.length > 0 ? rest.join(' ') : undefined)
  // The Enter key presses the first button, so the first one submits.
  return html`<form
    class="form record-form" id="${FORM}" method="post" action="/console${to}" novalidate
  >
    <button class="visually-hidden" tabindex="-1" aria-hidden="true">${submit}</button>
    ${formNote(errors, problem)}
    ${Object.entries(hidden).map(([name, value]) => hiddenInput(name, value))}
    ${fields.map((field) => control(field, { ...form, errors }))}
    <div class="form-actions">
      ${button(submit, 'primary')}
      ${buttonLink(cancel, 'Cancel', 'quiet')}
    </div>
  </form>`
}

/** Errors as sentences that begin with the label of their field. `rest` holds errors without a
 *  field. */
export function sentences({ fields, draft, errors = {} }: RecordForm): {
  errors: Errors
  rest: string[]
} {
  const remaining = new Map(Object.entries(errors))
  const byField: Errors = Object.create(null)
  const assign = (path: string, name: string, key = path): void => {
    const messages = remaining.get(key)
    if (!messages) return
    remaining.delete(key)
    byField[path] = [...(byField[path] ?? []), ...messages.map((message) => `${name} ${message}`)]
  }
  const visit = (field: FormField): void => {
    const name = fieldLabel(field)
    for (const part of partsIn(field, draft)) visit(part)
    assign(field.path, name)
    const entries = [...remaining.keys()].filter((key) => key.startsWith(`${field.path}.`))
    for (const key of entries) assign(field.path, `${name}, ${entryName(field, key)}`, key)
  }
  fields.forEach(visit)
  return {
    errors: byField,
    rest: [...remaining].flatMap(([key, messages]) =>
      messages.map((message) => `${label(key)} ${message}`),
    ),
  }
}

function entryName({ path, kind }: FormField, key: string): string {
  const rest = key.slice(path.length + 1)
  return ['lines', 'dependent'].includes(kind) && /^\d+$/.test(rest)
    ? `line ${Number(rest) + 1}`
    : rest
}

function partsIn(field: FormField, draft: Draft): FormField[] {
  if (field.kind !== 'groups') return field.parts ?? []
  return Array.from({ length: groupCount(draft, field) }, (_, index) =>
    groupFields(field, index),
  ).flat()
}
