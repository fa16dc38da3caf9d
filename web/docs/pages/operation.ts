/** One operation: what it does, what it takes and gives, what it emits, how to call it, and a form to try it. */
import { STATUS_CODES } from 'node:http'
import type {
  MediaType,
  Operation,
  OperationResponse,
  ResponseHeader,
} from '../../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { ApiOperation } from '../api.ts'
import { exampleValue, highlightedCode, languageTabs } from '../code.ts'
import { deprecationNote, firstSentence, methodOf } from '../layout.ts'
import { samplesOf } from '../samples.ts'
import { constraintsOf, fieldOf, fieldsOf, joined, typeOf } from '../schema.ts'
import type { Page, PageContext } from '../site.ts'
import { tryIt } from './try-it.ts'

export function operationPage(context: PageContext, operation: ApiOperation): Page {
  const { summary, description, resource, responses, success, body, events } = operation
  const isServer = context.options.edition === 'server'
  return {
    title: summary,
    summary: firstSentence(description) || summary,
    isWide: true,
    scripts: isServer ? ['try.js'] : [],
    crumbs: html`<a href="${context.link(`resources/${resource.slug}`)}">${resource.name}</a>`,
    body: html`
<p class="endpoint">${methodOf(operation)} <code>${pathOf(operation.path)}</code>${isServer && html`<a class="button" href="#try">Try it</a>`}</p>
${deprecationNote(operation.deprecation)}
<div class="columns">
<div class="column">
${context.markdown(description)}
${facts(context, operation)}
${events.length > 0 && emitted(context, operation)}
${parameters(context, 'Path', operation, 'path')}
${parameters(context, 'Query', operation, 'query')}
${parameters(context, 'Headers', operation, 'header')}
${body && html`<section><h2 id="body">Body</h2><p>JSON, with <code>Content-Type: application/json</code>.</p>${fieldsOf(context, body.schema.value)}</section>`}
<section><h2 id="responses">Responses</h2>${responses.map((response) => responseOf({ ...context, isAnswer: true }, response, response.status === success.status))}</section>
</div>
<aside class="column samples" aria-label="Samples">
<h2 id="request">Request</h2>
${languageTabs('request', 'Request', samplesOf(operation, context.options.baseUrl))}
${exampleOf(success)}
${isServer && tryIt(context, operation)}
</aside>
</div>`,
  }
}

/** With places where a long path may break. */
function pathOf(path: string): Content {
  return path
    .split('/')
    .map((step, index) => [
      index > 0 && html`/<wbr>`,
      step.startsWith('{') ? html`<var>${step}</var>` : step,
    ])
}

function facts(
  context: PageContext,
  { id, method, permission, rateLimit, parameters }: Operation,
): Html {
  const isRead = method === 'GET'
  const takes = (name: string) => parameters.some((parameter) => parameter.name === name)
  const guide = (name: string, text: string) =>
    context.guides.some((known) => known.id === `guides/${name}`)
      ? html`<a href="${context.link(`guides/${name}`)}">${text}</a>`
      : text
  return html`<dl class="facts">
<div><dt>Operation</dt><dd><code>${id}</code></dd></div>
<div><dt>${guide('authentication', 'Key')}</dt><dd>${isRead ? 'Read Only or Full Access' : 'Full Access'}${permission !== null && html`, whose owner may ${isRead ? 'read' : 'write'} <em>${permission}</em>`}</dd></div>
<div><dt>${guide('rate-limits', 'Rate limit')}</dt><dd>${rateLimit.limit} requests in ${rateLimit.windowSeconds} s, shared with the user's other requests</dd></div>
${takes('Idempotency-Key') && html`<div><dt>${guide('idempotency', 'Repeats')}</dt><dd>safe with an <code>Idempotency-Key</code></dd></div>`}
${takes('page[number]') && html`<div><dt>${guide('lists', 'Lists')}</dt><dd>pages, filters and sorts</dd></div>`}
</dl>`
}

function emitted(context: PageContext, { events }: ApiOperation): Html {
  return html`<section class="links"><h2 id="emits">Emits</h2><ul class="link-list">${events.map(
    ({ type, summary }) =>
      html`<li><a href="${context.link(`events/${type}`)}"><code>${type}</code></a> <span>${summary}</span></li>`,
  )}</ul></section>`
}

function parameters(
  context: PageContext,
  title: string,
  operation: Operation,
  where: 'path' | 'query' | 'header',
): Content {
  const found = operation.parameters.filter((parameter) => parameter.in === where)
  if (found.length === 0) return undefined
  return html`<section><h2 id="${where}">${title}</h2><ul class="fields">${found.map(
    ({ name, schema, required, description }) =>
      fieldOf(context, {
        name,
        schema: schema.value,
        isRequired: required,
        description,
        id: `${where}-${name.replace(/[^\w-]+/g, '-').replace(/-$/, '')}`,
      }),
  )}</ul></section>`
}

function responseOf(
  context: PageContext,
  { status, description, headers, content }: OperationResponse,
  isOpen: boolean,
): Html {
  const media = Object.values(content)
  const [first] = media
  const fields = first && fieldsOf(context, first.schema.value)
  return html`<details class="response" id="response-${status}"${isOpen && html` open`}>
<summary><span class="status s${Math.floor(status / 100)}">${status}</span> <span>${STATUS_CODES[status]}</span></summary>
${context.markdown(description)}
${media.map(({ mediaType, schema }) => html`<p class="media"><code>${mediaType}</code> ${typeOf(context, schema.value)}</p>`)}
${fields}
${!isOpen && first?.example !== undefined && html`<h3>Example</h3>${example(first)}`}
${Object.keys(headers).length > 0 && html`<details class="children"><summary>Headers</summary>${headerList(context, Object.values(headers))}</details>`}
</details>`
}

export function headerList(context: PageContext, headers: ResponseHeader[]): Html {
  return html`<ul class="fields">${headers.map(
    ({ name, description, schema, required, example }) => html`<li class="field">
<div class="field-head"><code class="field-name">${name}</code> <span class="type">${typeOf(context, schema.value)}</span>${!required && html` <span class="type">not always there</span>`}</div>
${context.markdown(description)}
${constraintsOf(context, schema.value)}
${example !== undefined && html`<p class="rule">for example <code>${String(example)}</code></p>`}
</li>`,
  )}</ul>`
}

function exampleOf({ status, content }: OperationResponse): Html {
  const examples = Object.values(content).filter(({ example }) => example !== undefined)
  const shown = joined(examples.map(example), '')
  return html`<h2 id="answer">Answer <span class="status s${Math.floor(status / 100)}">${status}</span></h2>${examples.length > 0 ? shown : html`<p class="quiet">No body.</p>`}`
}

function example({ mediaType, example }: MediaType): Html {
  return typeof example === 'string'
    ? highlightedCode(example, 'text', `Example, ${mediaType}`)
    : exampleValue(example, 'Example')
}
