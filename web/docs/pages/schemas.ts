/** Every schema of openapi.yaml, to link to. */
import { html } from '../../shared/html.ts'
import { constraintsOf, fieldsOf, typeOf } from '../schema.ts'
import type { Page, PageContext } from '../site.ts'

export function schemasPage(context: PageContext): Page {
  return {
    title: 'Schemas',
    summary: 'Every schema of the API, with what its fields must meet.',
    body: html`<p>What requests and answers are made of. The same in machine form: <a href="${context.contractLink('openapi.json')}">openapi.json</a>.</p>
${[...context.api.schemas]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([name, schema]) => html`<section class="schema"><h2 id="${name}">${name}</h2>
<p class="type">${typeOf(context, schema)}</p>
${context.markdown(schema.description ?? '')}
${constraintsOf(context, schema)}
${schema.additionalProperties === false && html`<p class="rule">Other fields are refused.</p>`}
${fieldsOf(context, schema)}
</section>`,
  )}`,
  }
}
