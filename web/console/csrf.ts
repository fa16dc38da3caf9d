import type { Context } from 'koa'

/** Throws 403 for a change that another site sends. SameSite cookies still come from other ports and hosts of this site; the
 *  headers with which browsers name a request's origin do not lie. A client without these headers is no browser, so no
 *  other site can make it send the cookie. */
export function assertSameOrigin(ctx: Context, baseUrl: string): void {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return
  const site = ctx.get('Sec-Fetch-Site')
  if (site !== '') {
    if (site !== 'same-origin' && site !== 'none') ctx.throw(403)
    return
  }
  const origin = ctx.get('Origin')
  const ownHosts = [ctx.get('Host'), new URL(baseUrl).host]
  if (origin !== '' && !(URL.canParse(origin) && ownHosts.includes(new URL(origin).host)))
    ctx.throw(403)
}
