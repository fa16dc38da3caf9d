/** Components of the console's pages. */
import { randomUUID } from 'node:crypto'
import { codeFrame } from '../shared/code-block.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { relative, remaining } from './client/times.js'
import { absoluteTime } from './format.ts'
import { icon } from './icons.ts'

type ButtonStyle = '' | 'primary' | 'danger' | 'quiet'
export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | 'quiet'

/** A state, shown by colour and by a word. */
export function pill(tone: Tone, label: Content): Html {
  return html`<span class="pill ${tone}">${label}</span>`
}

export function button(label: Content, style: ButtonStyle = '', title?: string): Html {
  return html`<button class="button ${style}"${title && html` title="${title}"`}>${label}</button>`
}

/** The Enter key presses the first button of a form, also one that chooses a record. So this hidden
 *  button, which sends the form, comes before all others. */
export function enterButton(label: string): Html {
  return html`<button class="visually-hidden" tabindex="-1" aria-hidden="true">${label}</button>`
}

/** A link that looks like a button. `to` is below /console. */
export function buttonLink(to: string, label: Content, style: ButtonStyle = ''): Html {
  return html`<a class="button ${style}" href="/console${to}">${label}</a>`
}

export function copyableId(id: string, what = 'ID'): Html {
  return html`<span class="id">${code(id)}${copyButton(id, what)}</span>`
}

export function copyableShortId(id: string): Html {
  const text = html`<code title="${id}">${shortId(id)}</code>`
  return html`<span class="id">${text}${copyButton(id, 'ID')}</span>`
}

/** The last 12 characters. A UUIDv7 begins with its time, so the first characters of many IDs are
 *  equal. */
export function shortId(id: string): string {
  return id.slice(-12)
}

export function code(text: string): Html {
  return html`<code>${text}</code>`
}

/** Descriptions in the contract mark code with backticks. */
export function withCode(text: string): Content {
  return text.split('`').map((part, index) => (index % 2 === 1 ? code(part) : part))
}

/** Hidden without JavaScript. */
export function copyButton(text: string, what: string): Html {
  return html`<button
    type="button"
    class="copy icon"
    data-copy="${text}"
    aria-label="Copy the ${what}"
  >${icon('copy')}</button>`
}

/** Shows `content`, which may be HTML, as code with a button that copies `text`. `label` names both
 *  for screen readers. */
export function codeBlock(text: string, label: string, content: Content = text): Html {
  return codeFrame(label, content, copyButton(text, label))
}

/** Shown in place of a missing value. */
export const NO_VALUE = html`<span class="muted none">–</span>`

/** A relative time, with the exact time as tooltip. */
export function timeElement(at: number | null, now: Date): Content {
  if (at === null) return html`<span class="muted">Never</span>`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${absoluteTime(at)}">${relative(at - now.getTime())}</time>`
}

/** The time until `at`, counted down while the page is open. */
export function countdownTo(at: number, now: Date): Html {
  const iso = new Date(at).toISOString()
  const text = remaining(at - now.getTime())
  return html`<time datetime="${iso}" title="${absoluteTime(at)}" data-countdown>${text}</time>`
}

/** A surface with a title. `actions` are right of the title. */
export function card(title: Content, body: Content, actions?: Content): Html {
  const head = html`<header class="card-head">
    ${title && html`<h2>${title}</h2>`}
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>`
  return html`<section class="card">
    ${(title || actions) && head}
    ${body}
  </section>`
}

export type Column = string | ColumnOptions

export interface ColumnOptions {
  label: Content
  /** Right-aligned. */
  isNumber?: boolean
  /** Texts that may be cut off, so that the table fits. */
  isText?: boolean
  /** The heading is for screen readers only. */
  isHidden?: boolean
  /** The label of the column's cells on narrow screens. Needed when `label` is not a string. */
  name?: string
  sort?: 'ascending' | 'descending'
}

export function numberColumn(label: string): Column {
  return { label, isNumber: true }
}

/** A table, to be the body of a `card`. Under 640 px each row becomes a block of labelled cells, or of few lines
 *  with the class `entries`: see client/media.css. */
export function table(
  label: string,
  columns: Column[],
  rows: { id?: string; cells: Content[] }[],
  className = '',
): Html {
  const body = rows.map(
    ({ id, cells }) => html`<tr${id && html` id="${id}"`}>${tableCells(columns, cells)}</tr>`,
  )
  return tableFrame(label, columns, html`<tbody>${body}</tbody>`, className)
}

/** A table whose `tbody` elements the caller writes. Their rows consist of `tableCells`. */
export function tableFrame(
  label: string,
  columns: Column[],
  bodies: Content,
  className = '',
): Html {
  return html`<div class="table-frame" role="region" aria-label="${label}" tabindex="0">
    <table class="${className}">
      <thead><tr>${columns.map(columnHeading)}</tr></thead>
      ${bodies}
    </table>
  </div>`
}

