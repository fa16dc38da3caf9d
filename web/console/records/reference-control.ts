/** The input for the ID of a record, with a search by name. */
import { validate as isUuid } from 'uuid'
import { type Content, type Html, html } from '../../shared/html.ts'
import { labelledField, textField } from '../form-fields.ts'
import { count } from '../format.ts'
import { replace } from '../htmx.ts'
import { pill } from '../ui.ts'
import { draftValue, fieldHint, fieldOptions, formButton } from './control-parts.ts'
import type { FormField } from './field.ts'
import { actionName, type ControlContext, elementId } from './form-context.ts'
import { noun, option } from './labels.ts'
import { distinguishingText, findKnownRecord, recordName, referenceLink } from './references.ts'
import { canViewResource, referencedResource } from './resources.ts'

export function reference(field: FormField, context: ControlContext): Html {
  const { path, name } = field
  const resource = referencedResource(name)
  if (!resource || !canViewResource(context.user, resource))
    return textField(fieldOptions(field, context))
  const buttonText = html`Find<span class="visually-hidden"> the ${noun(resource)}</span>`
  const resultsId = `found-${elementId(path)}`
  const find = actionName('find')
  const searchWhileTyping = replace(resultsId, {
    path: `/console${context.to}?${find}=${encodeURIComponent(path)}`,
    method: 'post',
    trigger: 'input changed delay:250ms, focus once',
  })
  return labelledField(
    {
      ...fieldOptions(field, context),
      hint: html`${fieldHint(field, context)} Type part of the name, or an ID.`,
    },
    (attributes) => html`
      <span class="reference">
        <input
          type="text"
          ${attributes}
          value="${draftValue(field, context)}"
          autocomplete="off"
          spellcheck="false"
          ${searchWhileTyping}
        >
        <button class="button" name="${find}" value="${path}" formnovalidate>${buttonText}</button>
      </span>
      <div class="found" id="${resultsId}" aria-live="polite">
        ${searchResults(field, context)}
      </div>`,
  )
}

function searchResults(field: FormField, context: ControlContext): Content {
  const { path, name } = field
  const value = draftValue(field, context)
  const { known, suggestions } = context
  const item = isUuid(value) ? findKnownRecord(known, name, value) : undefined
  if (item) return html`<p class="chosen">${referenceLink(known, name, item.id)}</p>`
  if (suggestions?.path !== path) return undefined
  const { resource, items, total } = suggestions.result
  if (items.length === 0) return html`<p class="muted">No matching ${noun(resource)} found.</p>`
  const more = total - items.length
  const results = items.map((one) => {
    const text = html`<span>${recordName(resource, one) ?? one.id}</span>
      <small>${distinguishingText(resource, one)}</small>
      ${statusPill(one)}`
    const choice = `${path}=${one.id}`
    return html`<li>${formButton(context, { action: 'choose', value: choice }, text)}</li>`
  })
  const hint = `${count(more)} more. Type more of the name.`
  return html`<ul>${results}</ul>${more > 0 && html`<p class="muted">${hint}</p>`}`
}

function statusPill(item: Record<string, unknown>): Content {
  return typeof item.status === 'string' && pill('quiet', option(item.status))
}
