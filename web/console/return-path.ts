/** Finds the page of the console to which a form or a sign-in returns the user. */
import type { Context } from 'koa'

/** The path below /console of the page with the form that was sent, or '' if it is unknown. */
export function refererPath(ctx: Context): string {
  const url = URL.parse(ctx.get('Referer'))
  return url ? toConsolePath(url.pathname + url.search) : ''
}

/** Removes /console from the start of a path. Returns '' for any text that is not a path below
 *  /console, so that a link cannot redirect to another site. */
export function toConsolePath(path: string | null): string {
  if (!path?.startsWith('/console/')) return ''
  const url = new URL(path, 'http://console.invalid')
  return url.host === 'console.invalid' && url.pathname.startsWith('/console/')
    ? `${url.pathname.slice('/console'.length)}${url.search}`
    : ''
}
