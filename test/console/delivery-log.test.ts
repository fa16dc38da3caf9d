import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp } from '../helpers.ts'
import { NEVER } from '../webhooks/harness.ts'
import { deliveryIdsIn, fieldErrors, mainText, pathOfLink } from './forms.ts'
import { newWebhookAdmin, type WebhookAdmin } from './hooks.ts'
import { type StoredDelivery, storeDeliveries } from './stored-deliveries.ts'

const HOUR_MS = 3_600_000

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe('the delivery log', () => {
  it('filters by state, event, time and ID from the URL', async () => {
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe('https://example.com/')
    const eventId = uuidv7()
    const event = {
      id: eventId,
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: randomUUID(),
      data: '[]',
      created_at: 1,
    }
    await admin.write((scope) => scope.insert('events', event))
    const deliveries: StoredDelivery[] = [
      { hoursAgo: 1, state: 'failed' },
      { hoursAgo: 2, type: 'task.updated' },
      { hoursAgo: 3, state: 'failed', type: 'task.updated', eventId },
      { hoursAgo: 30 },
      { hoursAgo: 0.5, state: 'failed', type: 'webhook.test' },
    ]
    const ids = await storeDeliveries(admin, webhookId, deliveries)
    const other = await admin.subscribe('https://example.com/other')
    await storeDeliveries(admin, other, [{ hoursAgo: 1, state: 'failed', eventId }])
    const listedIndexes = async (query: string): Promise<number[]> => {
      const { text, status } = await admin.visitor.get(`/webhooks/${webhookId}?${query}`)
      expect(status, query).toBe(200)
      return deliveryIdsIn(text).map((id) => ids.indexOf(id))
    }
    const ago = (hours: number): string =>
      new Date(Date.now() - hours * HOUR_MS).toISOString().slice(0, 16)

    /** `indexes` in `deliveries`, in the order of the page. */
    const cases: { query: string; indexes: number[] }[] = [
      { query: '', indexes: [4, 0, 1, 2, 3] },
      { query: 'state=failed', indexes: [4, 0, 2] },
      { query: 'state=delivered', indexes: [1, 3] },
      { query: 'state=pending', indexes: [] },
      { query: 'type=task.updated', indexes: [1, 2] },
      { query: 'type=webhook.test', indexes: [4] },
      { query: 'state=failed&type=task.updated', indexes: [2] },
      { query: `since=${ago(2.5)}`, indexes: [4, 0, 1] },
      { query: `until=${ago(2.5)}`, indexes: [2, 3] },
      { query: `since=${ago(4)}&until=${ago(1.5)}&state=failed`, indexes: [2] },
      { query: `id=${ids[1]}`, indexes: [1] },
      { query: `id=+${ids[1]?.toUpperCase()}`, indexes: [1] },
      { query: `id=${eventId}`, indexes: [2] },
      { query: `id=${eventId}&state=delivered`, indexes: [] },
      { query: `id=${randomUUID()}`, indexes: [] },
    ]
    for (const { query, indexes } of cases)
      expect(await listedIndexes(query), query).toEqual(indexes)

    const { text } = await admin.visitor.get(
      `/webhooks/${webhookId}?state=failed&type=task.updated&id=${ids[2]}`,
    )
    expect(text).toContain('<option value="task.updated" selected>')
    expect(text).toContain(`value="${ids[2]}"`)
    expect(pathOfLink(text, 'Delivered')).toBe(
      `/webhooks/${webhookId}?state=delivered&type=task.updated&id=${ids[2]}`,
    )
    expect(pathOfLink(text, 'Clear filters')).toBe(`/webhooks/${webhookId}?state=failed`)
    const all = (await admin.visitor.get(`/webhooks/${webhookId}?until=${ago(2)}`)).text
    const [, lastDay = ''] = pathOfLink(all, '24 hours')?.split('?') ?? []
    expect(await listedIndexes(lastDay)).toEqual([4, 0, 1, 2])
  })

  it('invalid filters: 422 with an error for each, and no deliveries', async () => {
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe('https://example.com/')
    await storeDeliveries(admin, webhookId, [{ hoursAgo: 1 }])
    const cases: [query: string, errors: Record<string, string>][] = [
      ['id=%22%3E%3Cscript%3E', { id: 'Enter the whole ID of a delivery or an event.' }],
      [
        'since=yesterday&until=2026-13-01T00:00',
        {
          since: expect.stringContaining('Enter a date and time'),
          until: expect.stringContaining('Enter a date and time'),
        },
      ],
      ['since=2026-01-02T00:00&until=2026-01-01T00:00', { until: 'Choose a time after “From”.' }],
      ['type=task.exploded', { type: 'Choose an event from the list.' }],
    ]
    for (const [query, errors] of cases) {
      const { text, status } = await admin.visitor.get(`/webhooks/${webhookId}?${query}`)
      expect(status, query).toBe(422)
      expect(fieldErrors(text), query).toEqual(errors)
      expect(deliveryIdsIn(text), query).toEqual([])
      expect(text).not.toContain('"><script>')
    }
    expect((await admin.visitor.get(`/webhooks/${webhookId}?state=exploded`)).status).toBe(422)
    // An invalid cursor is ignored.
    expect(
      deliveryIdsIn((await admin.visitor.get(`/webhooks/${webhookId}?before=x&after=%00`)).text),
    ).toHaveLength(1)
  })

  describe('pages', () => {
    let admin: WebhookAdmin
    let webhookId: string
    let ids: string[]
    beforeAll(async () => {
      admin = await newWebhookAdmin(app)
      webhookId = await admin.subscribe('https://example.com/')
      const deliveries = Array.from({ length: 60 }, (_, index) => ({
        hoursAgo: 0.01 * (index + 1),
        state: index % 2 ? 'failed' : 'delivered',
      }))
      ids = await storeDeliveries(admin, webhookId, deliveries)
    })

    /** The text of the first page and of those that the link leads to, one after the other. */
    async function follow(first: string, label: 'Next' | 'Previous'): Promise<string[]> {
      const pages = [first]
      for (let to = pathOfLink(first, label); to !== undefined; ) {
        const { text } = await admin.visitor.get(to)
        pages.push(text)
        to = pathOfLink(text, label)
      }
      return pages
    }

    it.each([
      { query: '', isListed: () => true, lengths: [25, 25, 10] },
      { query: '?state=failed', isListed: (index: number) => index % 2 === 1, lengths: [25, 5] },
      { query: '?state=delivered', isListed: (index: number) => index % 2 === 0, lengths: [25, 5] },
    ])('forward and back have no gaps or duplicates ($query)', async (row) => {
      const first = await admin.visitor.get(`/webhooks/${webhookId}${row.query}`)
      const pages = await follow(first.text, 'Next')
      const listed = pages.map(deliveryIdsIn)
      expect(listed.flat()).toEqual(ids.filter((_, index) => row.isListed(index)))
      expect(listed.map(({ length }) => length)).toEqual(row.lengths)
      const back = await follow(pages.at(-1) ?? '', 'Previous')
      expect(back.map(deliveryIdsIn)).toEqual(listed.toReversed())
    })

    it('only the first one reloads, and the others link to it', async () => {
      const first = await admin.visitor.get(`/webhooks/${webhookId}`)
      expect(first.text).toContain('hx-trigger="every')
      const second = await admin.visitor.get(`/webhooks/${webhookId}?before=${ids[24]}`)
      expect(second.text).not.toContain('hx-trigger="every')
      expect(pathOfLink(second.text, 'Newest')).toBe(`/webhooks/${webhookId}`)
    })
  })

  it('a rare match: the search stops at a limit and continues on the next page', async () => {
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe('https://example.com/')
    // A search reads at most 10,000 rows.
    const others: StoredDelivery[] = Array.from({ length: 10_000 }, (_, index) => ({
      hoursAgo: 1 + index / 10_000,
      type: 'task.updated',
    }))
    const ids = await storeDeliveries(admin, webhookId, [
      ...others,
      { hoursAgo: 3, type: 'task.deleted' },
    ])
    const first = await admin.visitor.get(`/webhooks/${webhookId}?type=task.deleted`)
    expect(deliveryIdsIn(first.text)).toEqual([])
    expect(mainText(first.text)).toContain(
      'No match among the newest deliveries. Older ones may match.',
    )
    const next = await admin.visitor.get(pathOfLink(first.text, 'Next') ?? '')
    expect(deliveryIdsIn(next.text)).toEqual(ids.slice(-1))
    expect(pathOfLink(next.text, 'Next')).toBeUndefined()
  })
})
