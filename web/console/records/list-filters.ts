/** The filter and sort form above a list. */
import type { FieldErrors } from '../../../errors.ts'
import { type OperationRow, operations } from '../../../generated/operations.ts'
import type { Resource } from '../../../generated/resources.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { filterForm } from '../filter-form.ts'
import { addChoice, type FieldOptions, selectField, textField } from '../form-fields.ts'
import { capital } from '../format.ts'
import { hiddenInput } from '../ui.ts'
import { shownName } from './amounts.ts'
import { multiSelectField, optionsOf, timeField } from './controls.ts'
import { toLocal } from './field-values.ts'
import { toFormField } from './fields.ts'
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
import { fieldLabel, referencedResource, resourcePath } from './resources.ts'

export interface FilterContext {
  resource: Resource
  /** The filters of the resource, as the form offers them. */
  available: Filter[]
  pairs: Pairs
  known: KnownRecords
  errors: FieldErrors
  /** Search results by filter, for filters in which the user typed a record's name, not its ID. */
  suggestions?: Record<string, SearchResult>
}

type Filter = Resource['filters'][number]

/** Filters with more options, or without a list of options, are collapsed. The search is not. */
const MAX_VISIBLE_OPTIONS = 8

export function recordFilters(context: FilterContext): Html {
  const { resource, available, pairs, errors } = context
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
    clear: Object.keys(filtersIn(pairs)).length > 0 && resourcePath(resource),
    more: collapsed.length > 0 && {
      title: `${title}${usedCount > 0 ? ` (${usedCount} used)` : ''}`,
      isOpen: usedCount > 0 || collapsed.some(({ name }) => filterParameter(name) in errors),
      fields: collapsed.map((filter) => filterField(filter, context)),
    },
  })
}

/** People have the search, and `after` and `before`. */
function isForPrograms({ name }: Filter): boolean {
  return name === 'id' || /_(from|until)$/.test(name)
}

function isAlwaysVisible({ name, schema }: Filter): boolean {
  const options = (schema.items ?? schema).enum
  return name === 'search' || (options !== undefined && options.length <= MAX_VISIBLE_OPTIONS)
}

function filterField({ name, description, schema }: Filter, context: FilterContext): Html {
  const { pairs, errors } = context
  const parameter = filterParameter(name)
  const value = queryValue(pairs, parameter)
  const messages = errors[parameter]
  const common: FieldOptions = {
    name: parameter,
    label: html`<span title="${description}">${label(name)}</span>`,
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
      return referenceField(name, common, context)
    default:
      return textField({ ...common, type: name === 'search' ? 'search' : 'text' })
  }
}

/** The name of the chosen record, or an input for a name. Lists the records with a typed name. */
function referenceField(
  name: string,
  options: FieldOptions,
  { resource, pairs, known, suggestions = {} }: FilterContext,
): Html {
  const referenced = referencedResource(name)
  if (!referenced) return textField(options)
  const to = (id?: string): string =>
    `/console${resourcePath(resource)}${queryText(withValue(pairs, filterParameter(name), id))}`
  const label = fieldLabel(name)
  const item = findKnownRecord(known, name, options.value ?? '')
  if (item)
    return html`<fieldset class="field">
      <legend>${label}</legend>
      <div class="chosen">
        ${hiddenInput(options.name, item.id)}
        <span>${recordName(referenced, item) ?? capital(noun(referenced))}</span>
        <a class="button quiet" href="${to()}" aria-label="Clear ${label}">Clear</a>
      </div>
    </fieldset>`
  const choices = suggestions[name]?.items.map(
    (one) => html`<li><a href="${to(one.id)}">${recordName(referenced, one) ?? one.id}</a></li>`,
  )
  const list = choices && choices.length > 0 && html`<div class="found"><ul>${choices}</ul></div>`
  return html`<div>
    ${textField({ ...options, label, placeholder: 'Search by name' })}
    ${list}
  </div>`
}

/** For narrow screens, which show no column heads to sort by. */
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
  const select = selectField({ name: 'sort', label: 'Order', value, none: 'Default', choices })
  return html`<div class="sort-order">${select}</div>`
}
