/** The input for the ID of a record, with a search by name. */
import { validate as isUuid } from 'uuid'
import type { Resource } from '../../../generated/resources.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { fieldId, labelledField, textField } from '../form-fields.ts'
import { count } from '../format.ts'
import { replace } from '../htmx.ts'
import { hiddenInput, pill } from '../ui.ts'
import { draftValue, fieldOptions, formButton, formLabel } from './control-parts.ts'
import type { FormField } from './field.ts'
import { actionName, type ControlContext, elementId } from './form-context.ts'
import { noun, option, plural } from './labels.ts'
import { distinguishingText, findKnownRecord, recordName, referenceLink } from './references.ts'
import {
  canPerform,
  canViewResource,
  type Item,
  referencedResource,
  resourcePath,
} from './resources.ts'

export function reference(field: FormField, context: ControlContext): Html {
  const resource = referencedResource(field.name)
  if (!resource || !canViewResource(context.user, resource))
    return textField(fieldOptions(field, context))
  const value = draftValue(field, context)
  const item = isUuid(value) ? findKnownRecord(context.known, field.name, value) : undefined
  return item ? chosenRecord(field, context, item, resource) : searchField(field, context, resource)
}

/** The name of the chosen record, and a button that chooses another one. */
function chosenRecord(
  field: FormField,
  context: ControlContext,
  item: Item,
  resource: Resource,
): Html {
  const { path, name } = field
  const id = fieldId(path)
  const change = `Change ${formLabel(field)}: ${recordName(resource, item) ?? noun(resource)}`
  const described = context.errors[path] && html` aria-describedby="${id}-error"`
  const button = formButton(
    context,
    {
      action: 'choose',
      value: `${path}=`,
      style: 'button quiet',
      attributes: html`id="${id}" aria-label="${change}"${described}`,
    },
    'Change',
  )
  return labelledField(
    fieldOptions(field, context),
    () => html`<div class="chosen">
      ${hiddenInput(path, item.id)}
      <span>${referenceLink(context.known, name, item.id)} ${statusPill(item)}</span>
      ${button}
    </div>`,
  )
}

/** A combobox, to which combobox.js adds the keyboard. */
function searchField(field: FormField, context: ControlContext, resource: Resource): Html {
  const { path } = field
  const find = actionName('find')
  const buttonText = html`Find<span class="visually-hidden"> the ${noun(resource)}</span>`
  const searchWhileTyping = replace(foundId(field), {
    path: `/console${context.to}?${find}=${encodeURIComponent(path)}`,
    method: 'post',
    trigger: 'input changed delay:150ms, focus',
  })
  return labelledField(
    fieldOptions(field, context),
    (attributes) => html`
      <span class="reference">
        <input
          type="text"
          role="combobox"
          aria-autocomplete="list"
          aria-expanded="false"
          aria-controls="${listId(field)}"
          ${attributes}
          value="${draftValue(field, context)}"
          placeholder="Search by name"
          autocomplete="off"
          spellcheck="false"
          ${searchWhileTyping}
        >
        <button class="button needs-script-off" name="${find}" value="${path}" formnovalidate>
          ${buttonText}
        </button>
        ${canPerform(context.user, resource, 'create') && newRecordLink(resource)}
      </span>
      <div class="found" id="${foundId(field)}" aria-live="polite">
        ${searchResults(field, context, resource)}
      </div>`,
  )
}

const foundId = ({ path }: FormField): string => `found-${elementId(path)}`
const listId = (field: FormField): string => `${foundId(field)}-list`

/** Opens a new tab, so that the form keeps its input. */
function newRecordLink(resource: Resource): Html {
  const path = `/console${resourcePath(resource)}/new`
  return html`<a class="button" href="${path}" target="_blank">New ${noun(resource)}</a>`
}

function searchResults(field: FormField, context: ControlContext, resource: Resource): Html {
  const { suggestions } = context
  const result = suggestions?.path === field.path ? suggestions.result : undefined
  const { items, total } = result ?? { items: [], total: 0 }
  const options = items.map((item, index) =>
    formButton(
      context,
      {
        action: 'choose',
        value: `${field.path}=${item.id}`,
        attributes: html`role="option" id="${listId(field)}-${index}"`,
      },
      html`<span>${recordName(resource, item) ?? item.id}</span>
      <small>${distinguishingText(resource, item, items)}</small>
      ${statusPill(item)}`,
    ),
  )
  const isHidden = items.length === 0 && html` hidden`
  const more = total - items.length
  return html`<div role="listbox" id="${listId(field)}" aria-label="${plural(resource)}"${isHidden}>
      ${options}
    </div>
    ${result && items.length === 0 && html`<p>No matching ${noun(resource)} found.</p>`}
    ${more > 0 && html`<p>${count(more)} more. Type more of the name.</p>`}`
}

function statusPill(item: Record<string, unknown>): Content {
  return typeof item.status === 'string' && pill('quiet', option(item.status))
}
