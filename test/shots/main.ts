/** `npm run shots`: screenshots of every console page of a sample account, and of /docs, at two
 *  widths, light and dark. */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser } from 'playwright-core'
import { openBrowser } from '../browser.ts'
import { type Demo, startDemo } from './demo.ts'

const WIDTHS = [1280, 390]
const SCHEMES = ['light', 'dark'] as const

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
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(
    'npm run shots -- [--out DIR] [--only TEXT]\n\nWrites screenshots of the pages whose name contains TEXT, or of all pages, to DIR (default: data/shots).',
  )
  process.exit(0)
}

const out = resolve(values.out)
mkdirSync(out, { recursive: true })
const demo = await startDemo()
try {
  const browser = await openBrowser()
  const shots = pagesOf(demo).filter(
    ({ name }) => values.only === undefined || name.includes(values.only),
  )
  for (const shot of shots.filter(({ isPaused }) => !isPaused)) await take(browser, demo, shot)
  await demo.pauseDeliveries()
  for (const shot of shots.filter(({ isPaused }) => isPaused)) await take(browser, demo, shot)
  await browser.close()
} finally {
  await demo.stop()
}

async function take(
  browser: Browser,
  { url, cookie }: Demo,
  { name, path, isGuest }: Shot,
): Promise<void> {
  for (const width of WIDTHS)
    for (const colorScheme of SCHEMES) {
      const context = await browser.newContext({
        viewport: { width, height: 900 },
        colorScheme,
        reducedMotion: 'reduce',
      })
      if (!isGuest) await context.addCookies([{ ...cookie, url }])
      const page = await context.newPage()
      const response = await page.goto(url + path, { waitUntil: 'load' })
      const file = `${name}-${width}-${colorScheme}.png`
      await page.screenshot({ path: join(out, file), fullPage: true })
      console.log(`${file} ${response?.status()}`)
      await context.close()
    }
}

function pagesOf({
  webhookId,
  failingWebhookId,
  deadWebhookId,
  failedDeliveryId,
  deliveredDeliveryId,
  requestId,
  records,
  userId,
}: Demo): Shot[] {
  return [
    { name: 'sign-in', path: '/console/sign-in', isGuest: true },
    { name: 'sign-up', path: '/console/sign-up', isGuest: true },
    { name: 'overview', path: '/console' },
    { name: 'requests', path: '/console/requests' },
    { name: 'request', path: `/console/requests/${requestId}` },
    { name: 'webhooks', path: '/console/webhooks' },
    { name: 'webhook-new', path: '/console/webhooks/new' },
    { name: 'webhook', path: `/console/webhooks/${webhookId}` },
    { name: 'webhook-failing', path: `/console/webhooks/${failingWebhookId}` },
    { name: 'webhook-disabled', path: `/console/webhooks/${deadWebhookId}` },
    { name: 'webhook-settings', path: `/console/webhooks/${webhookId}/settings` },
    { name: 'webhook-secret', path: `/console/webhooks/${webhookId}/secret` },
    { name: 'webhook-send-missed', path: `/console/webhooks/${webhookId}/send-missed` },
    { name: 'webhook-retry-failed', path: `/console/webhooks/${webhookId}/retry-failed` },
    { name: 'bulk-jobs', path: '/console/webhooks/jobs' },
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
    { name: 'audit-log', path: '/console/audit-log' },
    { name: 'settings', path: '/console/settings' },
    { name: 'transfer', path: '/console/settings/transfer' },
    { name: 'me', path: '/console/me' },
    { name: 'me-password', path: '/console/me/password' },
    { name: 'not-found', path: '/console/nothing' },
    { name: 'docs', path: '/docs/' },
    { name: 'paused-overview', path: '/console', isPaused: true },
    { name: 'paused-webhook', path: `/console/webhooks/${webhookId}`, isPaused: true },
  ]
}
