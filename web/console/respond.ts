/** Sends what a page's handler returns. */
import type { Context } from 'koa'
import type { Db } from '../../records/database/open.ts'
import { accountScope } from '../../records/database/scope.ts'
import { findPausedAt } from '../../records/delivery-pause.ts'
import { countTroubledWebhooks } from '../../records/reports/webhook-health.ts'
import { type SignedIn, storeNotice } from '../../records/sessions.ts'
import { html } from '../shared/html.ts'
import type { Assets } from './assets.ts'
import { badgeElement, layout, parseTheme } from './layout.ts'
import { troubledWebhooks } from './navigation.ts'
import {
  type ConsolePage,
  type Download,
  isOwnerOrAdmin,
  type PageResult,
  type Redirect,
} from './page.ts'
import { isReload } from './shared-reads.ts'
import { zoneSwitch } from './time-zone.ts'

interface ResponseServices {
  db: Db
  assets: Assets
}

export async function respond(
  ctx: Context,
  services: ResponseServices,
  result: PageResult,
): Promise<void> {
  if ('to' in result) return redirectWithNotice(ctx, services.db, result)
  if ('fileName' in result) return sendFile(ctx, result)
  return sendPage(ctx, services, result)
}

async function redirectWithNotice(ctx: Context, db: Db, { to, notice }: Redirect): Promise<void> {
  // After a sign-in, the next page belongs to the new session.
  const sessionId = ctx.state.startedSessionId ?? ctx.state.visitor?.session.id
  if (notice && sessionId) await storeNotice(db, sessionId, notice)
  sendRedirect(ctx, `/console${to}`)
}

function sendFile(ctx: Context, { fileName, contentType, content, headers }: Download): void {
  ctx.status = 200
  ctx.attachment(fileName)
  ctx.set({ ...headers, 'Content-Type': contentType })
  ctx.body = content
}

async function sendPage(
  ctx: Context,
  { db, assets }: ResponseServices,
  page: ConsolePage,
): Promise<void> {
  const visitor: SignedIn | undefined = ctx.state.visitor
  ctx.status = page.status ?? 200
  ctx.type = 'html'
  if (visitor && isReload({ ctx })) {
    page.reloaded ??= reloadedParts(page, db, visitor)
    ctx.body = await page.reloaded
    return
  }
  const notice = visitor?.notice ?? null
  if (visitor && notice) await storeNotice(db, visitor.session.id, null)
  ctx.body = layout(page, {
    path: ctx.path.replace(/\/$/, ''),
    folder: assets.folder,
    theme: parseTheme(ctx.cookies.get('muster-theme')),
    zoneSwitch: visitor && zoneSwitch(ctx),
    notice,
    areDeliveriesPaused: visitor !== undefined && (await areDeliveriesPaused(db)),
    troubledWebhookCount: visitor ? await countTroubled(db, visitor) : 0,
    visitor,
  })
}

/** The parts of a page in which its reloads replace elements. */
async function reloadedParts(
  { lead, actions, body }: ConsolePage,
  db: Db,
  visitor: SignedIn,
): Promise<Buffer> {
  const badge = badgeElement(troubledWebhooks(await countTroubled(db, visitor)))
  return Buffer.from(html`${badge}${lead}${actions}${body}`.text)
}

/** False if the database cannot be reached: the page is an error page anyway. */
async function areDeliveriesPaused({ read }: Db): Promise<boolean> {
  const pausedAt = await findPausedAt(read).catch(() => undefined)
  return pausedAt !== undefined
}

/** 0 if the count fails, so that the page is shown without the count. */
async function countTroubled({ dialect, read }: Db, { user, account }: SignedIn): Promise<number> {
  if (!isOwnerOrAdmin(user)) return 0
  return countTroubledWebhooks(accountScope({ dialect, sql: read }, account.id)).catch(() => 0)
}

export function redirectToSignIn(ctx: Context): void {
  // htmx would follow a redirect and put the sign-in page into a part of this page.
  if (ctx.get('HX-Request') !== '') {
    redirectScript(ctx, '/console/sign-in')
    return
  }
  const isHome = ctx.path.replace(/\/$/, '') === '/console'
  const next = ctx.method === 'GET' && !isHome ? `?next=${encodeURIComponent(ctx.url)}` : ''
  sendRedirect(ctx, `/console/sign-in${next}`)
}

function sendRedirect(ctx: Context, url: string): void {
  // A script that has sent a form cannot see where a redirect leads.
  if (ctx.get('Muster-Form') !== '') {
    redirectScript(ctx, url)
    return
  }
  ctx.status = 303
  ctx.redirect(url)
  ctx.body = ''
}

/** The script opens the URL. */
function redirectScript(ctx: Context, url: string): void {
  ctx.status = 204
  ctx.set('HX-Redirect', url)
}
