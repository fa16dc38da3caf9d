/** The parts that pages are made of. */
import { randomUUID } from 'node:crypto'
import { Refused } from '../../errors.ts'
import { codeFrame } from '../shared/code-block.ts'
import { type Content, type Html, html } from '../shared/html.ts'

export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | 'quiet'

/** A state: a tint, a dot and a word, so that it is never told by colour alone. */
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

/** An id, short and whole for those who ask. */
export function idOf(id: string): Html {
  return html`<span class="id">${code(id)}${copyButton(id, 'id')}</span>`
}

/** Without the beginning, which is the time and equal for neighbours. */
export function shortId(id: string): string {
  return id.slice(-12)
}

export function code(text: string): Html {
  return html`<code>${text}</code>`
}

/** Copies a text. Where there is no JavaScript it is not shown. */
export function copyButton(text: string, what: string): Html {
  return html`<button type="button" class="copy icon" data-copy="${text}" aria-label="Copy the ${what}">${icon('copy')}</button>`
}

/** Code with a button that copies `text`. `label` names it for screen readers; `content` may be marked up. */
export function codeBlock(text: string, label: string, content: Content = text): Html {
  return codeFrame(label, content, copyButton(text, label))
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long ago, or in how long, in words; the exact time in UTC for those who ask. */
export function timeOf(at: number | null, now: Date, never = 'Never'): Content {
  if (at === null) return html`<span class="muted">${never}</span>`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${utc(at)}">${relative(at - now.getTime())}</time>`
}

/** `2026-03-02 09:30:00 UTC`. */
export function utc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `12 min ago`, `in 5 s`. */
export function relative(ms: number): string {
  const size = Math.abs(ms)
  const text =
    size < 1_000
      ? 'now'
      : size < MINUTE
        ? `${Math.floor(size / 1_000)} s`
        : size < HOUR
          ? `${Math.floor(size / MINUTE)} min`
          : size < DAY
            ? `${Math.floor(size / HOUR)} h`
            : `${Math.floor(size / DAY)} d`
  if (text === 'now') return 'now'
  return ms < 0 ? `${text} ago` : `in ${text}`
}

/** In how long, to the second: it counts down while the page stays open. */
export function countdownTo(at: number, now: Date): Html {
  return html`<time datetime="${new Date(at).toISOString()}" title="${utc(at)}" data-countdown>${remaining(at - now.getTime())}</time>`
}

/** `in 4 min 12 s`, `in 2 h 5 min`. */
export function remaining(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 1) return 'now'
  if (ms < MINUTE) return `in ${seconds} s`
  if (ms < HOUR) return `in ${Math.floor(ms / MINUTE)} min ${seconds % 60} s`
  return ms < DAY
    ? `in ${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
    : `in ${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}

/** `8 ms`, `1.89 s`. */
export function duration(ms: number): string {
  return ms < 1_000
    ? `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
    : `${(ms / 1_000).toPrecision(3)} s`
}

/** `1,234`. */
export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `1 key`, `2 keys`. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : plural}`
}

export function bytes(size: number): string {
  return size < 1_024
    ? `${size} bytes`
    : size < 1_048_576
      ? `${(size / 1_024).toFixed(1)} KiB`
      : `${(size / 1_048_576).toFixed(1)} MiB`
}

/** A surface with a title. */
export function card(
  title: Content,
  body: Content,
  { actions, id }: { actions?: Content; id?: string } = {},
): Html {
  return html`<section class="card"${id && html` id="${id}"`}>${(title || actions) && html`<header class="card-head">${title && html`<h2>${title}</h2>`}${actions && html`<div class="actions">${actions}</div>`}</header>`}${body}</section>`
}

export interface Column {
  label: Content
  /** Numbers stand at the right. */
  isNumber?: boolean
  /** For the eye alone there is no heading: of buttons. */
  isHidden?: boolean
  /** What a narrow screen calls its cells, where the heading is more than a text. */
  name?: string
  /** How the rows are in order by it. */
  sort?: 'ascending' | 'descending'
}

/** A table in a card. Under 640 px each row becomes a block with its cells named. */
export function table(
  columns: (Column | string)[],
  rows: { id?: string; cells: Content[]; to?: string }[],
  { label }: { label: string },
): Html {
  const all = columns.map((column) => (typeof column === 'string' ? { label: column } : column))
  return html`<div class="table-frame" role="region" aria-label="${label}" tabindex="0"><table><thead><tr>${all.map(
    ({ label, isNumber, isHidden, sort }) =>
      html`<th scope="col"${isNumber && html` class="number"`}${sort && html` aria-sort="${sort}"`}>${isHidden ? html`<span class="visually-hidden">${label}</span>` : label}</th>`,
  )}</tr></thead><tbody>${rows.map(
    ({ id, cells }) =>
      html`<tr${id && html` id="${id}"`}>${cells.map((cell, index) => {
        const column = all[index]
        const name =
          column?.name ??
          (typeof column?.label === 'string' && !column.isHidden ? column.label : '')
        return html`<td${column?.isNumber && html` class="number"`} data-label="${name}">${cell}</td>`
      })}</tr>`,
  )}</tbody></table></div>`
}

/** Where there is nothing yet: what it is for, and how to begin. */
export function empty(title: string, text: Content, action?: Content): Html {
  return html`<div class="empty"><h2>${title}</h2><p>${text}</p>${action}</div>`
}

/** Facts by their names. */
export function facts(rows: [string, Content][]): Html {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** Figures in one joined strip. */
export function stats(
  items: { label: string; value: Content; note?: Content; chart?: Content }[],
): Html {
  return html`<dl class="stats">${items.map(
    ({ label, value, note, chart }) =>
      html`<div class="stat"><dt>${label}</dt><dd class="stat-value">${value}</dd>${note && html`<dd class="stat-note">${note}</dd>`}${chart && html`<dd class="stat-chart">${chart}</dd>`}</div>`,
  )}</dl>`
}

const BARS_HEIGHT = 28

/** Small bars side by side, each of parts on top of each other. `label` says it in words. */
export function bars(columns: { value: number; tone: Tone }[][], label: string): Html {
  const totals = columns.map((parts) => parts.reduce((sum, { value }) => sum + value, 0))
  const most = Math.max(1, ...totals)
  const width = 100 / columns.length
  const drawn = columns.map((parts, index) => {
    let y = BARS_HEIGHT
    return parts.map(({ value, tone }) => {
      if (value === 0) return false
      // What is there is seen, however little it is.
      const height = Math.max(2, (value / most) * (BARS_HEIGHT - 4))
      y -= height
      return html`<rect class="${tone}" x="${(index * width).toFixed(2)}%" y="${y.toFixed(1)}" width="${(width * 0.7).toFixed(2)}%" height="${height.toFixed(1)}"/>`
    })
  })
  return html`<svg class="bars" width="100%" height="${BARS_HEIGHT}" role="img" aria-label="${label}"><title>${label}</title><line x1="0" x2="100%" y1="${BARS_HEIGHT - 0.5}" y2="${BARS_HEIGHT - 0.5}"/>${drawn}</svg>`
}

export function note(tone: Tone, text: Content): Html {
  return html`<p class="note ${tone}"${tone === 'bad' && html` role="alert"`}>${text}</p>`
}

export type Errors = Record<string, string[]>

export interface FieldOptions {
  name: string
  label: Content
  /** Under the label, in a sentence. */
  hint?: Content
  value?: string
  errors?: Errors
  isRequired?: boolean
}

/** What a form says of a field: it is its label, then its input, then what is wrong with it. The ids join them for those who cannot see. */
export function field(
  { name, label, hint, errors = {}, isRequired }: FieldOptions,
  input: (attributes: Html) => Html,
): Html {
  const id = `field-${name.replace(/[^\w]/g, '-')}`
  const wrong = errors[name]
  const described = [hint && `${id}-hint`, wrong && `${id}-error`].filter(Boolean).join(' ')
  const attributes = html`id="${id}" name="${name}"${isRequired && html` required`}${described !== '' && html` aria-describedby="${described}"`}${wrong && html` aria-invalid="true"`}`
  return html`<div class="field"><label for="${id}">${label}${!isRequired && html` <span class="optional">optional</span>`}</label>${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}${input(attributes)}${wrong && html`<p class="field-error" id="${id}-error">${wrong.join(' ')}</p>`}</div>`
}

export function textField(
  options: FieldOptions & {
    type?: 'text' | 'email' | 'password' | 'url' | 'search' | 'number' | 'datetime-local'
    autocomplete?: string
    maxLength?: number
    placeholder?: string
  },
): Html {
  const { type = 'text', value = '', autocomplete = 'off', maxLength, placeholder } = options
  return field(
    options,
    (attributes) =>
      html`<input type="${type}" ${attributes} value="${type === 'password' ? '' : value}" autocomplete="${autocomplete}"${maxLength !== undefined && html` maxlength="${maxLength}"`}${placeholder && html` placeholder="${placeholder}"`}>`,
  )
}

/** A password, with a button that shows it; without JavaScript there is none. Whatever was typed does not come again. */
export function passwordField(
  options: FieldOptions & { autocomplete: 'current-password' | 'new-password' },
): Html {
  return field(
    { isRequired: true, ...options },
    (attributes) =>
      html`<span class="secret"><input type="password" ${attributes} autocomplete="${options.autocomplete}"><button type="button" class="button quiet" data-reveal>Show<span class="visually-hidden"> the password</span></button></span>`,
  )
}

/** What is wrong with each field: what its check throws as `Refused`. */
export function problemsOf(checks: Record<string, () => unknown>): Errors {
  const problems: Errors = {}
  for (const [name, check] of Object.entries(checks)) {
    try {
      check()
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      problems[name] = [/[.!?]$/.test(error.message) ? error.message : `${error.message}.`]
    }
  }
  return problems
}

export function textArea(options: FieldOptions & { rows?: number; isCode?: boolean }): Html {
  const { value = '', rows = 4, isCode } = options
  // The first line break after the tag is not part of the text.
  return field(
    options,
    (attributes) =>
      html`<textarea ${attributes} rows="${rows}"${isCode && html` class="mono" spellcheck="false"`}>\n${value}</textarea>`,
  )
}

export interface Choice {
  value: string
  label: string
  hint?: Content
}

export function selectField(options: FieldOptions & { choices: Choice[]; none?: string }): Html {
  const { value = '', choices, none } = options
  return field(
    options,
    (attributes) =>
      html`<select ${attributes}>${none !== undefined && html`<option value="">${none}</option>`}${choices.map(
        (choice) =>
          html`<option value="${choice.value}"${choice.value === value && html` selected`}>${choice.label}</option>`,
      )}</select>`,
  )
}

/** One or several of some choices, all in view. */
export function choiceField(options: {
  name: string
  legend: Content
  hint?: Content
  choices: Choice[]
  values: string[]
  isMultiple?: boolean
  errors?: Errors
}): Html {
  const { name, legend, hint, choices, values, isMultiple = false, errors = {} } = options
  const id = `field-${name.replace(/[^\w]/g, '-')}`
  return html`<fieldset class="field choices"${errors[name] && html` aria-describedby="${id}-error"`}><legend>${legend}</legend>${hint && html`<p class="hint">${hint}</p>`}${choices.map(
    (choice) =>
      html`<label class="choice"><input type="${isMultiple ? 'checkbox' : 'radio'}" name="${name}" value="${choice.value}"${values.includes(choice.value) && html` checked`}><span><span class="choice-label">${choice.label}</span>${choice.hint && html`<span class="hint">${choice.hint}</span>`}</span></label>`,
  )}${errors[name] && html`<p class="field-error" id="${id}-error">${errors[name].join(' ')}</p>`}</fieldset>`
}

interface FormOptions {
  /** Below /console. */
  to: string
  submit: string
  style?: 'primary' | 'danger' | ''
  /** Where to go back to without doing it. */
  cancel?: string
  /** What is wrong with all of it. */
  problem?: string
  errors?: Errors
}

/** A form that fills a page. What is wrong is said at its head and at each field. */
export function form(
  { to, submit, style = 'primary', cancel, problem, errors = {} }: FormOptions,
  fields: Content,
): Html {
  const wrong = Object.keys(errors).length > 0
  return html`<form class="form" method="post" action="/console${to}" novalidate>${(problem || wrong) && note('bad', problem ?? 'Some of this cannot be accepted. See below.')}${fields}<div class="form-actions">${button(submit, style)}${cancel !== undefined && buttonLink(cancel, 'Cancel', 'quiet')}</div></form>`
}

interface ActionOptions {
  /** Below /console. */
  to: string
  label: Content
  style?: '' | 'primary' | 'danger' | 'quiet'
  fields?: Record<string, string>
  /** The id of what changes in place; without it, or without JavaScript, the page that it leads to is shown. */
  target?: string
}

/** One button that does something. */
export function action({ to, label, style = '', fields = {}, target }: ActionOptions): Html {
  return html`<form class="action" method="post" action="/console${to}"${target && inPlace('post', `/console${to}`, target)}>${Object.entries(
    fields,
  ).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}${button(label, style)}</form>`
}

/** Attributes with which htmx puts the same piece of the page that comes in place of this one. */
export function inPlace(method: 'get' | 'post', address: string, target: string): Html {
  return html` hx-${method}="${address}" hx-target="#${target}" hx-select="#${target}" hx-swap="outerHTML ignoreTitle:true" hx-select-oob="#toast"`
}

/** What nobody asked for just now leaves the notice to the page that somebody did ask for. */
export const POLL = html` hx-headers='{"Muster-Poll":"1"}'`

/** Attributes of what brings itself up to date every so many seconds. The element needs the id `target`. */
export function live(address: string, target: string, seconds: number): Html {
  return html` hx-get="${address}" hx-trigger="every ${seconds}s" hx-target="#${target}" hx-select="#${target}" hx-swap="outerHTML"${POLL}`
}

/** A button that first asks. Works without JavaScript. */
export function confirmed(
  label: Content,
  question: { title: string; text: Content; body: Content; style?: 'danger' | 'quiet' | '' },
): Html {
  const id = `ask-${randomUUID().slice(0, 8)}`
  return html`<button type="button" class="button ${question.style ?? 'danger'}" popovertarget="${id}">${label}</button><div class="ask" id="${id}" popover role="dialog" aria-labelledby="${id}-title"><h2 id="${id}-title">${question.title}</h2><p>${question.text}</p><div class="form-actions">${question.body}<button type="button" class="button quiet" popovertarget="${id}" popovertargetaction="hide">Cancel</button></div></div>`
}

/** Links of which one is where one is. */
export function tabs(
  label: string,
  items: { label: Content; to: string; isCurrent: boolean }[],
): Html {
  return html`<nav class="tabs" aria-label="${label}">${items.map(
    ({ label, to, isCurrent }) =>
      html`<a href="/console${to}"${isCurrent && html` aria-current="page"`}>${label}</a>`,
  )}</nav>`
}

/** The page before and after, by a cursor or a number: what is there is a link. */
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
  return html`<nav class="pager" aria-label="Pages"><span class="muted">${text}</span><span class="actions">${link(previous, 'Previous')}${link(next, 'Next')}</span></nav>`
}

const ICONS: Record<string, string> = {
  overview: 'M2 9h4v5H2zM10 2h4v12h-4z',
  key: 'M10.5 2a3.5 3.5 0 1 1-3.2 4.9L2 12.2V14h2.5v-1.8h1.8v-1.8l1.9-1.9',
  webhook:
    'M8 5.5a2.5 2.5 0 1 0-2.2-1.3L4 9M4 9a2.5 2.5 0 1 0 2.4 3.3H11M11.6 12.5a2.5 2.5 0 1 0-.4-4L9 5',
  requests: 'M1.5 8H4l2-5 4 10 2-5h2.5',
  docs: 'M8 3.5C6.5 2.4 4 2.3 2 3v10c2-.7 4.500-.6 6 .5 1.500-1.100 4-1.200 6-.5V3c-2-.7-4.500-.6-6 .5zM8 3.500v10',
  people:
    'M6 7a2.5 2.5 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 14c0-2.500 2-4.500 4.500-4.500s4.500 2 4.500 4.500M10.500 2.200a2.500 2.500 0 0 1 0 4.600M12 9.900c1.500.7 2.500 2.200 2.500 4.100',
  audit: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 1.500',
  settings: 'M2 5h7M13 5h1M2 11h1M7 11h7M9 3.500v3M5 9.500v3',
  record: 'M3 2h10v12H3zM5.500 5h5M5.500 8h5M5.500 11h3',
  participants:
    'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 14c0-3 2.500-4.500 5.500-4.500s5.500 1.500 5.500 4.500',
  tasks: 'M2.500 2.500h11v11h-11zM5 8l2.200 2.200L11 6',
  jobs: 'M2 5h12v8.500H2zM5.500 5V2.500h5V5M2 9h12',
  'job-applications': 'M3 2h6l4 4v8H3zM9 2v4h4M5.500 10.500l1.500 1.500 3.500-3.500',
  exports: 'M8 2v8M5 7.500l3 3 3-3M2.500 11v3h11v-3',
  payments: 'M2 4h12v9H2zM2 7h12M4.500 10.500h3',
  theme: 'M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7z',
  menu: 'M2 4h12M2 8h12M2 12h12',
  copy: 'M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3',
  out: 'M6 2H2.500v12H6M10 5l3 3-3 3M13 8H6',
  arrow: 'M3 8h10M9.500 4.500 13 8l-3.500 3.500',
}

export function icon(name: string): Html {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name] ?? ICONS.record}"/></svg>`
}
