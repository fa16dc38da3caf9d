/** The documentation as a whole: which pages there are, and each of them when it is asked for. A function of the two contracts,
 *  docs/ and CHANGELOG.md alone: the same input gives the same bytes. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Html, html } from '../shared/html.ts'
import { type Api, readApi } from './api.ts'
import { type Guide, readGuides } from './guides.ts'
import { layout, type Navigation } from './layout.ts'
import { type Heading, type MarkdownOptions, type Rendered, renderMarkdown } from './markdown.ts'
import { eventPage } from './pages/event.ts'
import { guidePage } from './pages/guide.ts'
import { homePage } from './pages/home.ts'
import { operationPage } from './pages/operation.ts'
import { overviewPage } from './pages/overview.ts'
import { resourcePage } from './pages/resource.ts'
import { schemasPage } from './pages/schemas.ts'
import type { SchemaContext } from './schema.ts'
import { searchIndex } from './search.ts'

export interface SiteOptions {
  /** Where clients reach the service: for the samples. Without a slash at its end. */
  baseUrl: string
  /** `server`: beside the API, which readers can try from the page. `static`: for any host, with addresses that end in .html. */
  edition: 'server' | 'static'
  root?: string
}

export interface Site {
  /** Ids, such as `operations/listTasks`; `index` is the first page. */
  pages: readonly string[]
  /** The HTML of a page. Undefined for an id that is not among `pages`. */
  page(id: string): string | undefined
  /** A page that says that there is none, to be shown at `path`. */
  notFound(path: string): string
  /** What pages load, by path relative to the site, such as `assets/3f2a…/docs.css`. */
  assets: ReadonlyMap<string, Asset>
  /** The contracts, by name, such as `openapi.yaml`. */
  contracts: ReadonlyMap<string, Asset>
}

export interface Asset {
  type: string
  bytes: Buffer
}

/** What the parts of a page are made with. */
export interface PageContext extends SchemaContext {
  options: SiteOptions
  guides: Guide[]
  /** The address of a page from this one. Throws for a page that does not exist. */
  link(id: string, fragment?: string): string
  /** The address of a contract's file. */
  contractLink(name: string): string
  /** Markdown in which the names of operations and events lead to their pages. */
  render(text: string, options?: Pick<MarkdownOptions, 'resolve' | 'readCode'>): Rendered
  /** The address of the service's root, from this page. Only where the edition is `server`. */
  rootLink: string
}

export interface Page {
  title: string
  /** For search engines and for the list of search results. */
  summary: string
  body: Html
  /** Links to what it belongs to. */
  crumbs?: Html
  headings?: Heading[]
  /** Scripts beside the one that every page has. */
  scripts?: string[]
  /** Has a second column of its own. */
  isWide?: boolean
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
  yaml: 'application/yaml',
}
/** In the order of the cascade. */
const STYLESHEETS = ['base', 'frame', 'home', 'reference', 'code', 'try', 'search', 'media'].map(
  (name) => `web/docs/client/${name}.css`,
)
const ASSETS: Record<string, string | string[]> = {
  'tokens.css': 'web/shared/tokens.css',
  'docs.css': STYLESHEETS,
  'theme.js': 'web/docs/client/theme.js',
  'docs.js': 'web/docs/client/docs.js',
  'try.js': 'web/docs/client/try.js',
  'search.js': 'web/docs/client/search.js',
  'search-words.js': 'web/docs/client/search-words.js',
  'icon.svg': 'web/shared/icon.svg',
  'minisearch.js': 'node_modules/minisearch/dist/es/index.js',
  'geist.woff2': 'node_modules/@fontsource-variable/geist/files/geist-latin-wght-normal.woff2',
  'geist-mono.woff2':
    'node_modules/@fontsource-variable/geist-mono/files/geist-mono-latin-wght-normal.woff2',
}
const CONTRACTS: Record<string, string> = {
  'openapi.json': 'generated/openapi.json',
  'openapi.yaml': 'openapi.yaml',
  'asyncapi.json': 'generated/asyncapi.json',
  'asyncapi.yaml': 'asyncapi.yaml',
}

