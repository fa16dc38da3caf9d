/** The page of an operation: its parameters, responses and events, samples, and a form to try
 *  it. */
import { STATUS_CODES } from 'node:http'
import type { MediaType, Operation, OperationResponse } from '../../../scripts/model/operations.ts'
import { codeFrame } from '../../shared/code-block.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { ApiOperation } from '../api.ts'
import { exampleValue, highlightedCode, languageTabs } from '../code.ts'
import type { DocsPage, PageContext } from '../page.ts'
import {
  deprecationNote,
  eventList,
  firstSentence,
  headerList,
  methodBadge,
  statusBadge,
} from '../parts.ts'
import { codeSamples } from '../samples.ts'
import { fieldItem, fieldList, formatType, joinContent } from '../schema.ts'
import { tryIt } from './try-it.ts'

/** The titles of the sections of parameters, by the `in` of the parameters. */
export const PARAMETER_SECTIONS = {
  path: 'Path',
  query: 'Query',
  header: 'Headers',
}

export function operationPage(context: PageContext, operation: ApiOperation): DocsPage {
  const { summary, description, resource, responses, success, events } = operation
  const isServer = context.options.edition === 'server'
  return {
    title: summary,
    summary: firstSentence(description) || summary,
    isWide: true,
    scripts: isServer ? ['try.js'] : [],
    crumbs: html`<a href="${context.link(`resources/${resource.slug}`)}">${resource.name}</a>`,
    body: html`
      <p class="endpoint">
        ${methodBadge(operation)} <code>${breakablePath(operation.path)}</code>
        ${isServer && html`<a class="button" href="#try">Try it</a>`}
      </p>
      ${deprecationNote(operation.deprecation)}
      <div class="columns">
        <div class="column">
          ${context.markdown(description)}
          ${facts(context, operation)}
          ${events.length > 0 && emitsSection(context, operation)}
          ${Object.entries(PARAMETER_SECTIONS).map(([place, title]) =>
            parameterSection(context, title, operation, place),
          )}
          ${bodySection(context, operation)}
          <section>
            <h2 id="responses">Responses</h2>
            ${responses.map((response) => responseDetails(context, response, success))}
          </section>
        </div>
        <aside class="column samples" aria-label="Samples">
          <h2 id="request">Request</h2>
          ${languageTabs('request', 'Request', codeSamples(operation, context.options.baseUrl, context.api))}
          ${exampleResponse(success)}
          ${isServer && tryIt(context, operation)}
        </aside>
      </div>`,
  }
}

/** A long path can break after each slash. */
function breakablePath(path: string): Content {
  return path
    .split('/')
    .map((step, index) => [
      index > 0 && html`/<wbr>`,
      step.startsWith('{') ? html`<var>${step}</var>` : step,
    ])
}

function facts(context: PageContext, operation: Operation): Html {
  const items = listFacts(context, operation).map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  )
  return html`<dl class="facts">${items}</dl>`
}

type Fact = [label: Content, value: Content]

export function listFacts(context: PageContext, operation: Operation): Fact[] {
  const { id, rateLimit, parameters } = operation
  const limit = context.options.limits?.requestsPerMinute ?? rateLimit.limit
  const hasParameter = (name: string) => parameters.some((parameter) => parameter.name === name)
  const guideLink = (name: string, text: string) =>
    context.guides.some((guide) => guide.id === `guides/${name}`)
      ? html`<a href="${context.link(`guides/${name}`)}">${text}</a>`
      : text
  const facts: (Fact | false)[] = [
    ['Operation', html`<code>${id}</code>`],
    [guideLink('authentication', 'Key'), requiredKey(operation)],
    [
      guideLink('rate-limits', 'Rate limit'),
      `${limit} requests in ${rateLimit.windowSeconds} s, shared with the user's other requests`,
    ],
    hasParameter('Idempotency-Key') && [
      guideLink('idempotency', 'Idempotency'),
      html`safe to retry with an <code>Idempotency-Key</code>`,
    ],
    hasParameter('page[number]') && [guideLink('lists', 'Lists'), 'pages, filters and sorts'],
  ]
  return facts.filter((fact) => fact !== false)
}

