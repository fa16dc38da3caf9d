/** The form that creates or updates a record. */
import { validate as isUuid } from 'uuid'
import { type Html, html } from '../../shared/html.ts'
import { type Errors, formNote } from '../form-fields.ts'
import { zoneInput } from '../time-zone.ts'
import { button, buttonLink, enterButton, hiddenInput, note } from '../ui.ts'
import { type Draft, groupCount } from './draft.ts'
import type { FormField } from './field.ts'
import { control, groupFields } from './fields.ts'
import { type ControlContext, formLabel, type RecordForm } from './form-parts.ts'
import { label } from './labels.ts'
import { canViewResource, referencedResource } from './resources.ts'

export function recordForm(form: RecordForm): Html {
  const { to, cancel, submit, fields, hidden = {} } = form
  const { errors, otherErrors } = errorSentences(form)
  const problem = form.problem ?? (otherErrors.length > 0 ? otherErrors.join(' ') : undefined)
  return html`<form
    class="form"
    method="post"
    action="/console${to}"
    novalidate
  >
    ${enterButton(submit)}
    ${formNote(errors, problem)}
    ${form.notice !== undefined && note('warn', form.notice)}
    ${Object.entries(hidden).map(([name, value]) => hiddenInput(name, value))}
    ${zoneInput()}
    ${withAmounts(fields).map((group) => fieldGroup(group, { ...form, errors }))}
    <div class="form-actions">
      ${button(submit, 'primary')}
      ${buttonLink(cancel, 'Cancel', 'quiet')}
    </div>
  </form>`
}

/** Each field in a group of its own, except that an amount is beside its currency. */
function withAmounts(fields: FormField[]): FormField[][] {
  return fields.flatMap((field) => {
    if (fields.some(({ path }) => path === field.currency)) return []
    return [[field, ...fields.filter(({ currency }) => currency === field.path)]]
  })
}

function fieldGroup(fields: FormField[], context: ControlContext): Html {
  const controls = fields.map((field) => control(field, context))
  return fields.length > 1 ? html`<div class="side-by-side">${controls}</div>` : html`${controls}`
}

/** Sentences that begin with the label of their field. `otherErrors` belong to no field of the
 *  form. */
function errorSentences(form: RecordForm): { errors: Errors; otherErrors: string[] } {
  const { fields, draft, errors = {} } = form
  const all = fields.flatMap((field) => withParts(field, draft))
  const byPath: Errors = Object.create(null)
  const otherErrors: string[] = []
  for (const [key, messages] of Object.entries(errors)) {
    const field = innermostField(all, key)
    if (!field) otherErrors.push(...messages.map((message) => `${label(key)} ${message}`))
    else {
      const sentences = isUnchosen(field, form)
        ? [`Choose a ${formLabel(field).toLowerCase()} from the list.`]
        : messages.map((message) => `${subjectOf(field, key)} ${message}`)
      byPath[field.path] = [...(byPath[field.path] ?? []), ...sentences]
    }
  }
  return { errors: byPath, otherErrors }
}

/** Whether the user typed a name, but chose no record. */
function isUnchosen({ kind, name, path }: FormField, { user, draft }: RecordForm): boolean {
  const resource = referencedResource(name)
  const text = draft.get(path) ?? ''
  return (
    kind === 'reference' &&
    resource !== undefined &&
    canViewResource(user, resource) &&
    text !== '' &&
    !isUuid(text)
  )
}

/** The field and all fields inside it. */
function withParts(field: FormField, draft: Draft): FormField[] {
  return [field, ...partsIn(field, draft).flatMap((part) => withParts(part, draft))]
}

function partsIn(field: FormField, draft: Draft): FormField[] {
  if (field.kind !== 'groups') return field.parts ?? []
  return Array.from({ length: groupCount(draft, field) }, (_, index) =>
    groupFields(field, index),
  ).flat()
}

/** The field that an error belongs to: the one with the longest matching path. */
function innermostField(fields: FormField[], key: string): FormField | undefined {
  return fields
    .filter(({ path }) => key === path || key.startsWith(`${path}.`))
    .toSorted((one, other) => one.path.length - other.path.length)
    .at(-1)
}

/** `Tags, line 2` for `tags.1`. */
function subjectOf(field: FormField, key: string): string {
  const name = formLabel(field)
  if (key === field.path) return name
  const inField = key.slice(field.path.length + 1)
  const isLine = ['lines', 'dependent'].includes(field.kind) && /^\d+$/.test(inField)
  return `${name}, ${isLine ? `line ${Number(inField) + 1}` : inField}`
}
