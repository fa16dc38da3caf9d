/** The filter and sort form above a list. */
import type { FieldErrors } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { User } from '../../../records/users.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { filterForm } from '../filter-form.ts'
import {
  addChoice,
  type Choice,
  type FieldOptions,
  selectField,
  textField,
} from '../form-fields.ts'
import { absoluteTime, capital, timeLabel } from '../format.ts'
import { hiddenInput, shortId } from '../ui.ts'
import { currencyName, hasCurrencies, shortCurrencyName, shownName } from './amounts.ts'
import { combobox } from './combobox.ts'
import { multiSelectField, optionsOf, timeField } from './controls.ts'
import { toLocal } from './field-values.ts'
import { toFormField } from './fields.ts'
import { actionName } from './form-parts.ts'
import { label, noun } from './labels.ts'
import {
  filterParameter,
  filtersIn,
  type Pairs,
  queryText,
  queryValue,
  withValue,
} from './list-query.ts'
import { findKnownRecord, type KnownRecords, recordName, type SearchResult } from './references.ts'
import {
  canViewResource,
  fieldLabel,
  isForPrograms,
  referencedResource,
  resourcePath,
} from './resources.ts'

export interface FilterContext {
  user: User
  now: Date
  resource: Resource
  /** The filters of the resource, as the form offers them. */
  available: readonly Filter[]
  pairs: Pairs
  known: KnownRecords
  errors: FieldErrors
  /** Search results by filter, for filters in which the user typed a record's name, not its ID. */
  suggestions?: Record<string, SearchResult>
}

type Filter = Resource['filters'][number]

/** Filters with more options, or without a list of options, are collapsed. The search and references
 *  are not. */
const MAX_VISIBLE_OPTIONS = 8

export function recordFilters(context: FilterContext): Html {
  const { now, resource, available, pairs, errors } = context
  const isUsed = ({ name }: Filter): boolean => queryValue(pairs, filterParameter(name)) !== ''
  const filters = available.filter((filter) => !isForPrograms(filter) || isUsed(filter))
  const visible = filters
    .filter(isAlwaysVisible)
    // The search comes first.
    .sort((a, b) => Number(b.name === 'search') - Number(a.name === 'search'))
  const collapsed = filters.filter((filter) => !isAlwaysVisible(filter))
  const usedCount = collapsed.filter(isUsed).length
  const size = queryValue(pairs, 'page[size]')
  const title = visible.length > 0 ? 'More filters' : 'Filters'
  return filterForm({
    to: resourcePath(resource),
    hidden: size === '' ? {} : { 'page[size]': size },
    fields: [...visible.map((filter) => filterField(filter, context)), sortField(resource, pairs)],
    usedCount: Object.keys(filtersIn(pairs)).length,
    clear: resourcePath(resource),
    errors,
    more: collapsed.length > 0 && {
      title: `${title}${usedCount > 0 ? ` (${usedCount} used)` : ''}`,
      isOpen: collapsed.some(({ name }) => filterParameter(name) in errors),
      fields: collapsed.map((filter) => filterField(filter, context)),
    },
    presets: available.some(({ name }) => name === 'created_after') && {
      now,
      label: 'Created',
      to: (from) => `${resourcePath(resource)}${queryText(createdAfter(pairs, from))}`,
    },
  })
}

function createdAfter(pairs: Pairs, from: number): Pairs {
  const others = withValue(pairs, filterParameter('created_before'), undefined)
  return withValue(others, filterParameter('created_after'), new Date(from).toISOString())
}

function isAlwaysVisible({ name, schema }: Filter): boolean {
  const options = (schema.items ?? schema).enum
  return (
    name === 'search' ||
    referencedResource(name) !== undefined ||
    (options !== undefined && options.length <= MAX_VISIBLE_OPTIONS)
  )
}

function filterField({ name, description, schema }: Filter, context: FilterContext): Html {
  const { pairs, errors } = context
  const parameter = filterParameter(name)
  const value = queryValue(pairs, parameter)
  const messages = errors[parameter]
  const common: FieldOptions = {
    name: parameter,
    label: html`<span title="${description}">${fieldLabel(name)}</span>`,
    value,
    isRequired: false,
    ...(messages && {
      errors: { [parameter]: messages.map((message) => `${label(name)} ${message}`) },
    }),
  }
  switch (toFormField(name, schema).kind) {
    case 'options':
      return multiSelectField({
        ...common,
        choices: filterChoices(schema.items ?? {}),
        values: value === '' ? [] : value.split(','),
      })
    case 'choice':
      return selectField({ ...common, choices: optionsOf(schema), none: 'Any' })
    case 'time':
      return timeField({
        ...common,
        label: timeLabel(label(name)),
        value: toLocal(value),
      })
    case 'reference':
      return referenceField(name, common, context)
    default:
      return textField({ ...common, type: name === 'search' ? 'search' : 'text' })
  }
}