function columnHeading(column: Column): Html {
  const { label, isHidden, sort } = toOptions(column)
  const attributes = [columnClass(column), sort && html` aria-sort="${sort}"`]
  const content = isHidden ? html`<span class="visually-hidden">${label}</span>` : label
  return html`<th scope="col"${attributes}>${content}</th>`
}

export function tableCells(columns: Column[], cells: Content[]): Html[] {
  return cells.map((cell, index) => {
    const column = columns[index] ?? ''
    const { label, name, isHidden, isText } = toOptions(column)
    const shownLabel = name ?? (typeof label === 'string' && !isHidden ? label : '')
    const content = isText ? html`<div class="fit">${cell}</div>` : cell
    return html`<td${columnClass(column)} data-label="${shownLabel}">${content}</td>`
  })
}

function columnClass(column: Column): Content {
  const { isNumber, isText } = toOptions(column)
  if (isNumber) return html` class="number"`
  return isText && html` class="text"`
}

function toOptions(column: Column): ColumnOptions {
  return typeof column === 'string' ? { label: column } : column
}

export function twoLines(first: Content, second: Content, className = ''): Html {
  return html`<span class="two-lines ${className}">
    <span>${first}</span>
    ${second && html`<small class="muted">${second}</small>`}
  </span>`
}

/** Shown in place of an empty list, for example with its purpose and how to start. */
export function empty(title: string, text: Content, action?: Content): Html {
  return html`<div class="empty"><h2>${title}</h2>${text && html`<p>${text}</p>`}${action}</div>`
}

export type Fact = [name: string, value: Content] | false

export function facts(rows: Fact[]): Html {
  const items = rows.map((row) => row && html`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`)
  return html`<dl class="facts">${items}</dl>`
}

interface ActionRow {
  title?: string
  text: Content
  control: Html
}

export function actionRow({ title, text, control }: ActionRow): Html {
  return html`<div>
    <div>
      ${title !== undefined && html`<h3>${title}</h3>`}
      <p>${text}</p>
    </div>
    ${control}
  </div>`
}

export function actionRows(rows: Content[]): Html {
  return html`<div class="action-rows card-body">${rows}</div>`
}

export interface Stat {
  label: string
  value: Content
  note?: Content
  chart?: Content
}

export function stats(items: Stat[]): Html {
  const figures = items.map(
    ({ label, value, note, chart }) => html`<div class="stat">
      <dt>${label}</dt>
      <dd class="stat-value">${value}</dd>
      ${note && html`<dd class="stat-note">${note}</dd>`}
      ${chart && html`<dd class="stat-chart">${chart}</dd>`}
    </div>`,
  )
  return html`<dl class="stats">${figures}</dl>`
}

export function note(tone: Tone, text: Content): Html {
  return html`<p class="note ${tone}"${tone === 'bad' && html` role="alert"`}>${text}</p>`
}

interface ActionOptions {
  /** Below /console. */
  to: string
  label: Content
  /** The effect of the button, if its label does not say enough. */
  title?: string
  style?: ButtonStyle
  fields?: Record<string, string>
  /** The ID of the element that changes: see client/submit.js. Without it, the browser opens the
   *  next page. */
  target?: string
}

export function actionForm(options: ActionOptions): Html {
  const { to, label, title, style = '', fields = {}, target } = options
  const inPlace = target && html` data-target="${target}"`
  return html`<form class="action" method="post" action="/console${to}"${inPlace}>
    ${Object.entries(fields).map(([name, value]) => hiddenInput(name, value))}
    ${button(label, style, title)}
  </form>`
}

export function hiddenInput(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`
}

interface Confirmation {
  title: string
  text: Content
  /** The form with the button that confirms. */
  body: Content
  /** How the button that opens the dialog looks. */
  openStyle?: ButtonStyle
}

/** A button that opens a confirmation dialog. Works without JavaScript. */
export function confirmButton(
  label: Content,
  { title, text, body, openStyle = 'danger' }: Confirmation,
): Html {
  const id = `ask-${randomUUID().slice(0, 8)}`
  const openButton = html`<button
    type="button"
    class="button ${openStyle}"
    popovertarget="${id}"
  >${label}</button>`
  return html`${openButton}
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
        >Close</button>
      </div>
    </div>`
}

export function tabs(
  label: string,
  items: { label: Content; to: string; isCurrent: boolean }[],
): Html {
  const links = items.map(({ label, to, isCurrent }) => {
    const current = isCurrent && html` aria-current="page"`
    return html`<a href="/console${to}"${current}>${label}</a>`
  })
  return html`<nav class="tabs" aria-label="${label}">${links}</nav>`
}

interface PagerOptions {
  /** The path, below /console. Undefined if there is no such page. */
  previous?: string
  /** Like `previous`. */
  next?: string
  note?: Content
}

export function pager({ previous, next, note }: PagerOptions): Html {
  if (!previous && !next && !note) return html``
  return html`<nav class="pager" aria-label="Pages">
    <span class="muted">${note}</span>
    <span class="actions">
      ${previous !== undefined && buttonLink(previous, 'Previous')}
      ${next !== undefined && buttonLink(next, 'Next')}
    </span>
  </nav>`
}
