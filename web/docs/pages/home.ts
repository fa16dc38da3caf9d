/** The home page. */
import { type Content, type Html, html } from '../../shared/html.ts'
import type { ApiResource } from '../api.ts'
import { highlightedCode } from '../code.ts'
import { type Guide, sectionOf } from '../guides.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { firstSentence } from '../parts.ts'
import { codeSamples } from '../samples.ts'

export function homePage(context: PageContext): DocsPage {
  const { api, guides } = context
  const [firstGuide] = guides
  const [introduction = ''] = api.description.split('\n\n')
  return {
    title: api.title,
    summary: firstSentence(introduction),
    body: html`
      <div class="hero">
        <div>
          <h1>${api.title}</h1>
          ${context.markdown(introduction)}
          <p class="actions">
            ${
              firstGuide &&
              html`<a class="button primary" href="${context.link(firstGuide.id)}">
                ${firstGuide.title}
              </a>`
            }
            <a class="button" href="${context.link('api')}">API overview</a>
            <a class="button" href="${context.link('webhooks')}">Events overview</a>
          </p>
        </div>
        ${firstRequest(context)}
      </div>
      ${guides.length > 0 && guideSection(context)}
      <section>
        <h2 id="resources">Resources</h2>
        <ul class="cards">
          ${api.resources.map((resource) => resourceCard(context, resource))}
        </ul>
      </section>
      ${contracts(context)}`,
  }
}

function firstRequest({ api, options }: PageContext): Content {
  const operation = api.operations.find(
    ({ method, parameters }) => method === 'GET' && parameters.every(({ required }) => !required),
  )
  const sample = operation && codeSamples(operation, options.baseUrl, api)[0]
  return sample && highlightedCode(sample.code, sample.language, 'A first request')
}

function guideSection(context: PageContext): Html {
  const guides = context.guides.filter(({ group }) => group === 'guides')
  return html`<section>
    <h2 id="guides">Guides</h2>
    ${[...Map.groupBy(guides, sectionOf)].map(
      ([section, some]) => html`<h3>${section}</h3>
        <ul class="cards">
          ${some.map((guide) => guideCard(context, guide))}
        </ul>`,
    )}
  </section>`
}

function guideCard(context: PageContext, { id, title, text }: Guide): Html {
  return html`<li>
    <a href="${context.link(id)}">${title}</a>
    <p>${firstSentence(text)}</p>
  </li>`
}

function resourceCard(
  context: PageContext,
  { slug, name, description, operations, events }: ApiResource,
): Html {
  return html`<li>
    <a href="${context.link(`resources/${slug}`)}">${name}</a>
    <p>${description}</p>
    <p class="quiet">${countOf(operations, 'operation')}${events.length > 0 && `, ${countOf(events, 'event')}`}</p>
  </li>`
}

function countOf({ length }: unknown[], noun: string): string {
  return `${length} ${noun}${length === 1 ? '' : 's'}`
}

function contracts({ api, contractLink }: PageContext): Html {
  const link = (name: string) => html`<a href="${contractLink(name)}">${name}</a>`
  return html`<section>
    <h2 id="files">For your tools</h2>
    <p>
      These pages, the service's validation and its tests are generated from the contracts:
      ${link('openapi.yaml')}, ${link('openapi.json')}, ${link('asyncapi.yaml')}, ${link('asyncapi.json')}.
      For tools that read OpenAPI 3.1 but not AsyncAPI, ${link('openapi-3.1.json')} has the webhooks, too.
      API ${api.version}, webhooks ${api.webhooks.version}.
    </p>
    <p>
      For language models, <a href="llms.txt">llms.txt</a> lists all pages, each as Markdown.
    </p>
  </section>`
}
