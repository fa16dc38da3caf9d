/** A resource: its operations, its events, its record. */

import type { MediaType } from '../../../scripts/model/operations.ts'
import { type Html, html } from '../../shared/html.ts'
import type { Api, ApiResource } from '../api.ts'
import { exampleValue } from '../code.ts'
import { methodOf } from '../layout.ts'
import { fieldsOf } from '../schema.ts'
import type { Page, PageContext } from '../site.ts'

export function resourcePage(context: PageContext, resource: ApiResource): Page {
  const { name, description, operations, events } = resource
  const record = recordOf(context.api, resource)
  return {
    title: name,
    summary: description,
    isWide: record !== undefined,
    body: html`${context.markdown(description)}
<section><h2 id="operations">Operations</h2>${operationTable(context, operations)}</section>
${
  events.length > 0 &&
  html`<section><h2 id="events">Events</h2><ul class="link-list">${events.map(
    ({ type, summary }) =>
      html`<li><a href="${context.link(`events/${type}`)}"><code>${type}</code></a> <span>${summary}</span></li>`,
  )}</ul></section>`
}
${
  record &&
  html`<section><h2 id="record">The record</h2><div class="columns"><div class="column">${fieldsOf({ ...context, isAnswer: true }, record.schema.value)}</div>
<aside class="column samples" aria-label="Example">${record.example !== undefined && exampleValue(record.example, 'Example')}</aside></div></section>`
}`,
  }
}

export function operationTable(context: PageContext, operations: ApiResource['operations']): Html {
  return html`<ul class="link-list">${operations.map(
    (operation) =>
      html`<li><a href="${context.link(`operations/${operation.id}`)}">${methodOf(operation)} ${operation.summary}</a>${operation.deprecation && html` <em class="pill warn">deprecated</em>`} <code class="quiet">${operation.path}</code></li>`,
  )}</ul>`
}

/** What the operation that gets a single one answers with. */
function recordOf(api: Api, { operations }: ApiResource): MediaType | undefined {
  const get = operations.find(({ method, path }) => method === 'GET' && path.endsWith('}'))
  const [media] = Object.values(get?.success.content ?? {})
  return media && api.follow(media.schema.value).properties ? media : undefined
}
