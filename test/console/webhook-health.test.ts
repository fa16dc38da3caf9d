/** The health of webhooks: how attempts change it, in the console and in the metrics. */
import { describe, expect, it } from 'vitest'
import { type CountedAttempt, countAttempts } from '../../records/attempt-counts.ts'
import { transaction } from '../../records/database/transaction.ts'
import { disableDeadWebhook } from '../../records/dead-webhooks.ts'
import { DeletionTime } from '../../records/deletion-time.ts'
import { findWebhookHealth } from '../../records/reports/webhook-health.ts'
import { startDisablingDeadWebhooks } from '../../server/dead-webhooks.ts'
import { emitMany } from '../../webhooks/emit.ts'
import { assertReadable } from '../browser.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER, newEvents } from '../webhooks/harness.ts'
import { figuresOf, mainForm, mainText, tableOf } from './forms.ts'
import { loadWebhook, newWebhookAdmin } from './hooks.ts'
import { newSite, SCREENS } from './site.ts'
import { visitor } from './visitors.ts'

const HOUR_MS = 3_600_000
/** An open page shows a change of the health this soon after the attempt that caused the change. */
const VISIBLE_WITHIN_MS = 10_000

let clockOffsetMs = 0
const now = (): Date => new Date(Date.now() + clockOffsetMs)
const site = newSite({ role: 'all', now, environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const { app } = site

describe('webhook health', () => {
  /** The badge beside "Webhooks" in the navigation. */
  function badgeIn(text: string): string {
    const [, badge = ''] = text.match(/<span id="troubled-webhooks">(.*?)<\/a>/s) ?? []
    return badge.replace(/<[^>]*>/g, '').trim()
  }

  /** The number of webhooks in a state, in all accounts, from the metrics. */
  async function countWebhooks(state: string): Promise<number> {
    const { text } = await app.call('GET', '/metrics')
    return Number(text.match(new RegExp(`^muster_webhooks{state="${state}"} (\\d+)$`, 'm'))?.[1])
  }

  it('shows a failing endpoint on open pages, and never counts test events', async () => {
    // Three test events, three other events that fail, and one that is delivered.
    await using receiver = await startReceiver({ answers: [500, 500, 500, 500, 500, 500, 204] })
    const admin = await newWebhookAdmin(app)
    const other = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    const show = async (path: string) => (await admin.visitor.get(path)).text
    for (let count = 1; count <= 3; count++) {
      await admin.visitor.post(`/webhooks/${id}/test`)
      await receiver.received(count)
    }
    await admin.emit(1)
    await until('the attempt is counted', async () => {
      const { 'Last attempt': last } = figuresOf(await show(`/webhooks/${id}`))
      return last === '500'
    })
    expect(figuresOf(await show(`/webhooks/${id}`))).toMatchObject({
      'Attempts succeeded, 24 hours': '0 %',
      Waiting: '1',
    })
    expect(badgeIn(await show('/webhooks'))).toBe('')

    await using visited = await site.visit(`/webhooks/${id}`, { person: admin.manager })
    const { page, troubles } = visited
    await page.locator('#webhook-state').getByText('Degraded').waitFor()
    await admin.emit(2)
    await receiver.received(6)
    const timeout = VISIBLE_WITHIN_MS
    await page.getByText('Failing since').waitFor({ timeout })
    await page.locator('#webhook-state').getByText('Failing').waitFor({ timeout })
    await page.locator('#troubled-webhooks').getByText('1').waitFor({ timeout })
    expect(mainText(await show(`/webhooks/${id}`))).toMatch(
      /Failing since .* 3 attempts in a row failed, most recently with 500 \./,
    )
    for (const path of ['', '/webhooks', `/webhooks/${id}/settings`]) {
      expect(badgeIn(await show(path))).toBe('1 failing')
      expect(mainText(await show(path))).toContain('Failing')
    }
    expect(badgeIn((await other.visitor.get('/webhooks')).text)).toBe('')
    expect(await countWebhooks('failing')).toBe(1)
    await assertReadable(page, 'a failing webhook')
    expect(troubles).toEqual([])

    await admin.emit(1)
    await page.locator('#webhook-state').getByText('Degraded').waitFor({ timeout })
    expect(badgeIn(await show('/webhooks'))).toBe('')
  })

  it('disables a dead webhook; one form enables it, and another one sends what it missed', async () => {
    await using receiver = await startReceiver({ answers: [500, 500, 204] })
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    const emit = (count: number) =>
      admin.write((scope) => emitMany(scope, newEvents(count, 'task.created'), now()))
    clockOffsetMs = -25 * HOUR_MS
    await emit(1)
    await until('the failure is counted', () =>
      app.db.read('webhook_health').where({ webhook_id: id }).first(),
    )
    // The second attempt of the delivery becomes due, and fails 25 hours after the first one.
    clockOffsetMs = 0
    const disabling = startDisablingDeadWebhooks({
      db: app.db,
      log: app.log,
      clock: { findDeletionTime: async () => new DeletionTime(now()) },
      afterDays: 1,
    })
    await until('the webhook is disabled', async () => {
      disabling.wake()
      return !(await loadWebhook(admin, id)).enabled
    })
    await disabling.stop()
    await emit(2)

    for (const path of ['', '/webhooks', `/webhooks/${id}`]) {
      const { text } = await admin.visitor.get(path)
      expect(badgeIn(text)).toBe('1 failing')
      expect(mainText(text)).toContain('Disabled')
    }
    const [entry] = (await admin.auditEntries()).filter(
      ({ action }) => action === 'webhook.disabled',
    )
    expect(entry).toMatchObject({ targetId: id, details: { failing_since: expect.any(String) } })
    const owner = await visitor(app, admin.owner)
    expect(mainText((await owner.get('/audit-log')).text)).toMatch(
      /Disabled the webhook .* no attempt succeeded since .* Muster/,
    )

    const page = await admin.visitor.get(`/webhooks/${id}`)
    expect(mainText(page.text)).toContain('Disabled automatically')
    const enabled = await admin.visitor.submit(`/webhooks/${id}/enable`)
    expect(badgeIn(enabled.text)).toBe('')
    expect(enabled.text).toContain(`href="/console/webhooks/${id}/send-missed"`)
    const { to, fields } = mainForm((await admin.visitor.get(`/webhooks/${id}/send-missed`)).text)
    await admin.visitor.post(to, Object.fromEntries(fields))
    // After two failed attempts: the delivery that was cancelled, and the two missed events.
    await receiver.received(5)
  })

  it('an attempt in flight succeeds after its webhook is disabled: the page names no outage', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    const failingSince = Date.now() - HOUR_MS
    const { accountId } = admin.owner
    const attempt = { accountId, webhookId: id, durationMs: 20 }
    const count = (outcome: 'http_error' | 'success', status: number, endedAt: number) =>
      transaction(app.db, (trx) => countAttempts(trx, [{ ...attempt, outcome, status, endedAt }]))
    await count('http_error', 500, failingSince)
    await disableDeadWebhook(app.db, { id, accountId, failingSince }, now())
    const readPage = async () => mainText((await admin.visitor.get(`/webhooks/${id}`)).text)
    expect(await readPage()).toMatch(
      /Disabled automatically .* No attempt has succeeded since .* UTC/,
    )
    await count('success', 204, Date.now())
    expect(await readPage()).toMatch(/Disabled automatically [^.]*\. Nothing is sent\./)
  })

  it('adds the attempts of the last 24 hours up, without those of other webhooks', async () => {
    const admin = await newWebhookAdmin(app)
    const [id, quiet] = [
      await admin.subscribe('https://example.com/'),
      await admin.subscribe('https://example.com/quiet'),
    ]
    const attempt = (minutesAgo: number, isSuccess: boolean, durationMs = 20): CountedAttempt => ({
      accountId: admin.owner.accountId,
      webhookId: id,
      endedAt: Date.now() - minutesAgo * 60_000,
      durationMs,
      outcome: isSuccess ? 'success' : 'timeout',
      status: isSuccess ? 204 : null,
    })
    await transaction(app.db, (trx) =>
      countAttempts(trx, [
        attempt(26 * 60, false),
        ...Array.from({ length: 18 }, () => attempt(120, true)),
        attempt(110, false, 15_000),
        attempt(1, true, 400),
      ]),
    )
    const health = await findWebhookHealth(admin.scope, [id, quiet], new Date())
    expect(health.get(id)).toMatchObject({
      state: 'healthy',
      lastHour: { succeeded: 1, failed: 0 },
      lastDay: { succeeded: 19, failed: 1 },
      lastAttempt: { outcome: 'success', status: 204 },
      failures: 0,
    })
    expect(health.get(id)?.hours).toHaveLength(24)
    // The p95 is 400 ms. The stored counts know it only within a range of durations.
    expect(health.get(id)?.p95Ms).toBeGreaterThan(350)
    expect(health.get(id)?.p95Ms).toBeLessThan(470)
    expect(health.get(quiet)).toMatchObject({ state: 'no_traffic', lastAttempt: null, p95Ms: null })
    const list = await admin.visitor.get('/webhooks')
    expect(list.text).toContain('aria-label="Attempts by hour: 19 succeeded, 1 failed"')
    expect(mainText(list.text)).toMatch(/95 %/)
    const stranger = await newWebhookAdmin(app)
    expect(await findWebhookHealth(stranger.scope, [id], new Date())).toEqual(new Map())
  })

  it('an endpoint that hangs: is first in the list, and its p95 has no exact value', async () => {
    const admin = await newWebhookAdmin(app)
    await admin.subscribe('https://example.com/healthy')
    const id = await admin.subscribe('https://example.com/hangs')
    const attempt: CountedAttempt = {
      accountId: admin.owner.accountId,
      webhookId: id,
      endedAt: Date.now(),
      durationMs: 15_000,
      outcome: 'timeout',
      status: null,
    }
    await transaction(app.db, (trx) => countAttempts(trx, [attempt, attempt, attempt]))
    const { text } = await admin.visitor.get('/webhooks')
    expect(tableOf(text, 'Webhooks').map(([name]) => name)).toEqual([
      'example.com/hangs',
      'example.com/healthy',
    ])
    expect(mainText(text)).toContain('over 10 s')
    expect(mainText((await admin.visitor.get(`/webhooks/${id}`)).text)).toMatch(
      /3 attempts in a row failed, most recently with a timeout\. .* p95 duration over 10 s/,
    )
  })

  it('hostile names and URLs are escaped and do not break the layout', async () => {
    const admin = await newWebhookAdmin(app)
    const description = `"><script>alert(1)</script>' \u202Egnp.exe ${'W'.repeat(120)}`
    const url = `https://example.com/${'%22%3E'.repeat(300)}?<img src=x onerror=alert(2)>='`
    const created = await admin.visitor.post('/webhooks', { url, description, event_types: '*' })
    expect(created.status).toBe(200)
    const { id } = await admin.scope.rows('webhooks').first('id')
    for (const path of [
      '/webhooks',
      `/webhooks/${id}`,
      `/webhooks/${id}/settings`,
      `/webhooks/${id}/edit`,
      `/webhooks/${id}/secret`,
    ]) {
      const { text, status } = await admin.visitor.get(path)
      expect(status).toBe(200)
      expect(text, path).not.toMatch(/<script>alert|<img src=x/)
    }
    for (const screen of SCREENS) {
      await using visited = await site.visit('/webhooks', { person: admin.manager, ...screen })
      const { page, troubles } = visited
      expect(await page.locator('td a').first().textContent()).toBe(description.trim())
      for (const path of ['', `/${id}`, `/${id}/settings`, `/${id}/edit`, `/${id}/secret`]) {
        await page.goto(`${app.url}/console/webhooks${path}`)
        await assertReadable(page, `${path} at ${screen.viewport.width}`)
      }
      expect(troubles).toEqual([])
    }
  })
})
