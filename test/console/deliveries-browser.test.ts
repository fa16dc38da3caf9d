import { describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { startApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { newWebhookAdmin } from './hooks.ts'
import { newSite } from './site.ts'
import { storeDeliveries } from './stored-deliveries.ts'
import { visit } from './visitors.ts'

/** Retry delays: ten attempts within a second. */
const QUICK = '0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

// The pages are the same on both databases.
describe.runIf(inject('database') === 'sqlite')('the delivery log in a browser', () => {
  it('retries and cancels in its row, with a countdown to the next attempt', async () => {
    let isBroken = true
    await using receiver = await startReceiver({
      answers: () => (isBroken ? { status: 500, body: 'out of order' } : 204),
    })
    const admin = await newWebhookAdmin(site.app)
    const webhookId = await admin.subscribe(receiver.url)
    await using visited = await site.visit(`/webhooks/${webhookId}`, {
      person: admin.manager,
    })
    const { page, troubles } = visited
    await page.getByRole('button', { name: 'Send test event' }).click()
    const row = page.locator('.log tbody').filter({ hasText: 'webhook.test' })
    await row.getByText('Failed').waitFor()
    isBroken = false
    await row.getByRole('button', { name: 'Retry' }).click()
    await page.getByText('Retrying now.').waitFor()
    await row.getByText('Delivered').waitFor()
    expect(page.url()).toMatch(new RegExp(`/webhooks/${webhookId}$`))
    expect(await row.locator('.dots').getAttribute('aria-label')).toBe('2 attempts')

    isBroken = true
    await admin.emit()
    const other = page.locator('.log tbody').filter({ hasText: 'participant.created' })
    await other.getByText('Retrying').waitFor()
    await other.getByRole('link', { name: 'participant.created' }).click()
    const countdown = other.locator('time[data-countdown]')
    const before = await countdown.textContent()
    expect(before).toMatch(/^in (9 min \d+ s|10 min 0 s)$/)
    await expect.poll(() => countdown.textContent(), { timeout: 15_000 }).not.toBe(before)
    await assertReadable(page, 'an open row')
    // An attempt made while the row is open appears in it.
    await other.getByRole('button', { name: 'Retry now' }).click()
    await other.getByText('Attempt 2', { exact: true }).waitFor()
    await other.getByRole('button', { name: 'Cancel' }).click()
    await other.getByRole('button', { name: 'Cancel delivery' }).click()
    await other.getByText('The delivery was cancelled.').waitFor()
    isBroken = false
    await other.getByRole('button', { name: 'Retry' }).click()
    await other.locator('.pill').getByText('Delivered').waitFor()
    expect(await other.locator('.delivery').count()).toBe(1)
    expect(troubles).toEqual([])
  })

  it('shows all attempts of a retry schedule as they fail', async () => {
    await using quick = await startApp({
      role: 'all',
      environment: { WEBHOOK_RETRY_DELAYS: QUICK },
    })
    await using receiver = await startReceiver({ answers: [500] })
    const admin = await newWebhookAdmin(quick)
    const webhookId = await admin.subscribe(receiver.url)
    await using visited = await visit(quick, site.browser, `/webhooks/${webhookId}`, {
      person: admin.manager,
    })
    await admin.emit()
    const row = visited.page.locator('.log tbody')
    await row.getByText('Failed').waitFor()
    expect(await row.locator('.dots .bad').count()).toBe(10)
    await row.getByRole('link').click()
    await row.getByText('Gave up after 10 attempts.').waitFor()
    expect(visited.troubles).toEqual([])
  })

  it('keeps the focus when it reloads, and does not reload while hidden', async () => {
    const admin = await newWebhookAdmin(site.app)
    const webhookId = await admin.subscribe('https://example.com/')
    await storeDeliveries(admin, webhookId, [{ hoursAgo: 1, state: 'failed' }, { hoursAgo: 2 }])
    await using visited = await site.visit(`/webhooks/${webhookId}`, {
      person: admin.manager,
    })
    const { page, troubles } = visited
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    await page.getByRole('button', { name: 'Retry', exact: true }).focus()
    await expect.poll(() => requested.length, { timeout: 15_000 }).toBeGreaterThan(0)
    await storeDeliveries(admin, webhookId, [{ hoursAgo: 0 }])
    await expect.poll(() => page.locator('.log tbody').count(), { timeout: 15_000 }).toBe(3)
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Retry')
    await page.evaluate('Object.defineProperty(document, "hidden", { value: true })')
    requested.length = 0
    // A visible page reloads every 3 seconds.
    await page.waitForTimeout(4_000)
    expect(requested).toEqual([])
    expect(troubles).toEqual([])
  })

  it('works without JavaScript', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(site.app)
    const webhookId = await admin.subscribe(receiver.url)
    await admin.emit()
    await admin.newest(webhookId, 'delivered')
    await using visited = await site.visit(`/webhooks/${webhookId}`, {
      person: admin.manager,
      javaScriptEnabled: false,
    })
    const { page, troubles } = visited
    await page.getByRole('combobox', { name: 'Event' }).selectOption('participant.created')
    await page.getByRole('button', { name: 'Filter' }).click()
    expect(page.url()).toContain('type=participant.created')
    await page.getByRole('button', { name: 'Resend' }).click()
    await page.getByText('Resending now.').waitFor()
    await receiver.received(2)
    expect(page.url()).toContain('/deliveries/')
    await page.getByText('Verify the signature').click()
    await page.getByText('openssl dgst').waitFor()
    await page.getByRole('link', { name: '127.0.0.1' }).click()
    await page.getByRole('link', { name: 'participant.created' }).click()
    await page.getByRole('heading', { name: 'participant.created' }).waitFor()
    expect(await page.locator('.attempts > li').count()).toBe(2)
    expect(troubles).toEqual([])
  })
})
