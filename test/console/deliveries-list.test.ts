/** The list of the deliveries of all webhooks. */
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { startReceiver } from '../receiver.ts'
import { withRowsRead } from '../records/plans.ts'
import { NEVER } from '../webhooks/harness.ts'
import { deliveryIdsIn, fieldErrors, mainText, pathOfLink } from './forms.ts'
import { newWebhookAdmin } from './hooks.ts'
import { newSite, SCREENS } from './site.ts'
import { type StoredDelivery, storeDeliveries } from './stored-deliveries.ts'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const { app } = site

describe('the deliveries of all webhooks', () => {
  it('lists failed ones first, and those of each state, webhook, event and ID', async () => {
    const admin = await newWebhookAdmin(app)
    const shop = await admin.subscribe('https://example.com/shop')
    const crm = await admin.subscribe('https://example.com/crm')
    const [newest = '', delivered = ''] = await storeDeliveries(admin, shop, [
      { hoursAgo: 1, state: 'failed' },
      { hoursAgo: 2 },
    ])
    const [first = '', retrying = '', update = ''] = await storeDeliveries(admin, crm, [
      { hoursAgo: 0.5, state: 'failed' },
      { hoursAgo: 3, state: 'retrying' },
      { hoursAgo: 4, state: 'failed', type: 'task.updated' },
    ])
    const deleted = await admin.subscribe('https://example.com/deleted')
    await storeDeliveries(admin, deleted, [{ hoursAgo: 1, state: 'failed' }])
    await admin.visitor.submit(`/webhooks/${deleted}/delete`)
    const other = await newWebhookAdmin(app)
    const theirs = await other.subscribe('https://example.com/theirs')
    await storeDeliveries(other, theirs, [{ hoursAgo: 1, state: 'failed' }])

    const ago = (hours: number): string =>
      new Date(Date.now() - hours * 3_600_000).toISOString().slice(0, 16)
    const cases: [query: string, ids: string[]][] = [
      ['', [first, newest, update]],
      ['?state=failed', [first, newest, update]],
      ['?state=retrying', [retrying]],
      ['?state=pending', []],
      ['?state=delivered', [delivered]],
      ['?state=all', [first, newest, delivered, retrying, update]],
      [`?state=all&webhook=${shop}`, [newest, delivered]],
      ['?type=task.updated', [update]],
      [`?since=${ago(2)}`, [first, newest]],
      [`?state=all&id=${delivered}`, [delivered]],
    ]
    for (const [query, ids] of cases) {
      const { text, status } = await admin.visitor.get(`/deliveries${query}`)
      expect(status, query).toBe(200)
      expect(deliveryIdsIn(text), query).toEqual(ids)
    }
    const { text } = await admin.visitor.get('/deliveries')
    expect(text).toContain(`href="/console/webhooks/${crm}"><bdi>example.com/crm</bdi>`)
    expect(pathOfLink(text, 'Retrying')).toBe('/deliveries?state=retrying')
    const wrong = await admin.visitor.get(`/deliveries?webhook=${theirs}`)
    expect([wrong.status, fieldErrors(wrong.text)]).toEqual([
      422,
      { webhook: 'Choose a webhook from the list.' },
    ])
  })

  it('says what there is when no delivery has failed, and without webhooks', async () => {
    const admin = await newWebhookAdmin(app)
    expect(mainText((await admin.visitor.get('/deliveries')).text)).toContain('Create webhook')
    await admin.subscribe('https://example.com/')
    const { text } = await admin.visitor.get('/deliveries')
    expect(mainText(text)).toContain('No failed deliveries')
  })

  it.each([
    { query: '', lengths: [25, 25, 10] },
    { query: '?state=delivered', lengths: [25, 25, 25, 5] },
    { query: '?state=all', lengths: [25, 25, 25, 25, 25, 15] },
  ])('forward and back have no gaps or duplicates ($query)', async ({ query, lengths }) => {
    const admin = await newWebhookAdmin(app)
    const webhooks = [
      await admin.subscribe('https://example.com/one'),
      await admin.subscribe('https://example.com/two'),
    ]
    const stored = Array.from({ length: 140 }, (_, index) => ({
      webhookId: webhooks[index % 7 < 2 ? 0 : 1] ?? '',
      delivery: { hoursAgo: 0.01 * (index + 1), state: index % 7 < 3 ? 'failed' : 'delivered' },
    }))
    const ids = new Map<number, string>()
    for (const { webhookId, delivery } of stored)
      ids.set(delivery.hoursAgo, (await storeDeliveries(admin, webhookId, [delivery]))[0] ?? '')
    const state = query.split('=')[1] ?? 'failed'
    const expected = stored
      .filter(({ delivery }) => state === 'all' || delivery.state === state)
      .map(({ delivery }) => ids.get(delivery.hoursAgo))
    const pages: string[] = []
    for (let to: string | undefined = `/deliveries${query}`; to !== undefined; ) {
      const { text } = await admin.visitor.get(to)
      pages.push(text)
      to = pathOfLink(text, 'Next')
    }
    const listed = pages.map(deliveryIdsIn)
    expect(listed.flat()).toEqual(expected)
    expect(listed.map(({ length }) => length)).toEqual(lengths)
    const back: string[] = [pages.at(-1) ?? '']
    for (let to = pathOfLink(back[0] ?? '', 'Previous'); to !== undefined; ) {
      const { text } = await admin.visitor.get(to)
      back.push(text)
      to = pathOfLink(text, 'Previous')
    }
    expect(back.map(deliveryIdsIn)).toEqual(listed.toReversed())
  })

  it('a rare match: each page ends where the rows of a webhook were no longer read', async () => {
    const admin = await newWebhookAdmin(app)
    const busy = await admin.subscribe('https://example.com/busy')
    const quiet = await admin.subscribe('https://example.com/quiet')
    // A search reads at most 10,000 rows, so 5,000 of each of two webhooks.
    const others: StoredDelivery[] = Array.from({ length: 5_000 }, (_, index) => ({
      hoursAgo: 1 + index / 5_000,
      type: 'task.updated',
    }))
    const [, old = ''] = await storeDeliveries(admin, busy, [
      ...others.slice(0, 1),
      { hoursAgo: 3, type: 'task.deleted' },
      ...others.slice(1),
    ])
    const [recent = '', oldest = ''] = await storeDeliveries(admin, quiet, [
      { hoursAgo: 0.5, type: 'task.deleted' },
      { hoursAgo: 4, type: 'task.deleted' },
    ])
    const first = await admin.visitor.get('/deliveries?state=all&type=task.deleted')
    expect(deliveryIdsIn(first.text)).toEqual([recent])
    expect(mainText(first.text)).toContain('There may be more matches.')
    const next = await admin.visitor.get(pathOfLink(first.text, 'Next') ?? '')
    expect(deliveryIdsIn(next.text)).toEqual([old, oldest])
  })
})

