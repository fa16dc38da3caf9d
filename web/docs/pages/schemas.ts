/** All schemas of openapi.yaml on one page. */
import type { Schema } from '../../../scripts/model/schema.ts'
import { type Html, html } from '../../shared/html.ts'
import type { DocsPage, PageContext } from '../page.ts'
import { constraintList, fieldList, formatType } from '../schema.ts'

export function schemasPage(context: PageContext): DocsPage {
  return {
    title: 'Schemas',
    summary: 'All schemas of the API, with the constraints of their fields.',
    body: html`
      <p>
        The schemas of requests and responses. For tools:
        <a href="${context.contractLink('openapi.json')}">openapi.json</a>.
      </p>
      ${[...context.api.schemas].map(([name, schema]) => schemaSection(context, name, schema))}`,
  }
}

function schemaSection(context: PageContext, name: string, schema: Schema): Html {
  return html`<section class="schema">
    <h2 id="${name}">${name}</h2>
    <p class="type">${formatType(context, schema)}</p>
    ${context.markdown(schema.description ?? '')}
    ${constraintList(context, schema)}
    ${schema.additionalProperties === false && html`<p class="rule">Unknown fields get 422.</p>`}
    ${fieldList({ ...context, fieldIds: name }, schema)}
  </section>`
}
