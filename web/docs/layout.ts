/** The parts that every page has: head, header, navigation and search. */
import { type Content, type Html, html, raw } from '../shared/html.ts'
import type { Api, ApiResource } from './api.ts'
import type { Guide } from './guides.ts'
import type { DocsPage, PageContext } from './page.ts'
import { methodBadge } from './parts.ts'

interface Layout {
  id: string
  page: DocsPage
  context: PageContext
  /** The path of the assets, relative to the site. */
  folder: string
  /** The end of the URL of every page: empty or `.html`. */
  suffix: string
  /** The file of the page's Markdown, in the same folder. Undefined if the page has no Markdown. */
  markdownName: string | undefined
}

/** The Content-Security-Policy of all pages. Static pages have it in a `meta` element, which cannot
 *  forbid frames (`frame-ancestors`). */
export const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
].join('; ')

const MIN_CONTENTS_SECTIONS = 3

/** The complete HTML of a page. `DOCS_POLICY` forbids inline scripts and styles. */
export function renderLayout(layout: Layout): string {
  const { id, page, context, folder, suffix, markdownName } = layout
  const up = '../'.repeat(id.split('/').length - 1)
  const asset = (name: string) => `${up}${folder}/${name}`
  return `<!doctype html>\n${html`<html lang="en" data-up="${up || './'}" data-suffix="${suffix}">
    ${head(layout, asset)}
    <body>
      <a class="skip" href="#main">Skip to the content</a>
      ${header(context, asset)}
      <div class="frame">
        <nav class="side" id="menu" popover aria-label="Documentation">
          ${navigation(id, context)}
        </nav>
        <main id="main" tabindex="-1"${page.isWide && html` class="wide"`}>
          ${page.crumbs && html`<p class="crumbs">${page.crumbs}</p>`}
          ${id !== 'index' && html`<h1>${page.title}</h1>`}
          ${contents(page)}
          ${page.body}
          ${markdownName && html`<p class="quiet"><a href="${markdownName}">This page as Markdown</a></p>`}
        </main>
      </div>
      ${SEARCH_DIALOG}
    </body>
  </html>`}\n`
}

function head(
  { id, page, context: { api, options }, markdownName }: Layout,
  asset: (name: string) => string,
): Html {
  return html`<head>
    <meta charset="utf-8">
    ${options.edition === 'static' && STATIC_POLICY}
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${id === 'index' ? api.title : `${page.title} · ${api.title}`}</title>
    <meta name="description" content="${page.summary}">
    ${markdownName && html`<link rel="alternate" href="${markdownName}" type="text/markdown">`}
    <link rel="icon" href="${asset('icon.svg')}" type="image/svg+xml">
    <link rel="preload" href="${asset('geist.woff2')}" as="font" type="font/woff2" crossorigin>
    <link rel="stylesheet" href="${asset('docs.css')}">
    <script src="${asset('theme.js')}"></script>
    <script type="module" src="${asset('docs.js')}"></script>
    ${page.scripts?.map((name) => html`<script type="module" src="${asset(name)}"></script>\n`)}
  </head>`
}

const STATIC_POLICY = html`<meta http-equiv="Content-Security-Policy" content="${DOCS_POLICY}">`
const MENU_ICON = icon('<path d="M2 4h12M2 8h12M2 12h12"/>')
const SEARCH_ICON = icon('<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>')
const THEME_ICON = icon(
  '<circle cx="8" cy="8" r="6"/><path class="filled" d="M8 2a6 6 0 0 1 0 12z"/>',
)

function icon(shapes: string): Html {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true">${raw(shapes)}</svg>`
}

function header(context: PageContext, asset: (name: string) => string): Html {
  return html`<header class="bar">
    <button type="button" class="button icon-button menu-button" popovertarget="menu" aria-label="Menu">
      ${MENU_ICON}
    </button>
    <a class="brand" href="${context.link('index')}">
      <img src="${asset('icon.svg')}" alt="" width="20" height="20">
      ${context.api.title}
    </a>
    ${context.options.edition === 'server' && html`<a class="button" href="${context.rootLink}console">Console</a>`}
    <button type="button" class="button search-button" data-search aria-haspopup="dialog">
      ${SEARCH_ICON}
      <span>Search</span>
      <kbd aria-hidden="true">/</kbd>
    </button>
    <button type="button" class="button icon-button theme-button" data-theme-toggle
      aria-label="Dark theme" aria-pressed="false">
      ${THEME_ICON}
    </button>
  </header>`
}

