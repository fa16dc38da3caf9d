/** The filter form above the list of API requests. */
import { validate as isUuid } from 'uuid'
import { operations } from '../../../generated/operations.ts'
import { findAccountKey, listAccountKeys } from '../../../records/api-keys.ts'
import { listUsers } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { type Choice, selectField, textField } from '../form-fields.ts'
import type { Visit } from '../page.ts'
import { button, buttonLink } from '../ui.ts'
import {
  conditions,
  MAX_TEXT_CHARACTERS,
  methods,
  type RequestQuery,
  requestsPath,
} from './request-query.ts'
import { operationName } from './request-row.ts'

export async function requestFilters({ scope }: Visit, query: RequestQuery): Promise<Html> {
  const { input, range } = query
  const [users, keys] = await Promise.all([listUsers(scope), keyChoices(scope, input.key ?? '')])
  const isFiltered = conditions.some((name) => input[name])
  return html`<form class="record-filters request-filters" method="get" action="/console/requests">
    ${range && html`<input type="hidden" name="range" value="${range}">`}
    <div class="filter-row">
      ${text(query, 'path', 'Path contains', 'search')}
      ${select(query, 'status', 'Status', STATUSES)}
      ${select(query, 'method', 'Method', METHODS)}
      ${select(query, 'key', 'API key', keys)}
      <div class="actions">
        ${button('Filter')}
        ${isFiltered && buttonLink(clearedPath(input), 'Clear', 'quiet')}
      </div>
    </div>
    ${moreFilters(
      query,
      users.map(({ id, fullName }) => ({ value: id, label: fullName })),
    )}
  </form>`
}

const MORE_FILTERS = ['operation', 'user', 'ip', 'request', 'duration', 'from', 'until']

function moreFilters(query: RequestQuery, users: Choice[]): Html {
  const isOpen = MORE_FILTERS.some((name) => query.input[name] || query.errors[name])
  return html`<details${isOpen && html` open`}>
    <summary>More filters</summary>
    <div class="filter-grid">
      ${select(query, 'operation', 'Operation', OPERATIONS)}
      ${select(query, 'user', 'User', users)}
      ${text(query, 'ip', 'IP address')}
      ${text(query, 'request', 'Request ID')}
      ${text(query, 'duration', 'Slower than (ms)')}
      ${time(query, 'from', 'From (UTC)')}
      ${time(query, 'until', 'Until (UTC)')}
    </div>
  </details>`
}

function text(
  { input, errors }: RequestQuery,
  name: string,
  label: string,
  type: 'text' | 'search' | 'datetime-local' = 'text',
): Html {
  const value = input[name] ?? ''
  return textField({ name, label, type, value, maxLength: MAX_TEXT_CHARACTERS, errors })
}

/** Browsers empty a `datetime-local` input with an invalid value, so show that as text. */
function time(query: RequestQuery, name: string, label: string): Html {
  return text(query, name, label, query.errors[name] ? 'text' : 'datetime-local')
}

/** Keeps a value of the URL that is not among the choices. */
function select(
  { input, errors }: RequestQuery,
  name: string,
  label: string,
  choices: Choice[],
): Html {
  const value = input[name] ?? ''
  const isKnown = value === '' || choices.some((choice) => choice.value === value)
  return selectField({
    name,
    label,
    value,
    none: 'Any',
    choices: isKnown ? choices : [...choices, { value, label: value }],
    errors,
  })
}

/** The path without the filters, for the same period. */
export function clearedPath(input: Record<string, string>): string {
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

/** For current and for revoked keys each. */
const MAX_KEY_CHOICES = 100

async function keyChoices(scope: Visit['scope'], chosenId: string): Promise<Choice[]> {
  const [current, revoked] = await Promise.all([
    listAccountKeys(scope, { isRevoked: false, limit: MAX_KEY_CHOICES }),
    listAccountKeys(scope, { isRevoked: true, limit: MAX_KEY_CHOICES }),
  ])
  const keys = [...current, ...revoked]
  if (isUuid(chosenId) && !keys.some(({ id }) => id === chosenId)) {
    const chosen = await findAccountKey(scope, chosenId.toLowerCase())
    if (chosen) keys.push(chosen)
  }
  return keys.map(({ id, name, tokenPrefix, revokedAt }) => ({
    value: id,
    label: `${name} (${tokenPrefix}…)${revokedAt === null ? '' : ', revoked'}`,
  }))
}
