/** The pages that forms and links lead back to, below /console. */
import type { Context } from 'koa'

/** The page with the form that was sent. */
export function refererPath(ctx: Context): string {
  const url = URL.parse(ctx.get('Referer'))
  return url ? toConsolePath(url.pathname + url.search) : ''
}

/** The path below /console, or '' for any other text: a link must not redirect to another site. */
export function toConsolePath(path: string | null): string {
  if (!path?.startsWith('/console/')) return ''
  const url = new URL(path, 'http://console.invalid')
  return url.host === 'console.invalid' && url.pathname.startsWith('/console/')
    ? `${url.pathname.slice('/console'.length)}${url.search}`
    : ''
}
