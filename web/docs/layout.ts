/** What every page has around it. */

import type { Deprecation, Operation } from '../../scripts/model/operations.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import type { Api, ApiResource } from './api.ts'
import type { Guide } from './guides.ts'
import { renderMarkdown } from './markdown.ts'
import type { Page, PageContext } from './site.ts'

export interface Navigation {
  api: Api
  guides: Guide[]
}

interface Layout {
  id: string
  page: Page
  context: PageContext
  navigation: Navigation
  /** Of the assets. */
  folder: string
  /** Of every page's address. */
  suffix: string
}

/** A page as it is sent. There is nothing in it that a strict Content-Security-Policy forbids: no script or style within. */
export function layout({ id, page, context, navigation, folder, suffix }: Layout): string {
  const up = '../'.repeat(id.split('/').length - 1)
  const asset = (name: string) => `${up}${folder}/${name}`
  const isStatic = context.options.edition === 'static'
  return `<!doctype html>\n${html`<html lang="en" data-up="${up || './'}" data-suffix="${suffix}">
<head>
<meta charset="utf-8">
${isStatic && html`<meta http-equiv="Content-Security-Policy" content="${POLICY}">\n`}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${id === 'index' ? context.api.title : `${page.title} · ${context.api.title}`}</title>
<meta name="description" content="${page.summary}">
<link rel="icon" href="${asset('icon.svg')}" type="image/svg+xml">
<link rel="preload" href="${asset('geist.woff2')}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="${asset('tokens.css')}">
<link rel="stylesheet" href="${asset('docs.css')}">
<script src="${asset('theme.js')}"></script>
<script type="module" src="${asset('docs.js')}"></script>
${(page.scripts ?? []).map((name) => html`<script type="module" src="${asset(name)}"></script>\n`)}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<button type="button" class="icon-button menu-button" popovertarget="menu" aria-label="Menu"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2 4h12M2 8h12M2 12h12"/></svg></button>
<a class="brand" href="${context.link('index')}"><img src="${asset('icon.svg')}" alt="" width="20" height="20">${context.api.title}</a>
<button type="button" class="search-button" data-search aria-haspopup="dialog"><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/></svg><span>Search</span><kbd aria-hidden="true">/</kbd></button>
<button type="button" class="icon-button theme-button" data-theme-toggle aria-label="Dark theme" aria-pressed="false"><svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6"/><path class="filled" d="M8 2a6 6 0 0 1 0 12z"/></svg></button>
</header>
<div class="frame">
<nav class="side" id="menu" popover aria-label="Documentation">${side(id, context, navigation)}</nav>
<main id="main" tabindex="-1"${page.isWide && html` class="wide"`}>
${page.crumbs && html`<p class="crumbs">${page.crumbs}</p>`}
${id !== 'index' && html`<h1>${page.title}</h1>`}
${contents(page)}
${page.body}
</main>
</div>
${searchDialog}
</body>
</html>`}\n`
}

/** Beside what is here, a header can forbid to put pages into frames; a page itself cannot. */
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'"

const searchDialog = html`<dialog class="search" aria-label="Search">
<form method="dialog" role="search"><input type="search" role="combobox" aria-expanded="true" aria-controls="results" aria-autocomplete="list" aria-label="Search the documentation" placeholder="Operations, events, fields, guides …" autocomplete="off" spellcheck="false"><button class="small" value="close">Close</button></form>
<ul id="results" role="listbox" aria-label="Results"></ul>
<p class="search-note" role="status"></p>
</dialog>`

/** For pages with sections that are worth a list. */
function contents({ headings = [] }: Page): Content {
  const sections = headings.filter(({ level }) => level === 2)
  if (sections.length < 3) return undefined
  return html`<nav class="contents" aria-label="On this page"><ul class="contents-list">${sections.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}</ul></nav>`
}

function side(id: string, context: PageContext, { api, guides }: Navigation): Html {
  const item = (target: string, label: Content): Html =>
    html`<li><a href="${context.link(target)}"${target === id && html` aria-current="page"`}>${label}</a></li>`
  const guideItems = (group: Guide['group']) =>
    guides.filter((guide) => guide.group === group).map((guide) => item(guide.id, guide.title))
  const group = (title: string, items: Content): Html => html`<h2>${title}</h2><ul>${items}</ul>`
  const inside = guideItems('inside')
  const others = api.events.filter(({ resource }) => !resource)
  return html`
${group('Guides', guideItems('guides'))}
${group('API', [item('api', 'In short'), ...api.resources.map((resource) => resourceItem(id, resource, item)), item('schemas', 'Schemas')])}
${group('Events', [
  item('webhooks', 'In short'),
  ...api.resources
    .filter(({ events }) => events.length > 0)
    .map((resource) => eventsItem(id, resource, item)),
  ...others.map(({ type }) => item(`events/${type}`, eventName(type))),
])}
${inside.length > 0 && group('Under the hood', inside)}
${group('More', [
  ...guideItems('changelog'),
  ...['openapi.yaml', 'asyncapi.yaml'].map(
    (name) => html`<li><a href="${context.contractLink(name)}" download>${name}</a></li>`,
  ),
])}`
}

type Item = (target: string, label: Content) => Html

function resourceItem(id: string, { slug, name, operations }: ApiResource, item: Item): Html {
  const isOpen =
    id === `resources/${slug}` ||
    operations.some((operation) => id === `operations/${operation.id}`)
  return html`<li><details${isOpen && html` open`}><summary>${name}</summary><ul>
${item(`resources/${slug}`, 'Overview')}
${operations.map((operation) => item(`operations/${operation.id}`, html`${methodOf(operation)} ${operation.summary}`))}
</ul></details></li>`
}

function eventsItem(id: string, { name, events }: ApiResource, item: Item): Html {
  const isOpen = events.some(({ type }) => id === `events/${type}`)
  return html`<li><details${isOpen && html` open`}><summary>${name}</summary><ul>
${events.map(({ type }) => item(`events/${type}`, eventName(type)))}
</ul></details></li>`
}

/** With a place where a long one may break. */
function eventName(type: string): Html {
  const [resource, action] = type.split('.')
  return html`<code>${resource}.<wbr>${action}</code>`
}

export function methodOf({ method }: Pick<Operation, 'method'>): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`
}

export function deprecationNote(deprecation: Deprecation | null): Content {
  if (!deprecation) return undefined
  const { since, sunset } = deprecation
  const day = (when: string) => html`<time datetime="${when}">${when}</time>`
  return html`<p class="note warn"><strong>Deprecated</strong> since ${day(since)}: do not begin to use it.${sunset !== null && html` From ${day(sunset)} on it may be gone.`}</p>`
}

/** The first sentence of the first paragraph of Markdown, as plain text. */
export function firstSentence(markdown: string): string {
  const [first = ''] = markdown
    .trim()
    .split(/\n\s*\n/)
    .filter((block) => !block.startsWith('#'))
  const text = renderMarkdown(first)
    .body.text.replace(/<[^>]*>/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  return /^.*?[.!?](?= |$)/.exec(text)?.[0] ?? text
}
