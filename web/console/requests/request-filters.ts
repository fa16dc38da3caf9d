/** The filter form above the list of API requests. */

import { operations } from '../../../generated/operations.ts'
import { listUsers } from '../../../records/users.ts'
import { shownInInput } from '../../shared/date-time-input.ts'
import { type Html, html } from '../../shared/html.ts'
import { keyChoices } from '../account/api-key-parts.ts'
import { filterForm } from '../filter-form.ts'
import { addChoice, type Choice, selectField, textField } from '../form-fields.ts'
import { timeLabel } from '../format.ts'
import type { Visit } from '../page.ts'
import {
  conditions,
  MAX_TEXT_CHARACTERS,
  methods,
  type RequestQuery,
  requestsPath,
} from './request-query.ts'
import { operationName } from './request-row.ts'

/** The ID of the form. */
export const FILTER_FORM = 'request-filters'

export async function requestFilters({ scope }: Visit, query: RequestQuery): Promise<Html> {
  const { input, range, errors } = query
  const [users, keys] = await Promise.all([listUsers(scope), keyChoices(scope, input.key)])
  const userChoices = users.map(({ id, fullName }) => ({ value: id, label: fullName }))
  return filterForm({
    to: '/requests',
    attributes: html` id="${FILTER_FORM}"`,
    hidden: range && { range },
    fields: [
      textFilter(query, 'text', 'Text or record ID', 'search'),
      selectFilter(query, 'status', 'Status', STATUSES),
      selectFilter(query, 'method', 'Method', METHODS),
      selectFilter(query, 'key', 'API key', keys),
    ],
    usedCount: conditions.filter((name) => input[name]).length,
    clear: clearedPath(input),
    errors,
    more: {
      isOpen: MORE_FILTERS.some((name) => input[name] || errors[name]),
      fields: [
        textFilter(query, 'path', 'Path contains'),
        selectFilter(query, 'operation', 'Operation', OPERATIONS),
        selectFilter(query, 'user', 'User', userChoices),
        textFilter(query, 'ip', 'IP address'),
        textFilter(query, 'request', 'Request ID'),
        textFilter(query, 'duration', 'Slower than (ms)'),
        timeFilter(query, 'from', timeLabel('From')),
        timeFilter(query, 'until', timeLabel('Until')),
      ],
    },
  })
}

const MORE_FILTERS = ['path', 'operation', 'user', 'ip', 'request', 'duration', 'from', 'until']

function textFilter(
  { input, errors }: RequestQuery,
  name: string,
  label: string,
  type: 'text' | 'search' | 'datetime-local' = 'text',
): Html {
  const value = input[name] ?? ''
  return textField({ name, label, type, value, maxLength: MAX_TEXT_CHARACTERS, errors })
}

/** An invalid value gets a text input, because a `datetime-local` input would drop it. */
function timeFilter(query: RequestQuery, name: string, label: string): Html {
  const { input, errors } = query
  const shown = { ...query, input: { ...input, [name]: shownInInput(input[name] ?? '') } }
  return textFilter(shown, name, label, errors[name] ? 'text' : 'datetime-local')
}

function selectFilter(query: RequestQuery, name: string, label: string, options: Choice[]): Html {
  const value = query.input[name] ?? ''
  const choices = addChoice(options, value)
  return selectField({ name, label, value, none: 'Any', choices, errors: query.errors })
}

/** The path of the list with the same period and no filters. */
function clearedPath(input: Record<string, string>): string {
  return requestsPath(input, Object.fromEntries(conditions.map((name) => [name, ''])))
}

const STATUSES: Choice[] = [
  { value: '2xx', label: '2xx Success' },
  { value: '3xx', label: '3xx Not modified' },
  { value: '4xx', label: '4xx Client error' },
  { value: '5xx', label: '5xx Server error' },
  ...[...new Set(Object.values(operations).flatMap(({ statuses }): readonly number[] => statuses))]
    .sort((one, other) => one - other)
    .map((status) => ({ value: String(status), label: String(status) })),
]
const METHODS: Choice[] = methods.map((method) => ({ value: method, label: method }))
const OPERATIONS: Choice[] = Object.entries(operations).map(([id, operation]) => ({
  value: id,
  label: operationName(operation),
}))
