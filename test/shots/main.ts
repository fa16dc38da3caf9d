/** `npm run shots`: screenshots of every console page of a sample account, and of /docs, at two
 *  widths, light and dark, and in forced colours. */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { openBrowser } from '../browser.ts'
import { type Demo, startDemo } from './demo.ts'

const WIDTHS = [1280, 390]
const LOOKS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  forced: { forcedColors: 'active' },
}

interface Shot {
  name: string
  /** The path of the page, below the URL of the service. */
  path: string
  isGuest?: boolean
  /** Whether to take the shot while deliveries are paused. */
  isPaused?: boolean
}

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'data/shots' },
    only: { type: 'string' },
    readme: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(
    'npm run shots -- [--out DIR] [--only TEXT | --readme]\n\nWrites screenshots of the pages whose name contains TEXT, or of all pages, to DIR (default: data/shots).\nWith --readme, writes the images of the README to docs/images.',
  )
  process.exit(0)
}

const out = values.readme ? 'docs/images' : resolve(values.out)
mkdirSync(out, { recursive: true })
const demo = await startDemo()
try {
  const browser = await openBrowser()
  if (values.readme) await takeForReadme(browser, demo)
  else await takeAll(browser, demo)
  await browser.close()
} finally {
  await demo.stop()
}

async function takeForReadme(browser: Browser, demo: Demo): Promise<void> {
  const pages = {
    overview: '/console',
    delivery: `/console/webhooks/${demo.webhookId}/deliveries/${demo.deliveredDeliveryId}`,
    docs: '/docs/operations/createParticipant',
  }
  for (const [name, path] of Object.entries(pages)) {
    const options = { viewport: { width: 1280, height: 800 }, colorScheme: 'light' } as const
    await take(browser, demo, { name, path }, options, join(out, `${name}.png`))
  }
}

async function takeAll(browser: Browser, demo: Demo): Promise<void> {
  const shots = pagesOf(demo).filter(
    ({ name }) => values.only === undefined || name.includes(values.only),
  )
  for (const shot of shots.filter(({ isPaused }) => !isPaused)) await takeEach(browser, demo, shot)
  await demo.pauseDeliveries()
  for (const shot of shots.filter(({ isPaused }) => isPaused)) await takeEach(browser, demo, shot)
}

async function takeEach(browser: Browser, demo: Demo, shot: Shot): Promise<void> {
  for (const width of WIDTHS)
    for (const [look, options] of Object.entries(LOOKS)) {
      const viewport = { width, height: 900 }
      const file = join(out, `${shot.name}-${width}-${look}.png`)
      await take(browser, demo, shot, { ...options, viewport }, file, { fullPage: true })
    }
}

async function take(
  browser: Browser,
  { url, cookie }: Demo,
  { path, isGuest }: Shot,
  options: BrowserContextOptions,
  file: string,
  { fullPage = false } = {},
): Promise<void> {
  const context = await browser.newContext({ ...options, reducedMotion: 'reduce' })
  if (!isGuest) await context.addCookies([{ ...cookie, url }])
  const page = await context.newPage()
  const response = await page.goto(url + path, { waitUntil: 'load' })
  await page.screenshot({ path: file, fullPage })
  console.log(`${file} ${response?.status()}`)
  await context.close()
}

function pagesOf({
  webhookId,
  failingWebhookId,
  deadWebhookId,
  bulkJobId,
  failedDeliveryId,
  deliveredDeliveryId,
  requestId,
  eventId,
  records,
  userId,
}: Demo): Shot[] {
  return [
    { name: 'sign-in', path: '/console/sign-in', isGuest: true },
    { name: 'sign-up', path: '/console/sign-up', isGuest: true },
    { name: 'overview', path: '/console' },
    { name: 'search', path: '/console/search?q=an' },
    { name: 'requests', path: '/console/requests' },
    { name: 'request', path: `/console/requests/${requestId}` },
    { name: 'events', path: '/console/events' },
    { name: 'event', path: `/console/events/${eventId}` },
    { name: 'deliveries', path: '/console/deliveries' },
    { name: 'webhooks', path: '/console/webhooks' },
    { name: 'webhook-new', path: '/console/webhooks/new' },
    { name: 'webhook', path: `/console/webhooks/${webhookId}` },
    { name: 'webhook-failing', path: `/console/webhooks/${failingWebhookId}` },
    { name: 'webhook-disabled', path: `/console/webhooks/${deadWebhookId}` },
    { name: 'webhook-settings', path: `/console/webhooks/${webhookId}/settings` },
    { name: 'webhook-secret', path: `/console/webhooks/${webhookId}/secret` },
    { name: 'webhook-send-missed', path: `/console/webhooks/${webhookId}/send-missed` },
    { name: 'webhook-retry-failed', path: `/console/webhooks/${webhookId}/retry-failed` },
    { name: 'webhook-retry-waiting', path: `/console/webhooks/${webhookId}/retry-waiting` },
    { name: 'bulk-jobs', path: '/console/webhooks/jobs' },
    { name: 'bulk-job', path: `/console/webhooks/jobs/${bulkJobId}` },
    { name: 'webhook-edit', path: `/console/webhooks/${webhookId}/edit` },
    {
      name: 'delivery-failed',
      path: `/console/webhooks/${webhookId}/deliveries/${failedDeliveryId}`,
    },
    { name: 'delivery', path: `/console/webhooks/${webhookId}/deliveries/${deliveredDeliveryId}` },
    { name: 'api-keys', path: '/console/api-keys' },
    { name: 'api-key-new', path: '/console/api-keys/new' },
    ...Object.entries(records).flatMap(([resource, id]) => [
      { name: `records-${resource}`, path: `/console/records/${resource}` },
      { name: `records-${resource}-new`, path: `/console/records/${resource}/new` },
      { name: `record-${resource}`, path: `/console/records/${resource}/${id}` },
    ]),
    { name: 'record-jobs-edit', path: `/console/records/jobs/${records.jobs}/edit` },
    { name: 'people', path: '/console/people' },
    { name: 'people-invite', path: '/console/people/invite' },
    { name: 'person', path: `/console/people/${userId}` },
    { name: 'person-deactivate', path: `/console/people/${userId}/deactivate` },
    { name: 'audit-log', path: '/console/audit-log' },
    { name: 'settings', path: '/console/settings' },
    { name: 'notifications', path: '/console/notifications' },
    { name: 'me', path: '/console/me' },
    { name: 'me-password', path: '/console/me/password' },
    { name: 'not-found', path: '/console/nothing' },
    { name: 'docs', path: '/docs/' },
    { name: 'paused-overview', path: '/console', isPaused: true },
    { name: 'paused-webhook', path: `/console/webhooks/${webhookId}`, isPaused: true },
  ]
}
