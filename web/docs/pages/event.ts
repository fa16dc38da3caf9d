/** One event: when it comes, what makes it come, what it brings. */
import { type Html, html } from '../../shared/html.ts'
import type { ApiEvent } from '../api.ts'
import { exampleValue } from '../code.ts'
import { deprecationNote, firstSentence, methodOf } from '../layout.ts'
import { fieldsOf } from '../schema.ts'
import type { Page, PageContext } from '../site.ts'

export function eventPage(context: PageContext, event: ApiEvent): Page {
  const { type, summary, description, resource, payload, headers, example, fetch } = event
  const answer = { ...context, isAnswer: true }
  return {
    title: type,
    summary: summary || firstSentence(description),
    isWide: true,
    crumbs: html`<a href="${context.link('webhooks')}">Events</a>${resource && html` / <a href="${context.link(`resources/${resource.slug}`)}">${resource.name}</a>`}`,
    body: html`
<p class="endpoint"><span class="method post">POST</span> <code>your webhook's URL</code></p>
${deprecationNote(event.deprecation)}
<div class="columns">
<div class="column">
<p><strong>${summary}</strong></p>
${context.markdown(description)}
<section class="links"><h2 id="triggers">Triggered by</h2>${triggers(context, event)}</section>
${
  fetch &&
  html`<section class="links"><h2 id="record">The record</h2><p>The body names the record and does not hold it. Fetch its current state with <code>resource.id</code>:</p><ul class="link-list"><li><a href="${context.link(`operations/${fetch.id}`)}">${methodOf(fetch)} <code>${fetch.path}</code></a></li></ul></section>`
}
<section><h2 id="body">Body</h2>${fieldsOf(answer, payload.value)}</section>
<section><h2 id="headers">Headers</h2>${fieldsOf(answer, headers.value)}</section>
</div>
<aside class="column samples" aria-label="Samples"><h2 id="example">Example</h2>${exampleValue(example, 'Body')}
<p class="quiet">How to verify and answer it: ${receiving(context)}.</p></aside>
</div>`,
  }
}

function receiving(context: PageContext): Html {
  const guide = context.guides.find(({ id }) => id === 'guides/webhooks')
  return guide
    ? html`<a href="${context.link(guide.id)}">${guide.title}</a>`
    : html`<a href="${context.link('webhooks')}">Events in short</a>`
}

function triggers(
  context: PageContext,
  { triggers, isFromSystem, isSubscribable }: ApiEvent,
): Html {
  const list = html`<ul class="link-list">${triggers.map(
    (operation) =>
      html`<li><a href="${context.link(`operations/${operation.id}`)}">${methodOf(operation)} <code>${operation.id}</code></a> <span>${operation.summary}</span></li>`,
  )}</ul>`
  return html`${triggers.length > 0 && list}${isFromSystem && html`<p>${triggers.length > 0 ? 'Also the' : 'The'} system itself, in its own time: no single request causes it.</p>`}${
    !isSubscribable &&
    html`<p>Somebody who tests a webhook in the web interface. It cannot be subscribed to.</p>`
  }`
}
