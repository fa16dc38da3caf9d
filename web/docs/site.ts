/** The documentation site. It depends only on the two contracts, docs/ and CHANGELOG.md.
 *  The same input gives the same bytes. */
import { type Asset, ROOT } from '../shared/assets.ts'
import { html } from '../shared/html.ts'
import { type Api, readApi } from './api.ts'
import { readContracts, readDocsAssets } from './assets.ts'
import { type Guide, readGuides } from './guides.ts'
import { renderLayout } from './layout.ts'
import { renderMarkdown } from './markdown.ts'
import type { DocsPage, PageContext, SiteOptions } from './page.ts'
import { eventPage } from './pages/event.ts'
import { guidePage } from './pages/guide.ts'
import { homePage } from './pages/home.ts'
import { operationPage } from './pages/operation.ts'
import { overviewPage } from './pages/overview.ts'
import { resourcePage } from './pages/resource.ts'
import { schemasPage } from './pages/schemas.ts'
import { searchIndex } from './search.ts'

export interface Site {
  /** IDs of pages, for example `operations/listTasks`. `index` is the home page. */
  pages: readonly string[]
  /** The HTML of a page, or undefined for an unknown ID. */
  page(id: string): string | undefined
  /** The HTML for a path without a page. */
  notFound(path: string): string
  /** The files that pages load, by path relative to the site, for example `assets/3f2a…/docs.css`. */
  assets: ReadonlyMap<string, Asset>
  /** The contracts, by name, for example `openapi.yaml`. */
  contracts: ReadonlyMap<string, Asset>
}

/** The objects of some public documents refer to nearly all others. */
const PLAIN_DEPTH = 3

type RenderPage = (context: PageContext) => DocsPage

export function openSite(options: SiteOptions): Site {
  const root = options.root ?? ROOT
  const api = readApi(root)
  const guides = readGuides(root)
  const pages = listPages(api, guides, root)
  const suffix = options.edition === 'static' ? '.html' : ''
  const { folder, assets } = readDocsAssets(searchIndex(api, guides))
  const contracts = readContracts(root, options.baseUrl)

  const newContext = (id: string) =>
    newPageContext({ id, api, guides, options, pages, suffix, contracts })
  const renderAt = (id: string, render: RenderPage): string => {
    const context = newContext(id)
    return renderLayout({ id, page: render(context), context, folder, suffix })
  }
  return {
    pages: [...pages.keys()],
    page(id) {
      const render = pages.get(id)
      return render && renderAt(id, render)
    },
    notFound: (path) => renderAt(path, notFoundPage),
    assets,
    contracts,
  }
}

/** All pages by ID, in the order of the site. */
function listPages(api: Api, guides: Guide[], root: string): Map<string, RenderPage> {
  return new Map<string, RenderPage>([
    ['index', homePage],
    ...guides.map((guide): [string, RenderPage] => [
      guide.id,
      (context) => guidePage(context, guide, root),
    ]),
    ['api', (context) => overviewPage(context, api.title, api.description)],
    ...api.resources.map((resource): [string, RenderPage] => [
      `resources/${resource.slug}`,
      (context) => resourcePage(context, resource),
    ]),
    ...api.operations.map((operation): [string, RenderPage] => [
      `operations/${operation.id}`,
      (context) => operationPage(context, operation),
    ]),
    ...(api.isPlain ? [] : [webhooksPage(api)]),
    ...api.events.map((event): [string, RenderPage] => [
      `events/${event.type}`,
      (context) => eventPage(context, event),
    ]),
    ['schemas', schemasPage],
  ])
}

function webhooksPage({ webhooks }: Api): [string, RenderPage] {
  return ['webhooks', (context) => overviewPage(context, webhooks.title, webhooks.description)]
}

function notFoundPage(context: PageContext): DocsPage {
  return {
    title: 'Page not found',
    summary: 'Page not found.',
    body: html`<p>
      There is no page at this URL. Use the search, or go to the
      <a href="${context.link('index')}">home page</a>.
    </p>`,
  }
}

interface ContextInput {
  id: string
  api: Api
  guides: Guide[]
  options: SiteOptions
  pages: ReadonlyMap<string, RenderPage>
  suffix: string
  contracts: ReadonlyMap<string, Asset>
}

function newPageContext(input: ContextInput): PageContext {
  const { id, api, guides, options, pages, suffix, contracts } = input
  const up = '../'.repeat(id.split('/').length - 1)
  const link: PageContext['link'] = (target, fragment) => {
    if (!pages.has(target))
      throw new Error(`${id} links to the page ${target}, which does not exist`)
    const path = target === 'index' && suffix === '' ? '' : target + suffix
    return `${up}${path}${fragment === undefined ? '' : `#${fragment}`}` || './'
  }
  const subject = (code: string): string | undefined => {
    const [method, path] = code.split(' ')
    const operation = api.operations.find(
      (known) => known.id === code || (known.method === method && known.path === path),
    )
    const target = operation ? `operations/${operation.id}` : `events/${code}`
    return target === id || !pages.has(target) ? undefined : link(target)
  }
  const render: PageContext['render'] = (text, more) => renderMarkdown(text, { subject, ...more })
  return {
    api,
    options,
    guides,
    link,
    contractNames: [...contracts.keys()],
    contractLink: (name) => `${options.edition === 'server' ? '../' : ''}${up}${name}`,
    rootLink: `../${up}`,
    render,
    markdown: (text) => render(text).body,
    maxDepth: api.isPlain ? PLAIN_DEPTH : undefined,
    schemaLink: (name) => (api.schemas.has(name) ? link('schemas', name) : undefined),
  }
}
