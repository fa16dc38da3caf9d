/** HTML fragments shared by several pages. */
import type { Deprecation } from '../../scripts/model/deprecations.ts'
import type { Operation, ResponseHeader } from '../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import type { ApiEvent } from './api.ts'
import { renderMarkdown } from './markdown.ts'
import type { PageContext } from './page.ts'
import { fieldItem } from './schema.ts'

const METHOD_TONES: Record<string, string> = { GET: 'ok', POST: 'busy', DELETE: 'bad' }
/** By the first digit of the status. */
const STATUS_TONES: Record<number, string> = { 2: 'ok', 3: 'busy', 4: 'warn' }

export function methodBadge({ method }: Pick<Operation, 'method'>): Html {
  return html`<span class="pill method ${METHOD_TONES[method] ?? 'warn'}">${method}</span>`
}

export function statusBadge(status: number): Html {
  const tone = STATUS_TONES[Math.floor(status / 100)] ?? 'bad'
  return html`<span class="pill ${tone}">${status}</span>`
}

export function deprecationNote(deprecation: Deprecation | null): Content {
  if (!deprecation) return undefined
  const { since, sunset } = deprecation
  const day = (date: string) => html`<time datetime="${date}">${date}</time>`
  return html`<p class="note warn">
    <strong>Deprecated</strong> since ${day(since)}: do not use it in new code.
    ${sunset !== null && html`It may be removed on or after ${day(sunset)}.`}
  </p>`
}

export function eventList(context: PageContext, events: ApiEvent[]): Html {
  return html`<ul class="link-list">
    ${events.map(
      ({ type, summary }) => html`<li>
        <a href="${context.link(`events/${type}`)}"><code>${type}</code></a>
        <span>${summary}</span>
      </li>`,
    )}
  </ul>`
}

export function headerList(context: PageContext, headers: ResponseHeader[]): Html {
  const outputContext = { ...context, isOutput: true }
  const items = headers.map((header) =>
    fieldItem(outputContext, {
      ...header,
      schema: header.schema.value,
      isRequired: header.required,
    }),
  )
  return html`<ul class="fields">${items}</ul>`
}

/** A table that scrolls if it is wider than the page. */
export function scrollableTable(label: string, table: Html): Html {
  return html`<div class="table" tabindex="0" role="group" aria-label="${label}">${table}</div>`
}

/** The first sentence that is in no heading, as plain text. */
export function firstSentence(markdown: string): string {
  const [first = ''] = markdown
    .trim()
    .split(/\n\s*\n/)
    .filter((block) => !block.startsWith('#'))
  const text = renderMarkdown(first)
    .body.text.replace(/<[^>]*>/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  return /^.*?[.!?](?= |$)/.exec(text)?.[0] ?? text.replace(/:$/, '.')
}
