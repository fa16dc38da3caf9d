/** The form above a list: its filters, its order, the size of its pages. */

import type { FieldErrors } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { type Choice, type FieldOptions, selectField, textField } from '../form-fields.ts'
import { button, buttonLink } from '../ui.ts'
import { multiSelectField } from './controls.ts'
import { isLocal, toLocal } from './field-values.ts'
import { toFormField } from './fields.ts'
import { label, option } from './labels.ts'
import {
  filterName,
  filtersIn,
  type Pairs,
  queryText,
  queryValue,
  withValue,
} from './list-query.ts'
import { findKnownRecord, type KnownRecords, recordName, type SearchResult } from './references.ts'
import { addressOf, referencedResource } from './resources.ts'

export interface FilterContext {
  resource: Resource
  pairs: Pairs
  known: KnownRecords
  errors: FieldErrors
  /** By filter: records that were meant by a name, where an id is wanted. */
  suggestions?: Record<string, SearchResult>
}

type Filter = Resource['filters'][number]

/** So many options, or the search, are in view at once. The other filters wait behind a word. */
const MAX_VISIBLE_OPTIONS = 8

export function filterForm(filtering: FilterContext): Html {
  const { resource, pairs, errors } = filtering
  const operation: OperationRow = operations[resource.operations.list]
  const inView = resource.filters
    .filter(isAlwaysVisible)
    .sort((a, b) => Number(b.name === 'search') - Number(a.name === 'search'))
  const rest = resource.filters.filter((filter) => !isAlwaysVisible(filter))
  const used = rest.filter(({ name }) => queryValue(pairs, filterName(name)) !== '').length
  const size = queryValue(pairs, 'page[size]')
  const isOpen = used > 0 || rest.some(({ name }) => filterName(name) in errors)
  return html`<form class="record-filters" method="get" action="/console${addressOf(resource)}" novalidate>${size !== '' && html`<input type="hidden" name="page[size]" value="${size}">`}
<div class="filter-row">${inView.map((filter) => filterField(filter, filtering))}${sortField(operation, pairs)}<div class="actions">${button('Apply')}${
    Object.keys(filtersIn(pairs)).length > 0 &&
    buttonLink(addressOf(resource), 'Clear filters', 'quiet')
  }</div></div>
${
  rest.length > 0 &&
  html`<details${isOpen && html` open`}><summary>${inView.length > 0 ? 'More filters' : 'Filters'}${used > 0 && ` (${used} used)`}</summary><div class="filter-grid">${rest.map((filter) => filterField(filter, filtering))}</div></details>`
}</form>`
}

function isAlwaysVisible({ name, schema }: Filter): boolean {
  const options = (schema.items ?? schema).enum
  return name === 'search' || (options !== undefined && options.length <= MAX_VISIBLE_OPTIONS)
}

function optionsOf({ enum: values = [] }: Schema): Choice[] {
  return values
    .filter((value) => value !== null)
    .map((value) => ({ value: String(value), label: option(value) }))
}

function filterField({ name, description, schema }: Filter, filtering: FilterContext): Html {
  const { pairs, errors } = filtering
  const parameter = filterName(name)
  const value = queryValue(pairs, parameter)
  const messages = errors[parameter]
  const common: FieldOptions = {
    name: parameter,
    label: html`<span title="${description}">${label(name)}</span>`,
    value,
    // A filter is never required; the word "optional" at each would say nothing.
    isRequired: false,
    ...(messages && {
      errors: { [parameter]: messages.map((message) => `${label(name)} ${message}`) },
    }),
  }
  switch (toFormField(name, schema, false).kind) {
    case 'options':
      return multiSelectField({
        ...common,
        choices: optionsOf(schema.items ?? {}),
        values: value === '' ? [] : value.split(','),
      })
    case 'choice':
      return selectField({ ...common, choices: optionsOf(schema), none: 'Any' })
    case 'time':
      return timeField({
        ...common,
        label: html`${label(name)} <small>UTC</small>`,
        value: toLocal(value),
      })
    case 'reference':
      return referenceField(name, common, filtering)
    default:
      return textField({ ...common, type: name === 'search' ? 'search' : 'text' })
  }
}

function timeField(options: FieldOptions): Html {
  return textField({ ...options, type: isLocal(options.value ?? '') ? 'datetime-local' : 'text' })
}

/** The id of a record, beside its name; or of what was meant by a name, links to filter by it. */
function referenceField(
  name: string,
  options: FieldOptions,
  { resource, pairs, known, suggestions = {} }: FilterContext,
): Html {
  const other = referencedResource(name)
  if (!other) return textField(options)
  const item = findKnownRecord(known, name, options.value ?? '')
  const own = html`${label(other.type)} <small>${(item && recordName(other, item)) ?? 'name or ID'}</small>`
  const to = (id: string): string =>
    `/console${addressOf(resource)}${queryText(withValue(pairs, filterName(name), id))}`
  const choices = suggestions[name]?.items.map(
    (one) => html`<li><a href="${to(one.id)}">${recordName(other, one) ?? one.id}</a></li>`,
  )
  return html`<div>${textField({ ...options, label: own })}${choices && choices.length > 0 && html`<div class="found"><ul>${choices}</ul></div>`}</div>`
}

/** Also for screens so narrow that a table has no heads to click on. */
function sortField({ sorts }: OperationRow, pairs: Pairs): Content {
  if (sorts.length === 0) return undefined
  const value = queryValue(pairs, 'sort')
  const choices = sorts.flatMap((name) => [
    { value: name, label: `${label(name)}, rising` },
    { value: `-${name}`, label: `${label(name)}, falling` },
  ])
  const isOther = value !== '' && !choices.some((choice) => choice.value === value)
  return html`<div class="sort-order">${selectField({
    name: 'sort',
    label: 'Order',
    value,
    none: 'As created',
    choices: isOther ? [...choices, { value, label: value }] : choices,
  })}</div>`
}
