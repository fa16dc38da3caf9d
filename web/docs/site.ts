/** The documentation site. It depends only on the two contracts, docs/ and CHANGELOG.md.
 *  The same input gives the same bytes. */
import { type Asset, ROOT, toAsset } from '../shared/assets.ts'
import { html } from '../shared/html.ts'
import { type Api, readApi } from './api.ts'
import { readContracts, readDocsAssets } from './assets.ts'
import { type Guide, readGuides } from './guides.ts'
import { renderLayout } from './layout.ts'
import { renderMarkdown } from './markdown.ts'
import { siteIndex } from './markdown-pages/llms.ts'
import { operationMarkdown } from './markdown-pages/operation.ts'
import {
  eventMarkdown,
  guideMarkdown,
  overviewMarkdown,
  resourceMarkdown,
  schemasMarkdown,
} from './markdown-pages/pages.ts'
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
  /** The Markdown of each page by path, for example `operations/listTasks.md`, and `llms.txt`,
   *  which lists the pages. */
  texts: ReadonlyMap<string, () => Asset>
  /** The HTML for a path without a page. */
  notFound(path: string): string
  /** The files that pages load, by path relative to the site, for example
   *  `assets/3f2a…/docs.css`. */
  assets: ReadonlyMap<string, Asset>
  /** The contracts, by name, for example `openapi.yaml`. */
  contracts: ReadonlyMap<string, Asset>
}

interface Page {
  render(context: PageContext): DocsPage
  markdown(context: PageContext): string
}

export function openSite(options: SiteOptions): Site {
  const root = options.root ?? ROOT
  const api = readApi(root)
  const guides = readGuides(root)
  const pages = listPages(api, guides, root)
  const suffix = options.edition === 'static' ? '.html' : ''
  const { folder, assets } = readDocsAssets(searchIndex(api, guides))
  const contracts = readContracts(root, options.baseUrl)

  const content = { api, guides, options, pages, contracts }
  const renderAt = (id: string, render: Page['render']): string => {
    const context = newPageContext(content, id, suffix)
    const markdownName = pages.has(id) ? `${id.split('/').at(-1)}.md` : undefined
    return renderLayout({ id, page: render(context), context, folder, suffix, markdownName })
  }
  const markdownAt = (id: string, markdown: Page['markdown']): string =>
    markdown(markdownContext(newPageContext(content, id, '.md')))
  return {
    pages: [...pages.keys()],
    page(id) {
      const page = pages.get(id)
      return page && renderAt(id, page.render)
    },
    texts: new Map([
      ['llms.txt', () => toAsset('llms.txt', markdownAt('index', siteIndex))],
      ...[...pages].map(([id, { markdown }]): [string, () => Asset] => [
        `${id}.md`,
        () => toAsset(`${id}.md`, markdownAt(id, markdown)),
      ]),
    ]),
    notFound: (path) => renderAt(path, notFoundPage),
    assets,
    contracts,
  }
}

/** All pages by ID, in the order of the site. */
function listPages(api: Api, guides: Guide[], root: string): Map<string, Page> {
  return new Map<string, Page>([
    ['index', { render: homePage, markdown: siteIndex }],
    ...guides.map((guide): [string, Page] => [
      guide.id,
      {
        render: (context) => guidePage(context, guide, root),
        markdown: (context) => guideMarkdown(context, guide, root),
      },
    ]),
    ['api', contractPage(api)],
    ...api.resources.map((resource): [string, Page] => [
      `resources/${resource.slug}`,
      {
        render: (context) => resourcePage(context, resource),
        markdown: (context) => resourceMarkdown(context, resource),
      },
    ]),
    ...api.operations.map((operation): [string, Page] => [
      `operations/${operation.id}`,
      {
        render: (context) => operationPage(context, operation),
        markdown: (context) => operationMarkdown(context, operation),
      },
    ]),
    ['webhooks', contractPage(api.webhooks)],
    ...api.events.map((event): [string, Page] => [
      `events/${event.type}`,
      {
        render: (context) => eventPage(context, event),
        markdown: (context) => eventMarkdown(context, event),
      },
    ]),
    ['schemas', { render: schemasPage, markdown: schemasMarkdown }],
  ])
}

/** The page with the description of a whole contract. */
function contractPage({ title, description }: Api['webhooks']): Page {
  return {
    render: (context) => overviewPage(context, title, description),
    markdown: () => overviewMarkdown(title, description),
  }
}

/** The context for pages in Markdown. Its `markdown` does not render the text as HTML. */
function markdownContext(context: PageContext): PageContext {
  return { ...context, markdown: (text) => html`${text}` }
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

interface SiteContent {
  api: Api
  guides: Guide[]
  options: SiteOptions
  pages: ReadonlyMap<string, Page>
  contracts: ReadonlyMap<string, Asset>
}

/** `suffix` is the end of the URLs of other pages. */
function newPageContext(
  { api, guides, options, pages, contracts }: SiteContent,
  id: string,
  suffix: string,
): PageContext {
  const up = '../'.repeat(id.split('/').length - 1)
  const link: PageContext['link'] = (target, fragment) => {
    if (!pages.has(target))
      throw new Error(`${id} links to the page ${target}, which does not exist`)
    const path = target === 'index' && suffix === '' ? '' : target + suffix
    return `${up}${path}${fragment === undefined ? '' : `#${fragment}`}` || './'
  }
  // `code` may be an operation's ID, its method and path, or the type of an event.
  const subjectLink = (code: string): string | undefined => {
    const [method, path] = code.split(' ')
    const operation = api.operations.find(
      (one) => one.id === code || (one.method === method && one.path === path),
    )
    const target = operation ? `operations/${operation.id}` : `events/${code}`
    return target === id || !pages.has(target) ? undefined : link(target)
  }
  const render: PageContext['render'] = (text, more) =>
    renderMarkdown(text, { subject: subjectLink, ...more })
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
    schemaLink: (name) => (api.schemas.has(name) ? link('schemas', name) : undefined),
  }
}
