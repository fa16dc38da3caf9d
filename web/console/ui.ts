/** Components of the console's pages. */
import { randomUUID } from 'node:crypto'
import { codeFrame } from '../shared/code-block.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { relative, remaining, utc } from './format.ts'
import { icon } from './icons.ts'

export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | 'quiet'

/** A state, shown by color and by a word. */
export function pill(tone: Tone, label: Content): Html {
  return html`<span class="pill ${tone}">${label}</span>`
}

/** A button, or a link that looks like one. */
export function button(label: Content, style: '' | 'primary' | 'danger' | 'quiet' = ''): Html {
  return html`<button class="button ${style}">${label}</button>`
}

export function buttonLink(
  to: string,
  label: Content,
  style: '' | 'primary' | 'danger' | 'quiet' = '',
): Html {
  return html`<a class="button ${style}" href="/console${to}">${label}</a>`
}

/** An ID with a button that copies it. */
export function copyableId(id: string): Html {
  return html`<span class="id">${code(id)}${copyButton(id, 'id')}</span>`
}

/** The last 12 characters. The first ones of a UUIDv7 are the time, which neighbors share. */
export function shortId(id: string): string {
  return id.slice(-12)
}

export function code(text: string): Html {
  return html`<code>${text}</code>`
}

/** Copies a text. Hidden without JavaScript. */
export function copyButton(text: string, what: string): Html {
  return html`<button
    type="button"
    class="copy icon"
    data-copy="${text}"
    aria-label="Copy the ${what}"
  >${icon('copy')}</button>`
}

/** Code with a button that copies `text`. `label` names it for screen readers; `content` may be marked up. */
export function codeBlock(text: string, label: string, content: Content = text): Html {
  return codeFrame(label, content, copyButton(text, label))
}

/** A relative time, with the exact time in UTC as tooltip. */
export function timeElement(at: number | null, now: Date, never = 'Never'): Content {
  if (at === null) return html`<span class="muted">${never}</span>`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${utc(at)}">${relative(at - now.getTime())}</time>`
}

/** The time until `at`, counted down while the page is open. */
export function countdownTo(at: number, now: Date): Html {
  const iso = new Date(at).toISOString()
  const text = remaining(at - now.getTime())
  return html`<time datetime="${iso}" title="${utc(at)}" data-countdown>${text}</time>`
}

/** A surface with a title. */
export function card(
  title: Content,
  body: Content,
  { actions, id }: { actions?: Content; id?: string } = {},
): Html {
  const head = html`<header class="card-head">
${title && html`<h2>${title}</h2>`}
${actions && html`<div class="actions">${actions}</div>`}
</header>`
  return html`<section class="card"${id && html` id="${id}"`}>
${(title || actions) && head}
${body}
</section>`
}

export interface Column {
  label: Content
  /** Right-aligned. */
  isNumber?: boolean
  /** The heading is for screen readers only. */
  isHidden?: boolean
  /** The label of its cells on narrow screens. Needed when `label` is not a string. */
  name?: string
  sort?: 'ascending' | 'descending'
}

/** A table in a card. Under 640 px each row becomes a block of labeled cells. */
export function table(
  columns: (Column | string)[],
  rows: { id?: string; cells: Content[]; to?: string }[],
  { label }: { label: string },
): Html {
  const all: Column[] = columns.map((column) =>
    typeof column === 'string' ? { label: column } : column,
  )
  return html`<div class="table-frame" role="region" aria-label="${label}" tabindex="0">
<table>
<thead><tr>${all.map(columnHeading)}</tr></thead>
<tbody>${rows.map(
    ({ id, cells }) =>
      html`<tr${id && html` id="${id}"`}>${cells.map((cell, index) => {
        const column = all[index]
        const name =
          column?.name ??
          (typeof column?.label === 'string' && !column.isHidden ? column.label : '')
        return html`<td${column?.isNumber && html` class="number"`} data-label="${name}">${cell}</td>`
      })}</tr>`,
  )}</tbody>
</table>
</div>`
}

function columnHeading({ label, isNumber, isHidden, sort }: Column): Html {
  const attributes = [isNumber && html` class="number"`, sort && html` aria-sort="${sort}"`]
  const content = isHidden ? html`<span class="visually-hidden">${label}</span>` : label
  return html`<th scope="col"${attributes}>${content}</th>`
}

