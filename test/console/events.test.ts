/** Events in the console, and the links between events, records, deliveries, keys and users. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { disableWebhook } from '../../records/webhooks.ts'
import { assertReadable } from '../browser.ts'
import { newPayment } from '../handlers/new-records.ts'
import { type TestAccount, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { countClicks } from './clicks.ts'
import { blockIn, mainText, pathOfLink, tableOf, unescapeHtml } from './forms.ts'
import { newWebhookAdmin } from './hooks.ts'
import { follow, newSite, openFilters, SCREENS } from './site.ts'
import { newAccountOwner, newConsoleUser, visitor } from './visitors.ts'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const { app } = site

const createParticipant = async (account: TestAccount, name: string): Promise<string> =>
  (await app.as(account).post('/participants', { full_name: name })).body.id

describe('the list of events', () => {
  it('shows the newest first with the names of their records, and filters', async () => {
    const { account, owner } = await newAccountOwner(app)
    const id = await createParticipant(account, 'Ada Lovelace')
    const before = new Date(Date.now() + 60_000).toISOString().slice(0, 16)
    const other = await createParticipant(account, 'Grace Hopper')
    await app.as(account).patch(`/participants/${id}`, { phone: '+49 30 1' })
    await app.as(account).delete(`/participants/${other}`)
    const list = async (query: string): Promise<string[]> =>
      tableOf((await owner.get(`/events${query}`)).text, 'Events').map(([type = '', record = '']) =>
        `${type}: ${record}`.replace(other.slice(-12), '<ID>'),
      )
    expect(await list('')).toEqual([
      'participant.deleted: <ID> Participant',
      'participant.updated: Ada Lovelace Participant',
      'participant.created: <ID> Participant',
      'participant.created: Ada Lovelace Participant',
    ])
    expect(await list('?type=participant.created')).toHaveLength(2)
    expect(await list(`?id=${id}`)).toHaveLength(2)
    expect(await list(`?id=${id}&type=participant.updated`)).toHaveLength(1)
    expect(await list(`?since=${before}`)).toEqual([])
    expect(await list(`?until=${before}`)).toHaveLength(4)
    expect(await list(`?id=${randomUUID()}`)).toEqual([])
    const wrong = await owner.get('/events?id=4711&type=x')
    expect(wrong.status).toBe(422)
    expect(wrong.text).toContain('Enter the whole ID of a record, an event or a delivery.')
  })

  it('names payments and exports as their own pages do, unless they are hidden', async () => {
    const { account, owner } = await newAccountOwner(app)
    const client = app.as(account)
    const id = await createParticipant(account, 'Ada Lovelace')
    const payment = await newPayment(client, { participant_id: id })
    const { body } = await client.post('/exports', { resource: 'payments', format: 'csv' })
    const page = await owner.get('/events')
    expect(pathOfLink(page.text, 'Ada Lovelace, €125.00')).toBe(`/records/payments/${payment.id}`)
    expect(pathOfLink(page.text, 'Payments, CSV for spreadsheets')).toBe(
      `/records/exports/${body.id}`,
    )
    const access = { role: 'admin', permissions: { finance: 'none' } } as const
    const admin = await visitor(app, await newConsoleUser(app, account.accountId, access))
    const records = tableOf((await admin.get('/events')).text, 'Events').map(([, record]) => record)
    expect(records).toContain(`${payment.id.slice(-12)} Payment`)
  })

  it('has pages in both directions', async () => {
    const admin = await newWebhookAdmin(app)
    await admin.emit(60)
    const first = await admin.visitor.get('/events')
    const pages = [first]
    for (const label of ['Next', 'Next', 'Previous', 'Previous']) {
      const path = pathOfLink(pages.at(-1)?.text ?? '', label)
      pages.push(await admin.visitor.get(path ?? 'no link'))
    }
    const ids = pages.map(({ text }) =>
      [...text.matchAll(/href="\/console\/events\/([\da-f-]{36})"/g)].map(([, id]) => id),
    )
    expect(ids.map(({ length }) => length)).toEqual([25, 25, 10, 25, 25])
    expect(new Set(ids.slice(0, 3).flat()).size).toBe(60)
    expect(ids[3]).toEqual(ids[1])
    expect(ids[4]).toEqual(ids[0])
  })
})

describe('an event', () => {
  it('names its record, its cause, its changes and its payload', async () => {
    const { account, owner } = await newAccountOwner(app)
    const id = await createParticipant(account, 'Ada Lovelace')
    await app.as(account).patch(`/participants/${id}`, { phone: '+49 30 1' })
    const { data } = (
      await app.as(account).get(`/events?filter[resource_id]=${id}&sort=-created_at`)
    ).body
    const { text } = await owner.get(`/events/${data[0].id}`)
    expect(pathOfLink(text, 'Ada Lovelace')).toBe(`/records/participants/${id}`)
    expect(pathOfLink(text, 'All its events')).toBe(`/events?id=${id}`)
    expect(pathOfLink(text, 'Test Owner')).toBe(`/people/${account.userId}`)
    expect(pathOfLink(text, 'Test key')).toMatch(/^\/api-keys\//)
    expect(tableOf(text, 'Changes')).toEqual([['Phone', 'null', '"+49 30 1"']])
    expect(JSON.parse(blockIn(text, 'payload'))).toEqual({
      event_type: 'participant.updated',
      resource: { type: 'participant', id },
      data: [],
    })
    expect(mainText(text)).toContain('No enabled webhook was subscribed to this event.')

    await app.as(account).delete(`/participants/${id}`)
    const deleted = mainText((await owner.get(`/events/${data[0].id}`)).text)
    expect(deleted).toContain(`Participant ${id.slice(-12)} , deleted`)

    const access = { role: 'admin', permissions: { participants: 'none' } } as const
    const admin = await visitor(app, await newConsoleUser(app, account.accountId, access))
    const hidden = mainText((await admin.get(`/events/${data[1].id}`)).text)
    expect(hidden).toContain('The payload is hidden')
    expect(hidden).not.toContain('+49 30 1')
    expect((await admin.get('/events')).text).not.toContain('Ada Lovelace')
  })

  it('is sent again to one webhook, or to all that are enabled, once for each form', async () => {
    await using receiver = await startReceiver({ answers: [204, 204, 500, 204] })
    const admin = await newWebhookAdmin(app)
    const [first = '', second = '', disabled = ''] = [
      await admin.subscribe(`${receiver.url}?1`),
      await admin.subscribe(`${receiver.url}?2`),
      await admin.subscribe(`${receiver.url}?3`),
    ]
    await admin.emit()
    await receiver.received(3)
    const deliveries = await until('all attempts have ended', async () => {
      const all = await admin.deliveries()
      return all.every(({ attempts }) => attempts === 1) && all
    })
    await admin.write((scope) => disableWebhook(scope, disabled, new Date()))
    const path = `/events/${deliveries[0]?.eventId}`
    const page = await admin.visitor.get(path)
    for (const { id, webhookId } of deliveries)
      expect(page.text).toContain(`href="/console/webhooks/${webhookId}/deliveries/${id}"`)
    expect(mainText(page.text)).toContain('Resend to 2 webhooks')

    const one = deliveries.find(({ webhookId }) => webhookId === first)
    const shown = await admin.visitor.submit(`${path}/resend`, { delivery: one?.id ?? '' })
    expect(mainText(shown.text)).toContain('Sending now to 1 webhook.')
    expect((await receiver.received(4)).at(-1)?.path).toContain('?1')
    await admin.newest(first, 'delivered')

    const form = { 'form:key': randomUUID() }
    const all = await admin.visitor.submit(`${path}/resend`, form)
    expect(mainText(all.text)).toContain(
      'Sending now to 2 webhooks. 1 delivery not sent. The webhook is disabled. Enable it first.',
    )
    await receiver.received(6)
    await admin.newest(first, 'delivered')
    await admin.newest(second, 'delivered')
    await admin.visitor.submit(`${path}/resend`, form)
    const actions = (await admin.auditEntries()).map(({ action }) => action)
    expect(actions.filter((action) => action.startsWith('webhook.delivery_'))).toHaveLength(3)
    expect(receiver.requests).toHaveLength(6)
    const { status } = await admin.visitor.post(`${path}/resend`, { delivery: randomUUID() })
    expect(status).toBe(404)
  })
})

describe('links', () => {
  /** The ID in the log of a request by its `X-Request-Id`. */
  const findLogged = (requestId: string): Promise<string> =>
    until('the request is in the log', async () => {
      const row = await app.db.read('request_log').where({ request_id: requestId }).first('id')
      return row?.id
    })

  it('lead from a request to its record and event, and back', async () => {
    await using receiver = await startReceiver()
    const { account, owner } = await newAccountOwner(app)
    const api = app.as(account)
    await api.post('/webhooks', { url: receiver.url, event_types: ['*'] })
    const requestId = randomUUID()
    const headers = { 'X-Request-Id': requestId }
    const { id } = (await api.post('/participants', { full_name: 'Ada Lovelace' }, headers)).body
    const requestPath = `/requests/${await findLogged(requestId)}`
    const request = await owner.get(requestPath)
    expect(pathOfLink(request.text, 'Ada Lovelace')).toBe(`/records/participants/${id}`)
    const eventPath = pathOfLink(request.text, 'participant.created') ?? ''
    expect(eventPath).toMatch(/^\/events\//)

    const event = await owner.get(eventPath)
    expect(event.text).toContain(`href="/console${requestPath}"`)
    expect(mainText(event.text)).toContain('201 POST /public/v1/participants')
    const [, deliveryPath = ''] =
      /href="\/console(\/webhooks\/[^"]*deliveries[^"]*)"/.exec(event.text) ?? []
    const delivery = await owner.get(deliveryPath)
    expect(delivery.text).toContain(`href="/console${requestPath}"`)
    expect(pathOfLink(delivery.text, 'Ada Lovelace')).toBe(`/records/participants/${id}`)
    const record = await owner.get(`/records/participants/${id}`)
    expect(pathOfLink(record.text, 'participant.created')).toBe(eventPath)

    expect(pathOfLink(request.text, 'Access')).toBe(`/people/${account.userId}`)
    const keyPath = pathOfLink(request.text, 'Settings') ?? ''
    expect((await owner.get(keyPath)).text).toContain('Test key')
    const log = await owner.get(`/audit-log?target=${id}`)
    expect(pathOfLink(log.text, 'Event')).toBe(eventPath)
    const [, toRequest = ''] =
      /href="\/console(\/requests[^"]*)"/.exec(
        log.text.slice(log.text.indexOf('aria-label="Audit log"')),
      ) ?? []
    expect((await owner.get(unescapeHtml(toRequest))).to).toBe(requestPath)

    // Another request soon afterwards.
    await api.delete(`/participants/${id}`, { 'X-Request-Id': randomUUID() })
    const later = mainText((await owner.get(requestPath)).text)
    expect(later).toContain(`Participant ${id.slice(-12)} , deleted`)
    expect(later).not.toContain('participant.deleted')
  })

  it('lead from a batch to all its events', async () => {
    const { account, owner } = await newAccountOwner(app)
    const requestId = randomUUID()
    const items = Array.from({ length: 8 }, (_, index) => ({
      action: 'create',
      data: { full_name: `Person ${index}` },
    }))
    const { status } = await app
      .as(account)
      .post('/participants/batch', { items }, { 'X-Request-Id': requestId })
    expect(status).toBe(200)
    await createParticipant(account, 'Of another request')
    const { text } = await owner.get(`/requests/${await findLogged(requestId)}`)
    const all = await owner.get(pathOfLink(text, 'see all') ?? 'no link')
    expect(tableOf(all.text, 'Events')).toHaveLength(8)
    expect(mainText(all.text)).toContain('Only events that POST /public/v1/participants/batch')
    const stranger = (await newAccountOwner(app)).owner
    const path = pathOfLink(text, 'see all') ?? ''
    expect((await stranger.get(path)).status).toBe(404)
    expect((await owner.get('/events?request=x')).status).toBe(404)
  })

  it('lead from a delivery to its event and its record', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe(receiver.url)
    await admin.emit()
    const { id, eventId } = await admin.newest(webhookId, 'delivered')
    const { text } = await admin.visitor.get(`/webhooks/${webhookId}/deliveries/${id}`)
    expect(pathOfLink(text, eventId ?? '')).toBe(`/events/${eventId}`)
    expect(pathOfLink(text, 'All its events')).toMatch(/^\/events\?id=/)
  })

  it('lead from a key to its requests, and from a user to their keys and requests', async () => {
    const { account, owner } = await newAccountOwner(app)
    const colleague = await newConsoleUser(app, account.accountId)
    const { text } = await owner.get(`/people/${account.userId}`)
    expect(pathOfLink(text, 'With their keys')).toBe(`/requests?user=${account.userId}&range=30d`)
    const keysPath = pathOfLink(text, '1 key') ?? ''
    expect(keysPath).toBe(`/api-keys?user=${account.userId}`)
    const keys = await owner.get(keysPath)
    expect(pathOfLink(keys.text, 'Requests')).toMatch(/^\/requests\?key=[\da-f-]{36}&range=30d$/)
    expect(mainText(keys.text)).toContain('Only keys of Test Owner.')
    const none = await owner.get(`/api-keys?user=${colleague.userId}`)
    expect(mainText(none.text)).toContain('This user has no such keys.')
    expect(none.text).not.toContain('Test key')
  })
})

