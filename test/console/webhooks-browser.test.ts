import { describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { loadWebhook, newWebhookAdmin, SECRET_PATTERN, subscribeAndMiss } from './hooks.ts'
import { newSite, SCREENS } from './site.ts'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe.runIf(inject('database') === 'sqlite')('webhooks in a browser', () => {
  it('creates a webhook, sends a test event, and shows deliveries as they appear', async () => {
    await using receiver = await startReceiver({
      answers: [{ status: 200, headers: { 'x-served-by': 'the shop' }, body: '{"ok":true}' }],
    })
    const admin = await newWebhookAdmin(site.app)
    await using visited = await site.visit('/webhooks', { person: admin.manager })
    const { page, troubles } = visited
    await assertReadable(page, 'no webhooks')
    await page.getByRole('link', { name: 'Create webhook' }).click()
    await page.getByLabel('URL').fill('http://10.0.0.1/')
    await page.getByText('10.0.0.1 is not public').waitFor()
    await page.getByLabel('URL').fill(receiver.url)
    await page.getByText('This URL is valid.').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('field-url')
    await page.getByLabel('Description').fill('The shop')
    await page.getByRole('group', { name: 'Participant' }).getByLabel('Created').check()
    await assertReadable(page, 'a new webhook')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByRole('heading', { name: 'Webhook created' }).waitFor()
    await assertReadable(page, 'the secret')
    expect(await page.locator('.code-block code').textContent()).toMatch(SECRET_PATTERN)
    await page.getByRole('link', { name: 'Done' }).click()
    await page.getByText('No deliveries yet').waitFor()

    await page.getByRole('button', { name: 'Send test event' }).click()
    await page.getByText('Test event sent.').waitFor()
    const row = page.getByRole('row').filter({ hasText: 'webhook.test' })
    await row.getByText('Delivered').waitFor()
    expect(page.url()).toMatch(/\/console\/webhooks\/[\w-]+$/)
    // Events from outside the page appear too.
    await admin.emit()
    await page
      .getByRole('row')
      .filter({ hasText: 'participant.created' })
      .getByText('Delivered')
      .waitFor()

    await row.getByRole('link', { name: 'webhook.test' }).click()
    const opened = page.locator('.opened .delivery')
    await opened.waitFor()
    expect(await opened.textContent()).toContain('x-served-by: the shop')
    expect(await opened.getByRole('group', { name: 'payload' }).textContent()).toContain(
      '"event_type": "webhook.test"',
    )
    expect(await page.title()).toBe('The shop · Muster')
    await assertReadable(page, 'an open row')
    expect(await page.locator('.log tbody').count()).toBe(2)
    // The log does not reload while a row is open, otherwise every 3 seconds.
    await admin.emit()
    await receiver.received(3)
    await page.waitForTimeout(4_000)
    expect(await page.locator('.log tbody').count()).toBe(2)
    await row.getByRole('link', { name: 'webhook.test' }).click()
    await expect.poll(() => page.locator('.log tbody').count(), { timeout: 15_000 }).toBe(3)
    expect(await opened.count()).toBe(0)
    expect(troubles).toEqual([])
  })

  it('counts missed events, and sends them with live progress', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(site.app)
    const id = await subscribeAndMiss(admin, receiver.url, 40)
    await using visited = await site.visit(`/webhooks/${id}`, { person: admin.manager })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'Send missed events' }).click()
    await page.getByText('40 deliveries').waitFor()
    await page.getByLabel('Maximum per second').fill('20')
    await page.getByLabel('Maximum per second').press('Enter')
    await page.waitForURL(/rate=20/)
    await page.getByText('about 2 seconds').waitFor()
    await assertReadable(page, 'the form for missed events')
    await page.getByRole('button', { name: 'Send missed events' }).click()
    await page.getByText('Sending started.').waitFor()
    const progress = page.getByRole('progressbar')
    await progress.waitFor()
    await assertReadable(page, 'a bulk job')
    await page.getByText('Completed').waitFor()
    expect(await progress.getAttribute('value')).toBe('40')
    await page.goto(`${site.app.url}/console/webhooks/jobs`)
    await assertReadable(page, 'bulk jobs')
    expect(troubles).toEqual([])
  })

  it('prepares a signing secret, and activates it after a confirmation', async () => {
    const admin = await newWebhookAdmin(site.app)
    const id = await admin.subscribe('https://example.com/')
    await using visited = await site.visit(`/webhooks/${id}/settings`, {
      person: admin.manager,
    })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'View or rotate' }).click()
    await page.getByRole('button', { name: 'Prepare new secret' }).click()
    await page.getByRole('heading', { name: 'Next secret created' }).waitFor()
    await page.getByRole('link', { name: 'Done' }).click()
    await assertReadable(page, 'the secret of a webhook')
    await page.getByRole('button', { name: 'Activate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click()
    await page.getByText('New secret activated.').waitFor()
    expect(troubles).toEqual([])
  })

  it('disables a webhook after a confirmation', async () => {
    const admin = await newWebhookAdmin(site.app)
    const id = await admin.subscribe('https://example.com/')
    await using visited = await site.visit(`/webhooks/${id}/settings`, {
      person: admin.manager,
    })
    const { page, troubles } = visited
    await page.getByRole('button', { name: 'Disable' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Scheduled retries are cancelled and marked failed.').waitFor()
    await assertReadable(page, 'the confirmation')
    await dialog.getByRole('button', { name: 'Close' }).click()
    expect((await loadWebhook(admin, id)).enabled).toBe(true)
    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog.getByRole('button', { name: 'Disable webhook' }).click()
    await page.getByText('Webhook disabled. Nothing is sent until you enable it again.').waitFor()
    await assertReadable(page, 'a disabled webhook')
    expect(troubles).toEqual([])
  })

  it.each(SCREENS)('adds a Slack channel by keyboard at $viewport.width px', async (screen) => {
    const admin = await newWebhookAdmin(site.app)
    await using visited = await site.visit('/notifications', { person: admin.manager, ...screen })
    const { page, troubles } = visited
    await page.getByLabel('Incoming webhook URL').focus()
    await page.keyboard.type('https://hooks.slack.com/services/T/B/X')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Slack #ops')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await assertReadable(page, 'notifications')
    await page.keyboard.press('Enter')
    await page.getByText('Channel added.').waitFor()
    await page.goto(`${site.app.url}/console/notifications`)
    await page.getByText('6 of 7').waitFor()
    await assertReadable(page, 'notifications with a channel')
    await page.getByRole('link', { name: 'Edit Slack #ops' }).press('Enter')
    await page.getByRole('heading', { name: 'Notices for Slack #ops' }).waitFor()
    await assertReadable(page, 'a channel')
    expect(troubles).toEqual([])
  })

  it('a webhook with failed and missed deliveries is readable on a narrow dark screen', async () => {
    await using receiver = await startReceiver({ answers: [500, 204] })
    const admin = await newWebhookAdmin(site.app)
    const id = await subscribeAndMiss(admin, receiver.url, 1)
    await admin.emit(2)
    await receiver.received(2)
    const [, narrow] = SCREENS
    await using visited = await site.visit('/webhooks', { person: admin.manager, ...narrow })
    const { page, troubles } = visited
    await assertReadable(page, 'webhooks')
    const states = ['?state=failed&type=task.created', '?id=x']
    for (const path of ['', '/send-missed', '/retry-failed', ...states]) {
      await page.goto(`${site.app.url}/console/webhooks/${id}${path}`)
      await assertReadable(page, path)
    }
    // The query `?id=x` gets 422.
    expect(troubles.filter((trouble) => !trouble.includes('422'))).toEqual([])
  })
})
