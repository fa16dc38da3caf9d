/** References that are generated from the contracts: error statuses, headers of rate limits, and
 *  filters and sorts of lists. Each stands below the text of a guide (guide.ts). */
import { STATUS_CODES } from 'node:http'
import type { Operation, OperationResponse, Parameter } from '../../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { exampleValue } from '../code.ts'
import type { PageContext } from '../page.ts'
import { headerList, scrollableTable, statusBadge } from '../parts.ts'
import { constraintList, joinContent } from '../schema.ts'

/** Headers of nearly all responses. `errorSection` does not repeat them for each status. */
export const COMMON_HEADERS = /^(x-request-id|x-ratelimit-.*|ratelimit.*)$/i

/** Every status that is not a success, with the operations that return it. */
export function errorReference(context: PageContext): Html {
  const { operations } = context.api
  const statuses = [
    ...new Set(operations.flatMap(({ responses }) => responses.map(({ status }) => status))),
  ].filter((status) => status >= 300)
  return html`${statuses.sort((a, b) => a - b).map((status) => errorSection(context, status))}`
}

function errorSection(context: PageContext, status: number): Html {
  const all = context.api.operations
  const operations = all.filter(({ responses }) =>
    responses.some((response) => response.status === status),
  )
  const isEveryOperation = operations.length === all.length
  const responses = operations.flatMap((operation) =>
    operation.responses.filter((response) => response.status === status),
  )
  const descriptions = [...new Set(responses.map(({ description }) => description))]
  const [first] = responses as [OperationResponse]
  const headers = Object.values(first.headers).filter(({ name }) => !COMMON_HEADERS.test(name))
  const example = Object.values(first.content)[0]?.example
  return html`<section class="schema">
    <h3 id="status-${status}">${statusBadge(status)} ${STATUS_CODES[status]}</h3>
    ${descriptions.map((description) => context.markdown(description))}
    ${example !== undefined && exampleValue(example, `Example of ${status}`)}
    ${headers.length > 0 && headerList(context, headers)}
    ${isEveryOperation ? html`<p class="quiet">All operations.</p>` : operationList(context, operations)}
  </section>`
}

function operationList(context: PageContext, operations: Operation[]): Html {
  const links = operations.map(
    ({ id }) => html`<a href="${context.link(`operations/${id}`)}"><code>${id}</code></a>`,
  )
  return html`<details class="children">
    <summary>Operations (${operations.length})</summary>
    <p>${joinContent(links, ', ')}</p>
  </details>`
}

export function rateLimitReference(context: PageContext): Html {
  const headers = context.api.headers.filter(({ name }) => /ratelimit|retry-after/i.test(name))
  return html`${limitsOfService(context)}${headerList(context, headers)}`
}

function limitsOfService({ options: { limits }, link }: PageContext): Content {
  if (limits === undefined) return undefined
  const { requestsPerMinute, requestsInFlight } = limits
  return html`<p>
    This service allows each user ${requestsPerMinute} requests per minute and ${requestsInFlight} requests in
    progress. The operator can set another rate limit for you or your account:
    <a href="${link('operations/getMe')}"><code>GET /public/v1/me</code></a> shows it.
  </p>`
}

/** The filters and sorts of each list. */
export function listReference(context: PageContext): Html {
  const lists = context.api.operations.filter(({ parameters }) =>
    parameters.some(({ name }) => name === 'page[number]'),
  )
  return html`${lists.map((operation) => listSection(context, operation))}`
}

function listSection(context: PageContext, { id, summary, parameters }: Operation): Html {
  const filters = parameters.filter(({ name }) => name.startsWith('filter['))
  return html`<section class="schema">
    <h3 id="${id}"><a href="${context.link(`operations/${id}`)}">${summary}</a></h3>
    ${filters.length > 0 && filterTable(context, id, filters)}
    <p>${sortNote(context, parameters)}</p>
  </section>`
}

function filterTable(context: PageContext, id: string, filters: Parameter[]): Html {
  const rows = filters.map(
    ({ name, description, schema }) => html`<tr>
      <td><code>${name}</code></td>
      <td>${context.markdown(description)}</td>
      <td>${constraintList(context, schema.value) || context.api.follow(schema.value).format || 'text'}</td>
    </tr>`,
  )
  return scrollableTable(
    `Filters of ${id}`,
    html`<table>
      <thead><tr><th>Filter</th><th>Meaning</th><th>Values</th></tr></thead>
      <tbody>${rows}</tbody>
    </table>`,
  )
}

function sortNote({ api }: PageContext, parameters: Parameter[]): Content {
  const sort = parameters.find(({ name }) => name === 'sort')
  const values = sort ? (api.follow(sort.schema.value).items?.enum ?? []) : []
  const fields = values.filter((value) => !String(value).startsWith('-'))
  if (fields.length === 0) return 'This list cannot be sorted.'
  const names = fields.map((field) => html`<code>${String(field)}</code>`)
  return html`Sort by ${joinContent(names, ', ')}.`
}
