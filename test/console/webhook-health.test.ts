/** The health of webhooks in the console. */
import { randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountScope } from '../../records/database/scope.ts'
import { findDeliveryHealth } from '../../records/reports/delivery-health.ts'
import { assertReadable, openBrowser } from '../browser.ts'
import { startApp, type TestApp } from '../helpers.ts'
import { NEVER } from '../webhooks/harness.ts'
import { mainText } from './forms.ts'
import { newWebhookAdmin, type WebhookAdmin } from './hooks.ts'
import { visit } from './visitors.ts'

const HOUR_MS = 3_600_000

let app: TestApp
let browser: Browser
beforeAll(async () => {
  app = await startApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
  browser = await openBrowser()
})
afterAll(async () => {
  await browser?.close()
  await app?.[Symbol.asyncDispose]()
})

describe('webhook health', () => {
  interface Given {
    state: string
    hoursAgo: number
    type?: string
  }

  async function store(admin: WebhookAdmin, webhookId: string, given: Given[]): Promise<void> {
    const rows = given.map(({ state, hoursAgo, type = 'task.created' }) => {
      const at = Math.round(Date.now() - hoursAgo * HOUR_MS)
      const id = uuidv7({ msecs: at })
      const waits =
        state === 'retrying' ? { next_attempt_at: Date.now() + HOUR_MS, queued_at: Date.now() } : {}
      return {
        id,
        webhook_id: webhookId,
        event_type: type,
        body: Buffer.from('{}'),
        state,
        attempts: 1,
        created_at: at,
        updated_at: at,
        next_attempt_at: null,
        queued_at: null,
        ...waits,
      }
    })
    await admin.write((own) => own.insert('deliveries', rows))
  }

  it('counts by hour, without test events, older deliveries and other webhooks', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    const other = await admin.subscribe('https://example.com/other')
    await store(admin, id, [
      ...Array(3).fill({ state: 'delivered', hoursAgo: 0.5 }),
      { state: 'failed', hoursAgo: 0.6 },
      { state: 'failed', hoursAgo: 0.1, type: 'webhook.test' },
      { state: 'delivered', hoursAgo: 23.5 },
      { state: 'failed', hoursAgo: 24.5 },
      { state: 'retrying', hoursAgo: 30 },
      { state: 'retrying', hoursAgo: 2.5 },
    ])
    await store(admin, other, [{ state: 'failed', hoursAgo: 1 }])
    const health = (await findDeliveryHealth(admin.scope, [id, other], new Date())).get(id)
    expect(health).toMatchObject({
      share: 4 / 5,
      failed: 1,
      retrying: 2,
      pending: 0,
      isSample: false,
    })
    expect((Date.now() - (health?.oldestWaitingSince ?? 0)) / HOUR_MS).toBeCloseTo(30, 1)
    expect(health?.hours).toHaveLength(24)
    expect(health?.hours[0]).toMatchObject({ delivered: 1, failed: 0, waiting: 0 })
    expect(health?.hours[21]).toMatchObject({ delivered: 0, failed: 0, waiting: 1 })
    expect(health?.hours[23]).toMatchObject({ delivered: 3, failed: 1, waiting: 0 })

    const list = await admin.visitor.get('/webhooks')
    expect(mainText(list.text)).toMatch(/80 % 2 oldest 1 d ago/)
    expect(list.text).toContain('aria-label="By hour: 4 delivered, 1 in progress, 1 failed"')
    expect(mainText((await admin.visitor.get(`/webhooks/${id}`)).text)).toContain('80 % 4 of 5')
    const strange = accountScope({ dialect: app.db.dialect, sql: app.db.read }, randomUUID())
    expect((await findDeliveryHealth(strange, [id], new Date())).get(id)).toMatchObject({
      share: null,
      failed: 0,
    })
  })

  it('estimates a busy webhook from a sample of each hour', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    await store(admin, id, [
      ...Array(2_000).fill({ state: 'delivered', hoursAgo: 0.5 }),
      ...Array(1_200).fill({ state: 'failed', hoursAgo: 2.5 }),
    ])
    const health = (await findDeliveryHealth(admin.scope, [id], new Date())).get(id)
    expect(health).toMatchObject({
      isSample: true,
      sampleSize: 417,
      failed: 1_000,
      countedUpTo: 1_000,
      share: 0.5,
    })
    const shown = mainText((await admin.visitor.get(`/webhooks/${id}`)).text)
    expect(shown).toContain('≈ 50 % estimated')
    expect(shown).toContain('1,000+')
  })

  it('hostile names and URLs are escaped and do not break the layout', async () => {
    const admin = await newWebhookAdmin(app)
    const description = `"><script>alert(1)</script>' \u202Egnp.exe ${'W'.repeat(120)}`
    const url = `https://example.com/${'%22%3E'.repeat(300)}?<img src=x onerror=alert(2)>='`
    const made = await admin.visitor.post('/webhooks', { url, description, event_types: '*' })
    expect(made.status).toBe(200)
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
    for (const width of [1280, 390]) {
      await using visited = await visit(app, browser, '/webhooks', {
        person: admin.manager,
        viewport: { width, height: 860 },
      })
      const { page, troubles } = visited
      expect(await page.locator('td a').first().textContent()).toBe(description.trim())
      for (const path of ['', `/${id}`, `/${id}/settings`, `/${id}/edit`, `/${id}/secret`]) {
        await page.goto(`${app.url}/console/webhooks${path}`)
        await assertReadable(page, `${path} at ${width}`)
      }
      expect(troubles).toEqual([])
    }
  })
})
