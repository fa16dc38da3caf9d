/** The input for a reference: the ID of a record, with a search. */

import { validate as isUuid } from 'uuid'
import { type Content, type Html, html } from '../../shared/html.ts'
import { field as fieldParts, textField } from '../form-fields.ts'
import { inPlace, pill } from '../ui.ts'
import { common, hintOf, valueIn } from './control-parts.ts'
import type { Field } from './field.ts'
import { askName, type ControlContext, elementId, FORM } from './form-context.ts'
import { noun, option } from './labels.ts'
import { knownItem, referenceLink, secondText, textName } from './references.ts'
import { maySee, referencedBy } from './resources.ts'

export function reference(field: Field, context: ControlContext): Html {
  const { path, name } = field
  const resource = referencedBy(name)
  if (!resource || !maySee(context.user, resource)) return textField(common(field, context))
  const resultsId = `found-${elementId(path)}`
  const find = askName('find')
  const searchUrl = `/console${context.to}?${find}=${encodeURIComponent(path)}`
  return fieldParts(
    {
      ...common(field, context),
      hint: html`${hintOf(field, context)} Type some of the name, or an ID.`,
    },
    (attributes) => html`<span class="reference">
<input
  type="text" ${attributes} value="${valueIn(field, context)}" autocomplete="off" spellcheck="false"
  hx-post="${searchUrl}" hx-trigger="input changed delay:250ms, focus once"
  hx-target="#${resultsId}" hx-select="#${resultsId}" hx-swap="outerHTML"
>
<button class="button" name="${find}" value="${path}" formnovalidate>
Find<span class="visually-hidden"> a ${noun(resource)}</span>
</button>
</span>
<div class="found" id="${resultsId}" aria-live="polite">${searchResults(field, context)}</div>`,
  )
}

function searchResults(field: Field, context: ControlContext): Content {
  const { path, name } = field
  const value = valueIn(field, context)
  const { known, found } = context
  const item = isUuid(value) ? knownItem(known, name, value) : undefined
  const chosen = item && html`<p class="chosen">${referenceLink(known, name, item.id)}</p>`
  if (found?.path !== path || item) return chosen
  const { resource, items, total } = found.found
  if (items.length === 0) return html`<p class="muted">No ${noun(resource)} is found by that.</p>`
  const more = total - items.length
  const result = (one: (typeof items)[number]): Html => html`<li><button
  name="${askName('choose')}" value="${path}=${one.id}" formnovalidate
  ${inPlace('post', `/console${context.to}`, FORM)}
>
<span>${textName(resource, one) ?? one.id}</span>
<small>${secondText(resource, one)}</small>${statusPill(one)}
</button></li>`
  return html`<ul>${items.map(result)}</ul>
${more > 0 && html`<p class="muted">And ${more.toLocaleString('en')} more: type more of the name.</p>`}`
}

function statusPill(item: Record<string, unknown>): Content {
  return typeof item.status === 'string' && pill('quiet', option(item.status))
}
