/** The first page. */
import { html } from '../../shared/html.ts'
import { highlightedCode } from '../code.ts'
import { firstSentence } from '../layout.ts'
import { samplesOf } from '../samples.ts'
import type { Page, PageContext } from '../site.ts'

export function homePage(context: PageContext): Page {
  const { api, guides, options } = context
  const [summary, ...more] = api.description.split('\n\n')
  const first = api.operations.find(
    ({ method, parameters }) => method === 'GET' && parameters.every(({ required }) => !required),
  )
  const sample = first && samplesOf(first, options.baseUrl)[0]
  return {
    title: api.title,
    summary: firstSentence(summary ?? more.join('')),
    body: html`<div class="hero"><div><h1>${api.title}</h1>${context.markdown(summary ?? '')}
<p class="actions">${guides[0] && html`<a class="button primary" href="${context.link(guides[0].id)}">${guides[0].title}</a>`} <a class="button" href="${context.link('api')}">The API in short</a> <a class="button" href="${context.link('webhooks')}">Events in short</a></p></div>
${sample && highlightedCode(sample.code, sample.language, 'A first request')}</div>
<section><h2 id="guides">Guides</h2><ul class="cards">${guides
      .filter(({ group }) => group === 'guides')
      .map(
        ({ id, title, text }) =>
          html`<li><a href="${context.link(id)}">${title}</a><p>${firstSentence(text.replace(/^# .*$/m, ''))}</p></li>`,
      )}</ul></section>
<section><h2 id="resources">Resources</h2><ul class="cards">${api.resources.map(
      ({ slug, name, description, operations, events }) =>
        html`<li><a href="${context.link(`resources/${slug}`)}">${name}</a><p>${description}</p><p class="quiet">${operations.length} operations${events.length > 0 && `, ${events.length} events`}</p></li>`,
    )}</ul></section>
<section><h2 id="files">For your tools</h2><p>The contracts themselves, from which these pages, the service's validation and its tests are made:
<a href="${context.contractLink('openapi.yaml')}">openapi.yaml</a>, <a href="${context.contractLink('openapi.json')}">openapi.json</a>, <a href="${context.contractLink('asyncapi.yaml')}">asyncapi.yaml</a>, <a href="${context.contractLink('asyncapi.json')}">asyncapi.json</a>.
API ${api.version}, webhooks ${api.webhooks.version}.</p></section>`,
  }
}
