import type { Context } from 'koa'

/** Throws 403 for a change that another site sends. SameSite cookies do not suffice: other ports and hosts of this
 *  site can send them. Browsers always send an origin header with such requests. A client without one is not a
 *  browser, so no other site can make it send the cookie. */
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
