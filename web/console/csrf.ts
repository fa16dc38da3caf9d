import type { Context } from 'koa'

/** Throws 403 if another origin sent a request that changes something. SameSite cookies do not
 *  suffice: browsers also send them from other ports and subdomains of the same site. Pages cannot
 *  forge Sec-Fetch-Site or Origin. A request with neither does not come from a browser, and CSRF
 *  needs a browser. */
export function assertSameOrigin(ctx: Context, baseUrl: string): void {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return
  const site = ctx.get('Sec-Fetch-Site')
  if (site !== '') {
    if (site !== 'same-origin' && site !== 'none') ctx.throw(403)
    return
  }
  const origin = ctx.get('Origin')
  if (origin !== '' && !isOwn(origin, new URL(baseUrl), ctx.get('Host'))) ctx.throw(403)
}

/** With TLS, an http: page of the same host is another origin, because anyone on the network can
 *  change such a page. */
function isOwn(origin: string, base: URL, host: string): boolean {
  const url = URL.parse(origin)
  if (!url || (base.protocol === 'https:' && url.protocol !== 'https:')) return false
  return url.host === host || url.host === base.host
}
