/** The frame of every console page: head, navigation and notices. */
import type { Notice } from '../../records/sessions.ts'
import type { User } from '../../records/users.ts'
import { type Content, type Html, html } from '../shared/html.ts'
import { currentZone } from '../shared/zone.ts'
import { counted } from './format.ts'
import { icon } from './icons.ts'
import { hrefOf, type NavigationBadge, type NavigationItem, navigation } from './navigation.ts'
import type { ConsolePage } from './page.ts'
import { SEARCH_PATH, searchDialog } from './search/form.ts'
import { buttonLink } from './ui.ts'

export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

interface Frame {
  /** The page's path, for example `/console/webhooks`. */
  path: string
  /** The URL path of the assets. */
  folder: string
  theme: Theme
  zoneSwitch?: Html
  notice: Notice | null
  areDeliveriesPaused: boolean
  /** Webhooks that are failing, or that the service has disabled. */
  troubledWebhookCount: number
  /** Undefined for guests. */
  visitor?: { user: User; account: { name: string } }
}

export const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

export function parseTheme(text: string | null | undefined): Theme {
  return themes.find((theme) => theme === text) ?? 'system'
}

/** The page's HTML. The content security policy forbids inline scripts and styles. */
export function layout(page: ConsolePage, frame: Frame): string {
  const { path, folder, theme, notice, areDeliveriesPaused, visitor } = frame
  const chosenTheme = theme !== 'system' && html` data-theme="${theme}"`
  return `<!doctype html>\n${html`<html lang="en"${chosenTheme}>
    ${head(page.title, folder)}
    <body${!visitor && html` class="guest"`} data-zone="${currentZone()}">
      <a class="skip" href="#main">Skip to the content</a>
      ${page.listId && html`<a class="skip" href="#${page.listId}">Skip to the list</a>`}
      ${visitor ? side(frame, visitor) : guestHeader(folder)}
      <main id="main" tabindex="-1"${page.isNarrow && html` class="narrow"`}>
        ${toast(notice)}
        <p id="stale" role="status"></p>
        ${areDeliveriesPaused && pauseBanner}
        ${page.crumbs && crumbs(page.crumbs)}
        <header class="page-head">
          <div class="page-title">
            <h1>${page.title}</h1>
            ${page.lead && html`<p class="lead">${page.lead}</p>`}
          </div>
          ${page.actions && html`<div class="actions">${page.actions}</div>`}
        </header>
        ${page.body}
      </main>
      ${visitor && path !== `/console${SEARCH_PATH}` && searchDialog}
    </body>
  </html>`}\n`
}

function head(title: string, folder: string): Html {
  return html`<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="htmx-config" content="${HTMX_CONFIG}">
    <title>${title} · Muster</title>
    <link rel="icon" href="${folder}/icon.svg" type="image/svg+xml">
    <link rel="preload" href="${folder}/geist.woff2" as="font" type="font/woff2" crossorigin>
    <link rel="stylesheet" href="${folder}/console.css">
    <script defer src="${folder}/htmx.js"></script>
    <script type="module" src="${folder}/console.js"></script>
  </head>`
}

/** htmx must not replace a part of the page with an error. */
const HTMX_CONFIG = JSON.stringify({ noSwap: [204, 304, '4xx', '5xx'], includeIndicatorCSS: false })

/** Always in the page, because screen readers announce only changes of an existing element. */
function toast(notice: Notice | null): Html {
  const text = notice && html`<p class="toast ${notice.kind}">${notice.text}</p>`
  return html`<div id="toast" role="status" aria-live="polite">${text}</div>`
}

const pauseBanner = html`<aside class="note warn banner" aria-label="Deliveries are paused">
  <strong>Deliveries are paused.</strong>
  <span>Webhooks receive nothing, and no delivery is lost. The operator ends the pause with
    <code>muster deliveries unpause</code>.</span>
</aside>`

function crumbs(items: { label: string; to: string }[]): Html {
  const links = items.map(({ label, to }) => html`<li><a href="/console${to}">${label}</a></li>`)
  return html`<nav class="crumbs" aria-label="Where you are"><ol>${links}</ol></nav>`
}

