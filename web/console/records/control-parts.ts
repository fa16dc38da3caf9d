/** Label, hint, value and errors of a field. */

import { type Content, html } from '../../shared/html.ts'
import type { FieldOptions } from '../form-fields.ts'
import { withCode } from './cells.ts'
import type { Field } from './field.ts'
import type { ControlContext } from './form-context.ts'
import { capital, label, noun } from './labels.ts'
import { referencedBy } from './resources.ts'

export function nameOf({ name, label: own, kind }: Field): string {
  return (
    own ??
    (kind === 'reference' ? capital(noun(referencedBy(name) ?? { type: name })) : label(name))
  )
}

export const valueIn = ({ path }: Field, { draft }: ControlContext): string => draft.get(path) ?? ''

export function common(field: Field, context: ControlContext): FieldOptions {
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

/** The description in the contract, and the stored value where another user has changed it. */
export function hintOf(field: Field, { stored = {} }: ControlContext): Content {
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
  const conflict =
    now !== undefined && html` <strong class="now-stored">Now stored: ${now}</strong>`
  return html`${withCode(sentences.join(' '))}${conflict}`
}

export function hintLine(field: Field, context: ControlContext): Content {
  const hint = hintOf(field, context)
  return hint && html`<p class="hint">${hint}</p>`
}

export function errorLine({ path }: Field, { errors }: ControlContext): Content {
  return errors[path] && html`<p class="field-error">${errors[path].join(' ')}</p>`
}
