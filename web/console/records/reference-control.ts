/** The input for the ID of a record, with a search by name. */
import { validate as isUuid } from 'uuid'
import type { Resource } from '../../../generated/resources.ts'
import { type Html, html } from '../../shared/html.ts'
import { fieldId, labelledField, textField } from '../form-fields.ts'
import { withQuery } from '../query.ts'
import { hiddenInput } from '../ui.ts'
import { combobox, statusPill } from './combobox.ts'
import type { FormField } from './field.ts'
import {
  actionName,
  type ControlContext,
  draftValue,
  elementId,
  fieldOptions,
  formButton,
  formLabel,
} from './form-parts.ts'
import { noun } from './labels.ts'
import { findKnownRecord, recordName, referenceLink } from './references.ts'
import {
  canPerform,
  canViewResource,
  type Item,
  nameField,
  referencedResource,
  resourcePath,
} from './resources.ts'

export function referenceControl(field: FormField, context: ControlContext): Html {
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
  const { path, name, dependents = [] } = field
  const id = fieldId(path)
  const change = `Change ${formLabel(field)}: ${recordName(resource, item) ?? noun(resource)}`
  const described = context.errors[path] && html` aria-describedby="${id}-error"`
  const button = formButton(
    context,
    {
      action: 'choose',
      value: `${path}=`,
      changes: [path, ...dependents],
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

function searchField(field: FormField, context: ControlContext, resource: Resource): Html {
  const { path, dependents = [] } = field
  const { suggestions } = context
  const find = actionName('find')
  const newLinkId = `new-${elementId(path)}`
  const canCreate = !field.isFilter && canPerform(context.user, resource, 'create')
  return combobox({
    ...fieldOptions(field, context),
    resource,
    search: {
      path: `/console${context.to}?${find}=${encodeURIComponent(path)}`,
      method: 'post',
      also: canCreate ? `#${newLinkId}` : undefined,
    },
    result: suggestions?.path === path ? suggestions.result : undefined,
    choose: (item, attributes, text) =>
      formButton(
        context,
        {
          action: 'choose',
          value: `${path}=${item.id}`,
          changes: [path, ...dependents],
          attributes,
        },
        text,
      ),
    beside: html`
      <button class="button needs-script-off" name="${find}" value="${path}" formnovalidate>
        Find<span class="visually-hidden"> the ${noun(resource)}</span>
      </button>
      ${canCreate && newRecordLink(resource, newLinkId, draftValue(field, context))}`,
  })
}

/** Opens a new tab, so that the form keeps its input. The form there begins with the typed name. */
function newRecordLink(resource: Resource, id: string, text: string): Html {
  const path = withQuery(`/console${resourcePath(resource)}/new`, {
    [nameField(resource) ?? '']: text.trim(),
  })
  return html`<a class="new-record" id="${id}" href="${path}" target="_blank">New ${noun(resource)}</a>`
}
