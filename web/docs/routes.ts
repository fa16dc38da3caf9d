/** The documentation at /docs, and the contracts themselves. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Router from '@koa/router'
import type { Context } from 'koa'
import type { Config } from '../../server/config.ts'
import { ifNoneMatchHolds } from '../../server/etag.ts'
import type { Asset, Site } from './site.ts'

const MINUTE_S = 60
const YEAR_S = 365 * 24 * 60 * MINUTE_S
/** Deeper than any page, and no deeper than what a page of links to them should be made for. */
const MAX_DEPTH = 3

export function docsRoutes({ baseUrl }: Pick<Config, 'baseUrl'>): Router {
  let opening: Promise<Site> | undefined
  // Not at the start of the server: its first page is made when somebody asks for it.
  const open = (): Promise<Site> => {
    opening ??= import('./site.ts').then(({ openSite }) =>
      openSite({ baseUrl: baseUrl.replace(/\/$/, ''), edition: 'server' }),
    )
    return opening
  }
  // Strict: relative links mean something else without the slash.
  const router = new Router({ strict: true })

  router.get('/docs', (ctx) => {
    ctx.status = 308
    ctx.redirect('/docs/')
  })
  router.get(/^\/docs\/(.*)$/, async (ctx) => {
    const { POLICY } = await import('./layout.ts')
    const site = await open()
    const path = ctx.path.slice('/docs/'.length)
    const asset = site.assets.get(path)
    if (asset) {
      ctx.set('Cache-Control', `public, max-age=${YEAR_S}, immutable`)
      return send(ctx, asset)
    }
    const id = path === '' ? 'index' : path
    const isKnown = path !== 'index' && site.pages.includes(id)
    if (!isKnown && path.split('/').length > MAX_DEPTH) return
    ctx.set('Content-Security-Policy', `${POLICY}; frame-ancestors 'none'`)
    ctx.set('Referrer-Policy', 'same-origin')
    ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
    ctx.set('Cache-Control', 'no-cache')
    if (isKnown) return send(ctx, pageOf(site, id))
    ctx.status = 404
    ctx.type = 'html'
    ctx.body = site.notFound(path)
  })
  for (const name of ['openapi.json', 'openapi.yaml', 'asyncapi.json', 'asyncapi.yaml']) {
    router.get(`/${name}`, async (ctx) => {
      // For tools in browsers, wherever they come from: there is nothing secret in a contract.
      ctx.set('Access-Control-Allow-Origin', '*')
      ctx.set('Access-Control-Expose-Headers', 'ETag')
      ctx.set('Cross-Origin-Resource-Policy', 'cross-origin')
      ctx.set('Cache-Control', `public, max-age=${MINUTE_S}`)
      await send(ctx, (await open()).contracts.get(name) as Asset)
    })
  }
  return router
}

const pages = new WeakMap<Site, Map<string, Asset>>()

/** Each page is made once. */
function pageOf(site: Site, id: string): Asset {
  const made = pages.get(site) ?? new Map<string, Asset>()
  pages.set(site, made)
  const page = made.get(id) ?? {
    type: 'text/html; charset=utf-8',
    bytes: Buffer.from(site.page(id) ?? ''),
  }
  made.set(id, page)
  return page
}

interface Representation {
  bytes: Buffer
  etag: string
}

const represented = new WeakMap<Asset, Map<string, Promise<Representation>>>()

/** What goes over the wire in an encoding, made once. Each has an entity tag of its own (RFC 9110 §8.8.3.3). */
function represent(asset: Asset, encoding: string): Promise<Representation> {
  const known = represented.get(asset) ?? new Map<string, Promise<Representation>>()
  represented.set(asset, known)
  const representation =
    known.get(encoding) ??
    (async () => {
      const bytes =
        encoding === 'gzip' ? await promisify(gzip)(asset.bytes, { level: 9 }) : asset.bytes
      return {
        bytes,
        etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
      }
    })()
  known.set(encoding, representation)
  return representation
}

async function send(ctx: Context, asset: Asset): Promise<void> {
  const encoding =
    asset.type === 'font/woff2'
      ? 'identity'
      : ctx.acceptsEncodings('gzip', 'identity') || 'identity'
  const { bytes, etag } = await represent(asset, encoding)
  ctx.vary('Accept-Encoding')
  ctx.set('ETag', etag)
  if (ifNoneMatchHolds(ctx.get('If-None-Match'), etag)) {
    ctx.status = 304
    return
  }
  if (encoding === 'gzip') ctx.set('Content-Encoding', 'gzip')
  ctx.set('Content-Type', asset.type)
  ctx.body = bytes
}