export function openSite(options: SiteOptions): Site {
  const root = options.root ?? ROOT
  const api = readApi(root)
  const guides = readGuides(root)
  const makers = pageMakers(api, guides, root)
  const read = ([name, files]: [string, string | string[]]): [string, Asset] => [
    name,
    {
      type: TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
      bytes: Buffer.concat([files].flat().map((file) => readFileSync(join(root, file)))),
    },
  ]
  const suffix = options.edition === 'static' ? '.html' : ''
  const navigation: Navigation = { api, guides }

  const contextOf = (id: string): PageContext => {
    const up = '../'.repeat(id.split('/').length - 1)
    const link: PageContext['link'] = (target, fragment) => {
      if (!makers.has(target))
        throw new Error(`${id} links to the page ${target}, which does not exist`)
      const path = target === 'index' ? (suffix === '' ? '' : `index${suffix}`) : target + suffix
      return `${up}${path}${fragment === undefined ? '' : `#${fragment}`}` || './'
    }
    const subject = (code: string): string | undefined => {
      const [method, path] = code.split(' ')
      const operation = api.operations.find(
        (known) => known.id === code || (known.method === method && known.path === path),
      )
      const target = operation ? `operations/${operation.id}` : `events/${code}`
      return target === id || !makers.has(target) ? undefined : link(target)
    }
    const render: PageContext['render'] = (text, more) => renderMarkdown(text, { subject, ...more })
    return {
      api,
      options,
      guides,
      link,
      contractLink: (name) => `${options.edition === 'server' ? '../' : ''}${up}${name}`,
      rootLink: `../${up}`,
      render,
      markdown: (text) => render(text).body,
      schemaLink: (name) => (api.schemas.has(name) ? link('schemas', name) : undefined),
    }
  }

  const bodies = new Map<string, Page>()
  const bodyOf = (id: string): Page | undefined => {
    const page = bodies.get(id) ?? makers.get(id)?.(contextOf(id))
    if (page) bodies.set(id, page)
    return page
  }

  const assets = new Map(Object.entries(ASSETS).map(read))
  // Made at the start, since its bytes are part of the folder's name. It reads the contracts and guides, and renders no page.
  assets.set('search.json', {
    type: 'application/json',
    bytes: Buffer.from(searchIndex(api, guides)),
  })
  const hash = createHash('sha256')
  for (const [name, { bytes }] of assets) hash.update(name).update(bytes)
  // One folder whose name changes with anything in it: everything below it may be kept for ever.
  const folder = `assets/${hash.digest('hex').slice(0, 12)}`
  const rendered = (id: string, page: Page): string =>
    layout({ id, page, context: contextOf(id), navigation, folder, suffix })

  return {
    pages: [...makers.keys()],
    page(id) {
      const page = bodyOf(id)
      return page && rendered(id, page)
    },
    notFound(path) {
      const body = html`<p>There is no such page. The search above knows all that there are, and so does <a href="${contextOf(path).link('index')}">the first page</a>.</p>`
      return rendered(path, { title: 'Not found', summary: 'There is no such page.', body })
    },
    assets: new Map([...assets].map(([name, asset]) => [`${folder}/${name}`, asset])),
    contracts: new Map(Object.entries(CONTRACTS).map(read)),
  }
}

type PageMaker = (context: PageContext) => Page

function pageMakers(api: Api, guides: Guide[], root: string): Map<string, PageMaker> {
  return new Map<string, PageMaker>([
    ['index', homePage],
    ...guides.map((guide): [string, PageMaker] => [
      guide.id,
      (context) => guidePage(context, guide, root),
    ]),
    ['api', (context) => overviewPage(context, api.title, api.description)],
    ...api.resources.map((resource): [string, PageMaker] => [
      `resources/${resource.slug}`,
      (context) => resourcePage(context, resource),
    ]),
    ...api.operations.map((operation): [string, PageMaker] => [
      `operations/${operation.id}`,
      (context) => operationPage(context, operation),
    ]),
    ['webhooks', (context) => overviewPage(context, api.webhooks.title, api.webhooks.description)],
    ...api.events.map((event): [string, PageMaker] => [
      `events/${event.type}`,
      (context) => eventPage(context, event),
    ]),
    ['schemas', schemasPage],
  ])
}
