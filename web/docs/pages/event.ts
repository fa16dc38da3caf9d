/** The page of an event type: what triggers it, and the delivery's body and headers. */
import { type Content, type Html, html } from '../../shared/html.ts'
import type { ApiEvent } from '../api.ts'
import { exampleValue } from '../code.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { deprecationNote, firstSentence, methodBadge } from '../parts.ts'
import { fieldList } from '../schema.ts'

export function eventPage(context: PageContext, event: ApiEvent): DocsPage {
  const { type, summary, description, payload, headers, example } = event
  const outputContext = { ...context, isOutput: true }
  return {
    title: type,
    summary: summary || firstSentence(description),
    isWide: true,
    crumbs: crumbs(context, event),
    body: html`
      <p class="endpoint">${methodBadge({ method: 'POST' })} <code>your webhook's URL</code></p>
      ${deprecationNote(event.deprecation)}
      <div class="columns">
        <div class="column">
          <p><strong>${summary}</strong></p>
          ${context.markdown(description)}
          ${triggers(context, event)}
          ${record(context, event)}
          <section>
            <h2 id="body">Body</h2>
            ${fieldList(outputContext, payload.value)}
          </section>
          <section>
            <h2 id="headers">Headers</h2>
            ${fieldList(outputContext, headers.value)}
          </section>
        </div>
        <aside class="column samples" aria-label="Samples">
          <h2 id="example">Example</h2>
          ${exampleValue(example, 'Body')}
          <p class="quiet">How to verify a delivery and respond: ${receiverGuide(context)}.</p>
        </aside>
      </div>`,
  }
}

function crumbs(context: PageContext, { resource }: ApiEvent): Html {
  const parent =
    resource &&
    html` / <a href="${context.link(`resources/${resource.slug}`)}">${resource.name}</a>`
  return html`<a href="${context.link('webhooks')}">Events</a>${parent}`
}

function receiverGuide(context: PageContext): Html {
  const guide = context.guides.find(({ id }) => id === 'guides/webhooks')
  return html`<a href="${context.link(guide?.id ?? 'webhooks')}">${guide?.title ?? 'Webhooks'}</a>`
}

const SYSTEM_NOTE = html`<p>The system itself, in the background. No request triggers it directly.</p>`
const TEST_NOTE = html`<p>
  A user who tests a webhook in the web interface. Webhooks cannot subscribe to this event.
</p>`

function triggers(context: PageContext, event: ApiEvent): Html {
  const operations = event.triggers.map(
    (operation) => html`<li>
      <a href="${context.link(`operations/${operation.id}`)}">
        ${methodBadge(operation)} <code>${operation.id}</code>
      </a>
      <span>${operation.summary}</span>
    </li>`,
  )
  return html`<section class="links">
    <h2 id="triggers">Triggered by</h2>
    ${operations.length > 0 && html`<ul class="link-list">${operations}</ul>`}
    ${event.isFromSystem && SYSTEM_NOTE}
    ${!event.isSubscribable && !event.isOperational && TEST_NOTE}
  </section>`
}

function record(context: PageContext, { recordOperation }: ApiEvent): Content {
  if (!recordOperation) return undefined
  return html`<section class="links">
    <h2 id="record">The record</h2>
    <p>The body has only the ID of the record. Fetch the current record with <code>resource.id</code>:</p>
    <ul class="link-list">
      <li>
        <a href="${context.link(`operations/${recordOperation.id}`)}">
          ${methodBadge(recordOperation)} <code>${recordOperation.path}</code>
        </a>
      </li>
    </ul>
  </section>`
}
