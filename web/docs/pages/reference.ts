/** What the contracts say about errors, limits and lists, all operations together. */
import { STATUS_CODES } from 'node:http'
import type { Operation, OperationResponse } from '../../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import { exampleValue } from '../code.ts'
import { constraintsOf, joined } from '../schema.ts'
import type { PageContext } from '../site.ts'
import { headerList } from './operation.ts'

/** Of the headers, the ones that every answer has say nothing about an error. */
const COMMON_HEADERS = /^(x-request-id|x-ratelimit-.*|ratelimit.*)$/i

/** Every status that is not a success, with who answers it. */
export function errorReference(context: PageContext): Html {
  const { operations } = context.api
  const statuses = [
    ...new Set(operations.flatMap(({ responses }) => responses.map(({ status }) => status))),
  ].filter((status) => status >= 300)
  return html`${statuses.sort((a, b) => a - b).map((status) => errorSection(context, status, operations))}`
}

function errorSection(context: PageContext, status: number, all: Operation[]): Html {
  const operations = all.filter(({ responses }) =>
    responses.some((response) => response.status === status),
  )
  const responses = operations.flatMap((operation) =>
    operation.responses.filter((response) => response.status === status),
  )
  const descriptions = [...new Set(responses.map(({ description }) => description))]
  const [first] = responses as [OperationResponse]
  const headers = Object.values(first.headers).filter(({ name }) => !COMMON_HEADERS.test(name))
  const example = Object.values(first.content)[0]?.example
  return html`<section class="schema"><h3 id="status-${status}"><span class="status s${Math.floor(status / 100)}">${status}</span> ${STATUS_CODES[status]}</h3>
${descriptions.map((description) => context.markdown(description))}
${example !== undefined && exampleValue(example, `Example of ${status}`)}
${headers.length > 0 && headerList(context, headers)}
${operations.length === all.length ? html`<p class="quiet">Any operation.</p>` : html`<details class="children"><summary>${operations.length} operations</summary><p>${operationLinks(context, operations)}</p></details>`}
</section>`
}

function operationLinks(context: PageContext, operations: Operation[]): Content {
  return joined(
    operations.map(
      ({ id }) => html`<a href="${context.link(`operations/${id}`)}"><code>${id}</code></a>`,
    ),
    ', ',
  )
}

export function rateLimitReference(context: PageContext): Html {
  const headers = context.api.headers.filter(({ name }) => /ratelimit|retry-after/i.test(name))
  return headerList(context, headers)
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
  const sort = parameters.find(({ name }) => name === 'sort')
  const sorts =
    sort &&
    context.api
      .follow(sort.schema.value)
      .items?.enum?.filter((value) => !String(value).startsWith('-'))
  return html`<section class="schema"><h3 id="${id}"><a href="${context.link(`operations/${id}`)}">${summary}</a></h3>
${
  filters.length > 0 &&
  html`<div class="table" tabindex="0" role="group" aria-label="Filters of ${id}"><table><thead><tr><th>Filter</th><th>What it leaves</th><th>Takes</th></tr></thead><tbody>${filters.map(
    ({ name, description, schema }) =>
      html`<tr><td><code>${name}</code></td><td>${context.markdown(description)}</td><td>${constraintsOf(context, schema.value) || context.api.follow(schema.value).format || 'text'}</td></tr>`,
  )}</tbody></table></div>`
}
<p>${
    sorts && sorts.length > 0
      ? html`Sorts by ${joined(
          sorts.map((name) => html`<code>${String(name)}</code>`),
          ', ',
        )}.`
      : 'It has one order and no sorts.'
  }</p>
</section>`
}