const SEARCH_DIALOG = html`<dialog class="search" aria-label="Search">
  <form method="dialog" role="search">
    <input type="search" role="combobox" aria-expanded="true" aria-controls="results" aria-autocomplete="list"
      aria-label="Search the documentation" placeholder="Operations, events, fields, guides …"
      autocomplete="off" spellcheck="false">
    <button class="button" value="close">Close</button>
  </form>
  <ul id="results" role="listbox" aria-label="Results"></ul>
  <p class="search-note" role="status"></p>
</dialog>`

/** Links to the sections of a long page. */
function contents({ headings = [] }: DocsPage): Content {
  const sections = headings.filter(({ level }) => level === 2)
  if (sections.length < MIN_CONTENTS_SECTIONS) return undefined
  return html`<nav class="contents" aria-label="On this page">
    <ul class="contents-list">
      ${sections.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`)}
    </ul>
  </nav>`
}

/** An entry of the navigation: a link to the page `target`. */
type Item = (target: string, label: Content) => Html

function navigation(currentId: string, context: PageContext): Html {
  const { api, guides } = context
  const item: Item = (target, label) => {
    const current = target === currentId && html` aria-current="page"`
    return html`<li><a href="${context.link(target)}"${current}>${label}</a></li>`
  }
  const guideItems = (group: Guide['group']) =>
    guides.filter((guide) => guide.group === group).map((guide) => item(guide.id, guide.title))
  const internals = guideItems('internals')
  return html`${section('Guides', guideItems('guides'))}
    ${section('API', [
      item('api', 'Overview'),
      ...api.resources.map((resource) => operationItems(currentId, resource, item)),
      item('schemas', 'Schemas'),
    ])}
    ${section('Events', eventItems(currentId, api, item))}
    ${internals.length > 0 && section('Internals', internals)}
    ${section('More', [
      ...guideItems('changelog'),
      ...context.contractNames
        // The YAML files are those that people write.
        .filter((name) => name.endsWith('.yaml'))
        .map((name) => html`<li><a href="${context.contractLink(name)}" download>${name}</a></li>`),
    ])}`
}

function section(title: string, items: Content): Html {
  return html`<h2>${title}</h2>
    <ul>
      ${items}
    </ul>`
}

function operationItems(
  currentId: string,
  { slug, name, operations }: ApiResource,
  item: Item,
): Html {
  const pages = [
    `resources/${slug}`,
    ...operations.map((operation) => `operations/${operation.id}`),
  ]
  return group(name, pages.includes(currentId), [
    item(`resources/${slug}`, 'Overview'),
    ...operations.map((operation) =>
      item(`operations/${operation.id}`, html`${methodBadge(operation)} ${operation.summary}`),
    ),
  ])
}

function eventItems(currentId: string, { resources, events }: Api, item: Item): Content[] {
  const eventItem = ({ type }: { type: string }) => item(`events/${type}`, eventName(type))
  return [
    item('webhooks', 'Overview'),
    ...resources
      .filter((resource) => resource.events.length > 0)
      .map((resource) => {
        const isOpen = resource.events.some(({ type }) => currentId === `events/${type}`)
        return group(resource.name, isOpen, resource.events.map(eventItem))
      }),
    ...events.filter(({ resource }) => !resource).map(eventItem),
  ]
}

function group(name: string, isOpen: boolean, items: Content): Html {
  return html`<li>
    <details${isOpen && html` open`}>
      <summary>${name}</summary>
      <ul>
        ${items}
      </ul>
    </details>
  </li>`
}

/** A long name can break after its dot. */
function eventName(type: string): Html {
  const [resource, action] = type.split('.')
  return html`<code>${resource}.<wbr>${action}</code>`
}