function guestHeader(folder: string): Html {
  return html`<header class="guest-head">${brand(folder, 28)}</header>`
}

function brand(folder: string, size: number): Html {
  const logo = html`<img src="${folder}/icon.svg" alt="" width="${size}" height="${size}">`
  return html`<a class="brand" href="/console">${logo}Muster</a>`
}

function troubleLink(webhooks: number): Html {
  const text = `${counted(webhooks, 'webhook')} failing`
  return html`<a class="pill bad" href="/console/webhooks">${text}</a>`
}

function side(
  { path, theme, folder, troubledWebhookCount, zoneSwitch }: Frame,
  { user, account }: { user: User; account: { name: string } },
): Html {
  return html`
    <header class="bar">
      <button type="button" class="icon-button" popovertarget="menu" aria-label="Menu">
        ${icon('menu')}
      </button>
      ${brand(folder, 22)}
      ${troubledWebhookCount > 0 && troubleLink(troubledWebhookCount)}
      <a class="icon-button" href="/console${SEARCH_PATH}" aria-label="Search">${icon('search')}</a>
    </header>
    <nav class="side" id="menu" popover aria-label="Console">
      ${brand(folder, 24)}
      <p class="account">${account.name}</p>
      <a class="search-link" href="/console${SEARCH_PATH}">
        ${icon('search')} Search <kbd>Ctrl K</kbd>
      </a>
      ${navigation(user, troubledWebhookCount).map(({ title, items }) => [
        title && html`<h2>${title}</h2>`,
        html`<ul>${items.map((item) => html`<li>${link(item, path)}</li>`)}</ul>`,
      ])}
      ${zoneSwitch}
      <div class="me">
        <a class="me-name" href="/console/me">
          <span class="avatar" aria-hidden="true">${initials(user.fullName)}</span>
          <span>
            <strong>${user.fullName}</strong>
            <small>${ROLES[user.role]}</small>
          </span>
        </a>
        ${themeForm(theme)}
        <form method="post" action="/console/sign-out">
          <button class="icon-button" aria-label="Sign out">${icon('out')}</button>
        </form>
      </div>
    </nav>`
}

function themeForm(theme: Theme): Html {
  const next = NEXT_THEME[theme]
  return html`<form method="post" action="/console/theme">
    <input type="hidden" name="theme" value="${next}">
    <button class="icon-button" aria-label="Theme: ${theme}. Change to ${next}.">
      ${icon('theme')}
    </button>
  </form>`
}

const NEXT_THEME: Record<Theme, Theme> = { system: 'dark', dark: 'light', light: 'system' }
export const ROLES: Record<User['role'], string> = {
  owner: 'Account Owner',
  admin: 'Admin',
  member: 'Member',
}

function link({ label, to, icon: name, badge }: NavigationItem, path: string): Html {
  const href = hrefOf(to)
  // The paths of all pages begin with that of the overview.
  const isBelow = to !== '' && path.startsWith(`${href}/`)
  const current = (path === href || isBelow) && html` aria-current="page"`
  const content = [icon(name), label, badge && badgeElement(badge)]
  return html`<a href="${href}"${current}>${content}</a>`
}

/** The element exists also while the count is 0, because open pages reload it. */
export function badgeElement({ id, count, label }: NavigationBadge): Html {
  const hiddenLabel = html`<span class="visually-hidden"> ${label}</span>`
  return html`<span id="${id}">
    ${count > 0 && html`<span class="badge">${count}${hiddenLabel}</span>`}
  </span>`
}

function initials(name: string): string {
  const [first = '', ...others] = name.split(/\s+/).filter(Boolean)
  return [first, others.at(-1) ?? '']
    .map((word) => [...word][0] ?? '')
    .join('')
    .toUpperCase()
}

export function errorPage(status: number, title: string, text: Content): ConsolePage {
  return {
    title,
    status,
    isNarrow: true,
    body: html`<p>${text}</p>
      <p class="actions">
        ${buttonLink('', 'Back to the overview')}
        ${status === 404 && buttonLink(SEARCH_PATH, 'Search')}
      </p>`,
  }
}