/** The names of currencies without their codes, so that several fit beside the other filters. */
function filterChoices(schema: Schema): Choice[] {
  if (!hasCurrencies(schema)) return optionsOf(schema)
  return optionsOf(schema).map(({ value }) => ({
    value,
    label: html`<span title="${value}">${shortCurrencyName(value)}</span>`,
  }))
}

/** The name of the chosen record, or a combobox. */
function referenceField(
  name: string,
  options: FieldOptions,
  { resource, user, pairs, known, suggestions = {} }: FilterContext,
): Html {
  const referenced = referencedResource(name)
  if (!referenced || !canViewResource(user, referenced)) return textField(options)
  const label = fieldLabel(name)
  const item = findKnownRecord(known, name, options.value ?? '')
  if (item) {
    const clear = queryText(withValue(pairs, options.name, undefined))
    return html`<fieldset class="field">
      <legend>${label}</legend>
      <div class="chosen">
        ${hiddenInput(options.name, item.id)}
        <span>${recordName(referenced, item) ?? capital(noun(referenced))}</span>
        <a
          class="button quiet"
          href="/console${resourcePath(resource)}${clear}"
          aria-label="Clear ${label}"
        >Clear</a>
      </div>
    </fieldset>`
  }
  const find = queryText([[FIND, name]])
  const isUnchosen = options.errors !== undefined
  return combobox({
    ...options,
    label,
    ...(isUnchosen && {
      errors: { [options.name]: [`Choose a ${noun(referenced)} from the list.`] },
    }),
    resource: referenced,
    search: { path: `/console${resourcePath(resource)}${find}`, method: 'get' },
    result: suggestions[name],
    // The browser sends the value of this button after the text of the input.
    choose: ({ id }, attributes, text) =>
      html`<button name="${options.name}" value="${id}" ${attributes}>${text}</button>`,
  })
}

/** The query parameter with the name of the filter whose records are searched. */
export const FIND = actionName('find')

/** Also offers fields whose columns are hidden. */
function sortField({ operations: { list }, record }: Resource, pairs: Pairs): Content {
  const { sorts }: OperationRow = operations[list]
  if (sorts.length === 0) return undefined
  const value = queryValue(pairs, 'sort')
  const orders = sorts.flatMap((name) => {
    const field = label(shownName(name, record.properties?.[name] ?? {}))
    return [
      { value: name, label: `${field}, ascending` },
      { value: `-${name}`, label: `${field}, descending` },
    ]
  })
  const choices = addChoice(orders, value)
  const none = sorts.includes('created_at') ? 'Newest first' : 'Default'
  return selectField({ name: 'sort', label: 'Order', value, none, choices })
}

/** The filters in use, each with a link that removes it. `path`: the page that the links lead to. */
export function filterChips(
  context: Pick<FilterContext, 'resource' | 'available' | 'pairs' | 'known'>,
  path = resourcePath(context.resource),
): Content {
  const { available, pairs, known } = context
  const chips = Object.entries(filtersIn(pairs)).flatMap(([name, text]) => {
    const schema = available.find((filter) => filter.name === name)?.schema ?? {}
    const values = schema.items?.enum ? text.split(',') : [text]
    return values.map((value) => {
      const rest = values.filter((other) => other !== value).join(',') || undefined
      const to = `/console${path}${queryText(withValue(pairs, filterParameter(name), rest))}`
      const shown = filterText(name, schema, value, known)
      return html`<li>
        <span>${fieldLabel(name)}: <strong>${shown}</strong></span>
        <a href="${to}" aria-label="Remove the filter ${fieldLabel(name)}: ${shown}">×</a>
      </li>`
    })
  })
  return chips.length > 0 && html`<ul class="filter-chips" aria-label="Filters">${chips}</ul>`
}

export function filterText(
  name: string,
  schema: Schema,
  value: string,
  known: KnownRecords,
): string {
  const resource = referencedResource(name)
  const item = findKnownRecord(known, name, value)
  if (resource && item) return recordName(resource, item) ?? shortId(item.id)
  if (resource && value === 'null') return 'None'
  const choice = optionsOf(schema.items ?? schema).find((one) => one.value === value)
  if (choice) return String(choice.label)
  if (hasCurrencies(schema.items ?? schema)) return currencyName(value)
  if (schema.format === 'date-time' && !Number.isNaN(Date.parse(value)))
    return absoluteTime(Date.parse(value))
  const ids = name === 'id' ? value.split(',') : []
  return ids.length > 1 ? `${ids.length} selected` : value
}
