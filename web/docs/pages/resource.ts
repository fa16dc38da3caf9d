/** The page of a resource: its operations, events and fields. */
import type { MediaType, Operation } from '../../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { Api, ApiResource } from '../api.ts'
import { exampleValue } from '../code.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { eventList, methodBadge } from '../parts.ts'
import { fieldList } from '../schema.ts'

export function resourcePage(context: PageContext, resource: ApiResource): DocsPage {
  const { name, description, operations, events } = resource
  const record = findRecord(context.api, resource)
  return {
    title: name,
    summary: description,
    isWide: record !== undefined,
    body: html`
      ${context.markdown(description)}
      <section>
        <h2 id="operations">Operations</h2>
        <ul class="link-list">
          ${operations.map((operation) => operationItem(context, operation))}
        </ul>
      </section>
      ${
        events.length > 0 &&
        html`<section>
          <h2 id="events">Events</h2>
          ${eventList(context, events)}
        </section>`
      }
      ${recordSection(context, record)}`,
  }
}

function operationItem(context: PageContext, operation: Operation): Html {
  return html`<li>
    <a href="${context.link(`operations/${operation.id}`)}">
      ${methodBadge(operation)} ${operation.summary}
    </a>
    ${operation.deprecation && html`<em class="pill warn">deprecated</em>`}
    <code class="quiet">${operation.path}</code>
  </li>`
}

function recordSection(context: PageContext, record: MediaType | undefined): Content {
  if (!record) return undefined
  return html`<section>
    <h2 id="record">The record</h2>
    <div class="columns">
      <div class="column">${fieldList({ ...context, isOutput: true, fieldIds: 'record' }, record.schema.value)}</div>
      <aside class="column samples" aria-label="Example">
        ${record.example !== undefined && exampleValue(record.example, 'Example')}
      </aside>
    </div>
  </section>`
}

/** The response of the operation that gets one record. Undefined if there is no such operation, or
 *  if the response has no fields. */
export function findRecord(api: Api, { operations }: ApiResource): MediaType | undefined {
  const get = operations.find(({ method, path }) => method === 'GET' && path.endsWith('}'))
  const [media] = Object.values(get?.success.content ?? {})
  return media && api.follow(media.schema.value).properties ? media : undefined
}
