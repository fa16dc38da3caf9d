/** Groups failed requests by the reason that their responses give. */
import type { FieldErrors } from '../../../errors.ts'
import { toSearchable } from '../../../records/reports/traffic.ts'
import { type LoggedError, listErrors, type RequestFilter } from '../../../records/request-log.ts'
import { type Content, html } from '../../shared/html.ts'
import { absoluteTime, count, counted } from '../format.ts'
import type { Visit } from '../page.ts'
import { SHORT_MODULE_LABELS } from '../people/access-form.ts'
import { card, numberColumn, table, timeElement } from '../ui.ts'
import { findHiddenModule } from './request-access.ts'
import { MAX_TEXT_CHARACTERS, requestsPath } from './request-query.ts'
import { lookUpOperation, operationName, statusLabel } from './request-row.ts'

/** Their responses are read, so these are few. */
const MAX_ERRORS = 500
const MAX_CAUSES = 10
/** The others are folded, so that the requests below stay in view. */
const MAX_OPEN_CAUSES = 3

interface Cause {
  status: number
  operationId: string | null
  text: string
  /** A text that all its responses contain. Empty if there is none. */
  searchable: string
}

interface CauseGroup extends Cause {
  requests: number
  newest: LoggedError
}

/** The card with the most frequent causes. Each links to its requests, and to the newest of them. */
export async function errorCauses(
  visit: Visit,
  filter: RequestFilter,
  input: Record<string, string>,
): Promise<Content> {
  const { scope, now } = visit
  const { status = [400, 599] } = filter
  const searched = await toSearchable(scope, { ...filter, status })
  const errors = await listErrors(scope, searched, MAX_ERRORS)
  const limit =
    errors.length === MAX_ERRORS
      ? `The newest ${count(MAX_ERRORS)}`
      : searched.from > filter.from && `Since ${absoluteTime(searched.from)}`
  const groups = groupByCause(visit, errors).slice(0, MAX_CAUSES)
  const rows = groups.map(({ status, operationId, text, searchable, requests, newest }) => {
    const operation = lookUpOperation(operationId)
    const path = requestsPath(input, {
      status: String(status),
      operation: operationId ?? '',
      text: searchable,
    })
    return {
      cells: [
        html`${statusLabel(status)} <a href="/console${path}">${text}</a>`,
        html`<span class="mono operation">${operation ? operationName(operation) : 'Unknown path'}</span>`,
        count(requests),
        html`<a class="nowrap" href="/console/requests/${newest.id}">
          ${timeElement(newest.createdAt, now)}
        </a>`,
      ],
    }
  })
  // The responses of the errors may not be stored.
  if (rows.length === 0) return false
  const columns = ['Cause', 'Operation', numberColumn('Requests'), 'Newest']
  const folded = rows.slice(MAX_OPEN_CAUSES)
  return card(
    'Errors by cause',
    [
      table('Errors by cause', columns, rows.slice(0, MAX_OPEN_CAUSES), 'causes'),
      folded.length > 0 &&
        html`<details class="more-causes">
          <summary>${counted(folded.length, 'more cause')}</summary>
          ${table('More causes', columns, folded, 'causes')}
        </details>`,
    ],
    limit && html`<span class="muted">${limit}</span>`,
  )
}

/** The most frequent first. A request with several invalid fields counts in each of their causes. */
function groupByCause({ user }: Visit, errors: LoggedError[]): CauseGroup[] {
  const groups = new Map<string, CauseGroup>()
  for (const error of errors) {
    const hidden = findHiddenModule(user, error.operationId)
    const causes: [text: string, searchable: string][] = hidden
      ? [[`You have no access to ${SHORT_MODULE_LABELS[hidden]}`, '']]
      : causesIn(error.responseBody)
    for (const [text, searchable] of causes) {
      const { status, operationId } = error
      const key = JSON.stringify([status, operationId, text])
      const group = groups.get(key) ?? {
        status,
        operationId,
        text,
        searchable,
        requests: 0,
        newest: error,
      }
      groups.set(key, { ...group, requests: group.requests + 1 + error.repeats })
    }
  }
  return [...groups.values()].sort((one, other) => other.requests - one.requests)
}

/** The parts of a message that differ from request to request. */
const VARYING = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+ seconds?\b/gi
const MARK = '…'

/** The reasons in the response of an error, each with a text that all responses with it contain. */
function causesIn(body: string | null): [text: string, searchable: string][] {
  const { message, errors } = parseError(body)
  if (errors)
    return Object.entries(errors).flatMap(([field, messages]) =>
      messages.map((text): [string, string] => [
        `${field.replace(/\.\d+(?=\.|$)/g, '.*')}: ${text}`,
        searchableIn(text),
      ]),
    )
  if (message === undefined) return [['No reason is stored', '']]
  return [[message.replace(VARYING, MARK), searchableIn(message)]]
}

function parseError(body: string | null): { message?: string; errors?: FieldErrors } {
  try {
    return JSON.parse(body ?? '{}')
  } catch {
    return {}
  }
}

/** The longest part that does not vary, as it is in the JSON of the response. */
function searchableIn(message: string): string {
  const parts = JSON.stringify(message).slice(1, -1).split(VARYING)
  const [longest = ''] = parts.sort((one, other) => other.length - one.length)
  return longest.trim().slice(0, MAX_TEXT_CHARACTERS)
}