it.runIf(inject('database') === 'postgres')(
  'an index finds the deliveries of each state, among many others',
  async () => {
    const admin = await newWebhookAdmin(app)
    const hanging = await admin.subscribe('https://example.com/hanging')
    const failing = await admin.subscribe('https://example.com/failing')
    await storeDeliveries(admin, failing, [{ hoursAgo: 48, state: 'failed' }])
    const quiet = await admin.subscribe('https://example.com/quiet')
    const rowsOf = (webhookId: string, state: string, hoursAgo = 0) =>
      Array.from({ length: 20_000 }, (_, index) => {
        const at = Date.now() - hoursAgo * 3_600_000 - index * 1_000
        const row = { id: uuidv7({ msecs: at }), event_type: 'task.created', body: Buffer.from('') }
        return { ...row, webhook_id: webhookId, state, created_at: at, updated_at: at }
      })
    await admin.write((scope) => scope.insert('deliveries', rowsOf(hanging, 'retrying')))
    await admin.write((scope) => scope.insert('deliveries', rowsOf(failing, 'delivered')))
    // PostgreSQL prefers the primary key if many rows are of the webhook.
    for (const hoursAgo of [100, 200, 300])
      await admin.write((scope) => scope.insert('deliveries', rowsOf(quiet, 'delivered', hoursAgo)))
    await app.db.write.raw('vacuum analyze deliveries')
    for (const [query, length] of [
      ['', 1],
      ['?state=all', 25],
      [`?state=all&webhook=${quiet}`, 25],
    ] as const) {
      const { result, statements } = await withRowsRead(
        app.db,
        { statement: /as "part"/, node: /Index.*Scan|Seq Scan/ },
        () => admin.visitor.get(`/deliveries${query}`),
      )
      expect(deliveryIdsIn(result.text)).toHaveLength(length)
      expect(statements[0]?.rowsRead, query).toBeLessThan(100)
    }
  },
)

// The browser is the subject, not the database.
describe.runIf(inject('database') === 'sqlite').each(SCREENS)('at $viewport.width px', (screen) => {
  it('leads from the overview to the failed deliveries, and one announcement says how a retry ended', async () => {
    // The body of the stored delivery is no event.
    await using receiver = await startReceiver({ answers: [500, 204], validate: false })
    const admin = await newWebhookAdmin(app)
    await admin.subscribe('https://example.com/')
    const id = await admin.subscribe(receiver.url)
    await storeDeliveries(admin, id, [{ hoursAgo: 1, state: 'failed' }])
    await using visited = await site.visit('', { person: admin.manager, ...screen })
    const { page, troubles } = visited
    const figure = page.locator('.stat').filter({ hasText: 'Failed deliveries' })
    await figure.getByRole('link', { name: '1' }).press('Enter')
    await page.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor()
    const row = page.locator('.log tbody')
    await row.getByRole('link', { name: '127.0.0.1' }).waitFor()
    await assertReadable(page, 'the list of deliveries')
    const announced = page.locator('#toast .toast > p')
    await row.getByRole('button', { name: 'Retry' }).press('Enter')
    await announced.getByText('Attempt 1 failed. The endpoint responded with status 500.').waitFor()
    expect(await announced.allTextContents()).toHaveLength(1)
    await row.getByRole('link', { name: 'task.created' }).press('Enter')
    await row.getByText('The manual attempt failed.').waitFor()
    await row.getByRole('button', { name: 'Retry' }).press('Enter')
    await announced.getByText('Attempt 2 succeeded.').waitFor()
    expect(troubles).toEqual([])
  })
})