describe('in a browser', () => {
  it.each(SCREENS)(
    'a delivery by the ID of its event: two clicks at $viewport.width pixels',
    async (screen) => {
      await using receiver = await startReceiver()
      const admin = await newWebhookAdmin(app)
      const webhookId = await admin.subscribe(receiver.url)
      await admin.emit()
      const { id, eventId } = await admin.newest(webhookId, 'delivered')
      await using visited = await site.visit('', { ...screen, person: admin.manager })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await follow(page, 'Events')
      const field = page.getByLabel('Record, event or delivery ID')
      await assertReadable(page, 'the list of events')
      await openFilters(page)
      await field.fill(eventId ?? '')
      await field.press('Enter')
      await page.getByRole('link', { name: id.slice(-12) }).waitFor()
      expect(clicks()).toBe(2)
      await assertReadable(page, 'an event')
      await page.getByRole('button', { name: 'Resend' }).press('Enter')
      await page.getByText('Sending now to 1 webhook.').waitFor()
      await page.getByRole('button', { name: 'Resend' }).waitFor()
      expect(page.url()).toContain(`/events/${eventId}`)
      expect(troubles).toEqual([])
    },
  )

  it.each(SCREENS)(
    'a failed POST of the last hour: three clicks at $viewport.width pixels',
    async (screen) => {
      const account = await app.newAccount()
      const api = app.as(account)
      await api.get('/participants')
      expect((await api.post('/participants', { full_name: '' })).status).toBe(422)
      await until('the requests are in the log', async () => {
        const logged = app.db.read('request_log').where({ account_id: account.accountId })
        return (await logged.pluck('id')).length === 2
      })
      await using visited = await site.visit('', { ...screen, person: account })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await follow(page, 'API requests')
      await page.getByRole('button', { name: '1 h', exact: true }).press('Enter')
      await page.waitForURL(/range=1h/)
      const cause = page.getByRole('region', { name: 'Errors by cause' }).getByRole('row', {
        name: /422/,
      })
      await cause.getByRole('link').last().press('Enter')
      await page.getByRole('heading', { name: 'POST /public/v1/participants' }).waitFor()
      expect(clicks()).toBe(3)
      await assertReadable(page, 'a request')
      expect(troubles).toEqual([])
    },
  )
})