/** An empty list: its purpose, and how to start. */
export function empty(title: string, text: Content, action?: Content): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`
}

export function facts(rows: [string, Content][]): Html {
  const items = rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)
  return html`<dl class="facts">${items}</dl>`
}

/** Figures in one strip. */
export function stats(
  items: { label: string; value: Content; note?: Content; chart?: Content }[],
): Html {
  return html`<dl class="stats">${items.map(
    ({ label, value, note, chart }) => html`<div class="stat">
<dt>${label}</dt>
<dd class="stat-value">${value}</dd>
${note && html`<dd class="stat-note">${note}</dd>`}
${chart && html`<dd class="stat-chart">${chart}</dd>`}
</div>`,
  )}</dl>`
}

const BARS_HEIGHT = 28

/** Small stacked bars. `label` is the text for screen readers. */
export function bars(columns: { value: number; tone: Tone }[][], label: string): Html {
  const totals = columns.map((parts) => parts.reduce((sum, { value }) => sum + value, 0))
  const most = Math.max(1, ...totals)
  const width = 100 / columns.length
  const drawn = columns.map((parts, index) => {
    let y = BARS_HEIGHT
    return parts.map(({ value, tone }) => {
      if (value === 0) return false
      // Small values stay visible.
      const height = Math.max(2, (value / most) * (BARS_HEIGHT - 4))
      y -= height
      return html`<rect
  class="${tone}"
  x="${(index * width).toFixed(2)}%"
  y="${y.toFixed(1)}"
  width="${(width * 0.7).toFixed(2)}%"
  height="${height.toFixed(1)}"/>`
    })
  })
  const baseline = BARS_HEIGHT - 0.5
  return html`<svg class="bars" width="100%" height="${BARS_HEIGHT}" role="img" aria-label="${label}">
<title>${label}</title>
<line x1="0" x2="100%" y1="${baseline}" y2="${baseline}"/>
${drawn}
</svg>`
}

export function note(tone: Tone, text: Content): Html {
  return html`<p class="note ${tone}"${tone === 'bad' && html` role="alert"`}>${text}</p>`
}

interface ActionOptions {
  /** Below /console. */
  to: string
  label: Content
  style?: '' | 'primary' | 'danger' | 'quiet'
  fields?: Record<string, string>
  /** The ID of the element that htmx replaces. Without it, the browser opens the next page. */
  target?: string
}

/** A form with one button and hidden fields. */
export function action({ to, label, style = '', fields = {}, target }: ActionOptions): Html {
  const url = `/console${to}`
  const htmx = target && inPlace('post', url, target)
  const inputs = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return html`<form class="action" method="post" action="${url}"${htmx}>
${inputs}
${button(label, style)}
</form>`
}

/** htmx attributes that replace the element `target` with its new version. */
export function inPlace(method: 'get' | 'post', address: string, target: string): Html {
  return html` hx-${method}="${address}"
  hx-target="#${target}"
  hx-select="#${target}"
  hx-swap="outerHTML ignoreTitle:true"
  hx-select-oob="#toast"`
}

/** Marks automatic requests, so that they do not consume the notice for the user's next page. */
export const POLL = html` hx-headers='{"Muster-Poll":"1"}'`

/** htmx attributes that refresh the element with the ID `target` every `seconds`. */
export function live(address: string, target: string, seconds: number): Html {
  return html` hx-get="${address}"
  hx-trigger="every ${seconds}s"
  hx-target="#${target}"
  hx-select="#${target}"
  hx-swap="outerHTML"${POLL}`
}

/** A button that opens a confirmation dialog. Works without JavaScript. */
export function confirmed(
  label: Content,
  question: { title: string; text: Content; body: Content; style?: 'danger' | 'quiet' | '' },
): Html {
  const id = `ask-${randomUUID().slice(0, 8)}`
  const { title, text, body, style = 'danger' } = question
  return html`<button type="button" class="button ${style}" popovertarget="${id}">${label}</button>
<div class="ask" id="${id}" popover role="dialog" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
<p>${text}</p>
<div class="form-actions">
${body}
<button
  type="button"
  class="button quiet"
  popovertarget="${id}"
  popovertargetaction="hide"
>Cancel</button>
</div>
</div>`
}

export function tabs(
  label: string,
  items: { label: Content; to: string; isCurrent: boolean }[],
): Html {
  return html`<nav class="tabs" aria-label="${label}">${items.map(
    ({ label, to, isCurrent }) =>
      html`<a href="/console${to}"${isCurrent && html` aria-current="page"`}>${label}</a>`,
  )}</nav>`
}

/** Links to the previous and the next page, as far as they exist. */
export function pager({
  previous,
  next,
  note: text,
}: {
  previous?: string
  next?: string
  note?: Content
}): Html {
  if (!previous && !next && !text) return html``
  const link = (to: string | undefined, label: string): Content =>
    to !== undefined && buttonLink(to, label)
  return html`<nav class="pager" aria-label="Pages">
<span class="muted">${text}</span>
<span class="actions">
${link(previous, 'Previous')}
${link(next, 'Next')}
</span>
</nav>`
}
