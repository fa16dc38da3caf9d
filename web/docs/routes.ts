/** Serves the documentation at /docs, and the contracts. */
import Router from '@koa/router'
import type { Context } from 'koa'
import { type Asset, CACHE_FOREVER, sendAsset, toAsset } from '../shared/assets.ts'
import { CONTRACT_FILES } from './assets.ts'
import type { SiteOptions } from './page.ts'
import type { Site } from './site.ts'

const MINUTE_S = 60
/** No page has a path of more segments. Longer paths get the plain 404 of the API. */
const MAX_PATH_SEGMENTS = 3

type DocsOptions = Omit<SiteOptions, 'edition'>

export function docsRoutes(options: DocsOptions): Router {
  const docs = new DocsServer(options)
  // Strict, because relative links have another meaning without the trailing slash.
  const router = new Router({ strict: true })
  router.get('/docs', (ctx) => {
    ctx.status = 308
    ctx.redirect('/docs/')
  })
  router.get(/^\/docs\/(.*)$/, (ctx) => docs.servePage(ctx))
  for (const name of Object.keys(CONTRACT_FILES))
    router.get(`/${name}`, (ctx) => docs.serveContract(ctx, name))
  return router
}

/** Opens the site at the first request, and renders each page once. */
class DocsServer {
  readonly #options: DocsOptions
  readonly #pages = new Map<string, Asset>()
  #site: Promise<Site> | undefined

  constructor(options: DocsOptions) {
    this.#options = { ...options, baseUrl: options.baseUrl.replace(/\/$/, '') }
  }

  async servePage(ctx: Context): Promise<void> {
    const { DOCS_POLICY } = await import('./layout.ts')
    const site = await this.#openSite()
    const path = ctx.path.slice('/docs/'.length)
    const asset = site.assets.get(path)
    if (asset) {
      ctx.set('Cache-Control', CACHE_FOREVER)
      return sendAsset(ctx, asset)
    }
    const text = site.texts.get(path)
    if (text) {
      ctx.set('Cache-Control', 'no-cache')
      return sendAsset(ctx, this.#renderOnce(path, text))
    }
    const id = path === '' ? 'index' : path
    const hasPage = path !== 'index' && site.pages.includes(id)
    if (!hasPage) {
      const otherCase = site.pages.find((page) => page.toLowerCase() === path.toLowerCase())
      if (otherCase !== undefined && otherCase !== 'index')
        return ctx.redirect(`/docs/${otherCase}`)
      if (path.split('/').length > MAX_PATH_SEGMENTS) return
    }
    ctx.set('Content-Security-Policy', `${DOCS_POLICY}; frame-ancestors 'none'`)
    ctx.set('Referrer-Policy', 'same-origin')
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
    ctx.set('Cache-Control', 'no-cache')
    if (hasPage)
      return sendAsset(
        ctx,
        this.#renderOnce(id, () => toAsset('page.html', site.page(id) ?? '')),
      )
    ctx.status = 404
    ctx.type = 'html'
    ctx.body = site.notFound(path)
  }

  /** Contracts are public, so that tools on all origins can read them. */
  async serveContract(ctx: Context, name: string): Promise<void> {
    const contract = (await this.#openSite()).contracts.get(name)
    if (!contract) return
    ctx.set('Access-Control-Allow-Origin', '*')
    ctx.set('Access-Control-Expose-Headers', 'ETag')
    ctx.set('Cross-Origin-Resource-Policy', 'cross-origin')
    ctx.set('Cache-Control', `public, max-age=${MINUTE_S}`)
    await sendAsset(ctx, contract)
  }

  #openSite(): Promise<Site> {
    this.#site ??= import('./site.ts').then(({ openSite }) =>
      openSite({ ...this.#options, edition: 'server' }),
    )
    return this.#site
  }

  #renderOnce(path: string, render: () => Asset): Asset {
    const page = this.#pages.get(path) ?? render()
    this.#pages.set(path, page)
    return page
  }
}
