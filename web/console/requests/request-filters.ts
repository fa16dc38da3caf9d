/** The form above the API Dashboard. */
import { validate as isUuid } from 'uuid'
import { operations } from '../../../generated/operations.ts'
import { findAccountKey, listAccountKeys } from '../../../records/api-keys.ts'
import { listUsers } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import type { Visit } from '../page.ts'
import { button, buttonLink, type Choice, selectField, textField } from '../ui.ts'
import { operationName } from './request.ts'
import {
  conditions,
  MAX_TEXT,
  methods,
  type RequestQuery,
  requestsAddress,
} from './request-query.ts'

export async function filterForm(
  { scope }: Visit,
  { given, range, errors }: RequestQuery,
): Promise<Html> {
  const value = (name: string): string => given[name] ?? ''
  const [users, keys] = await Promise.all([listUsers(scope), keyChoices(scope, value('key'))])
  const more = ['operation', 'user', 'ip', 'request', 'duration', 'from', 'until']
  const isOpen = more.some((name) => value(name) !== '' || errors[name])
  const text = (
    name: string,
    label: string,
    type: 'text' | 'search' | 'datetime-local' = 'text',
  ): Html => textField({ name, label, type, value: value(name), maxLength: MAX_TEXT, errors })
  // A browser shows nothing where it is none.
  const time = (name: string, label: string): Html =>
    text(name, label, errors[name] ? 'text' : 'datetime-local')
  const select = (name: string, label: string, none: string, choices: Choice[]): Html =>
    selectField({
      name,
      label,
      value: value(name),
      none,
      choices: withGiven(choices, value(name)),
      errors,
    })
  return html`<form class="record-filters request-filters" method="get" action="/console/requests">${range && html`<input type="hidden" name="range" value="${range}">`}<div class="filter-row">${[
    text('path', 'Path contains', 'search'),
    select('status', 'Status', 'Any', STATUSES),
    select(
      'method',
      'Method',
      'Any',
      methods.map((method) => ({ value: method, label: method })),
    ),
    select('key', 'API key', 'Any', keys),
  ]}<div class="actions">${button('Filter')}${conditions.some((name) => given[name]) && buttonLink(clearedAddress(given), 'Clear', 'quiet')}</div></div><details${isOpen && html` open`}><summary>More filters</summary><div class="filter-grid">${[
    select(
      'operation',
      'Operation',
      'Any',
      Object.entries(operations).map(([id, operation]) => ({
        value: id,
        label: operationName(operation),
      })),
    ),
    select(
      'user',
      'User',
      'Any',
      users.map(({ id, fullName }) => ({ value: id, label: fullName })),
    ),
    text('ip', 'IP address'),
    text('request', 'Request id'),
    text('duration', 'Took at least (ms)'),
    time('from', 'From (UTC)'),
    time('until', 'To (UTC)'),
  ]}</div></details></form>`
}

/** Without what is looked for, at the same time. */
export function clearedAddress(given: Record<string, string>): string {
  return requestsAddress(given, Object.fromEntries(conditions.map((name) => [name, ''])))
}

/** What is in the address stays in the form, whatever it is. */
function withGiven(choices: Choice[], given: string): Choice[] {
  return given === '' || choices.some(({ value }) => value === given)
    ? choices
    : [...choices, { value: given, label: given }]
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

const CHOSEN_FROM = 100

async function keyChoices(scope: Visit['scope'], chosen: string): Promise<Choice[]> {
  const [current, revoked] = await Promise.all([
    listAccountKeys(scope, { isRevoked: false, limit: CHOSEN_FROM }),
    listAccountKeys(scope, { isRevoked: true, limit: CHOSEN_FROM }),
  ])
  const all = [...current, ...revoked]
  const isMissing = chosen !== '' && !all.some(({ id }) => id === chosen)
  const other =
    isMissing && isUuid(chosen) ? await findAccountKey(scope, chosen.toLowerCase()) : undefined
  return [...all, ...(other ? [other] : [])].map(({ id, name, tokenPrefix, revokedAt }) => ({
    value: id,
    label: `${name} (${tokenPrefix}…)${revokedAt === null ? '' : ', revoked'}`,
  }))
}