function requiredKey({ method, permission }: Operation): Html {
  const isRead = method === 'GET'
  const ownerPermission =
    permission !== null &&
    html`, whose owner has ${isRead ? 'read' : 'write'} permission for <em>${permission}</em>`
  return html`${isRead ? 'Read Only or Full Access' : 'Full Access'}${ownerPermission}`
}

function emitsSection(context: PageContext, { events }: ApiOperation): Html {
  return html`<section class="links">
    <h2 id="emits">Emits</h2>
    ${eventList(context, events)}
  </section>`
}

function parameterSection(
  context: PageContext,
  title: string,
  operation: Operation,
  place: string,
): Content {
  const parameters = operation.parameters.filter((parameter) => parameter.in === place)
  if (parameters.length === 0) return undefined
  const fields = parameters.map(({ name, schema, required, description }) =>
    fieldItem(context, {
      name,
      schema: schema.value,
      isRequired: required,
      description,
      id: `${place}-${name.replace(/[^\w-]+/g, '-').replace(/-$/, '')}`,
    }),
  )
  return html`<section>
    <h2 id="${place}">${title}</h2>
    <ul class="fields">${fields}</ul>
  </section>`
}

function bodySection(context: PageContext, { body, files }: Operation): Content {
  if (files.length > 0) return fileSection(files)
  if (!body) return undefined
  return html`<section>
    <h2 id="body">Body</h2>
    <p>JSON, with <code>Content-Type: ${body.mediaType}</code>.</p>
    ${fieldList({ ...context, fieldIds: 'body' }, body.schema.value)}
  </section>`
}

function fileSection(files: MediaType[]): Content {
  return html`<section>
    <h2 id="body">Body</h2>
    <p>A file, with its <code>Content-Type</code>:</p>
    ${files.map(({ mediaType, example }) => codeFrame(mediaType, String(example), html``))}
  </section>`
}

/** Leaves out the example of `success`, because `exampleResponse` shows it beside the responses. */
function responseDetails(
  context: PageContext,
  response: OperationResponse,
  success: OperationResponse,
): Html {
  const isSuccess = response.status === success.status
  const { status, description, headers, content } = response
  const outputContext = { ...context, isOutput: true, fieldIds: `response-${status}` }
  const media = Object.values(content)
  const [first] = media
  return html`<details class="response" id="response-${status}"${isSuccess && html` open`}>
    <summary>
      ${statusBadge(status)}
      <span>${STATUS_CODES[status]}</span>
    </summary>
    ${context.markdown(description)}
    ${media.map(({ mediaType, schema }) => {
      const type = formatType(outputContext, schema.value)
      return html`<p class="media"><code>${mediaType}</code> ${type}</p>`
    })}
    ${first && fieldList(outputContext, first.schema.value)}
    ${!isSuccess && first && errorExamples(first)}
    ${Object.keys(headers).length > 0 && headerDetails(context, headers)}
  </details>`
}

function errorExamples(media: MediaType): Content {
  if (media.examples.length > 0)
    return media.examples.map(
      ({ summary, value }) => html`<h3>${summary}</h3>${exampleValue(value, summary)}`,
    )
  return media.example !== undefined && html`<h3>Example</h3>${mediaExample(media)}`
}

function headerDetails(context: PageContext, headers: OperationResponse['headers']): Html {
  return html`<details class="children">
    <summary>Headers</summary>
    ${headerList(context, Object.values(headers))}
  </details>`
}

function exampleResponse({ status, content }: OperationResponse): Html {
  const examples = Object.values(content)
    .filter(({ example }) => example !== undefined)
    .map(mediaExample)
  return html`<h2 id="response">Response ${statusBadge(status)}</h2>
    ${examples.length > 0 ? joinContent(examples, '') : html`<p class="quiet">No body.</p>`}`
}

function mediaExample({ mediaType, example }: MediaType): Html {
  return typeof example === 'string'
    ? highlightedCode(example, 'text', `Example, ${mediaType}`)
    : exampleValue(example, 'Example')
}
