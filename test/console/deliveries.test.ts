/** The log of a webhook in the console: what is found in it, what a delivery shows, and what can be done with one. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { listLastAttempts } from '../../records/attempts.ts'
import { disableWebhook } from '../../records/webhooks.ts'
import { assertReadable, openBrowser } from '../browser.ts'
import { startApp, type TestApp, until } from '../helpers.ts'
import { type Answer, startReceiver } from '../receiver.ts'
import { errorsIn, unescaped } from './forms.ts'
import { newOffice, type Office, textOf } from './hooks.ts'
import { newPerson, visit, visitor } from './visitors.ts'

/** None comes by itself before a test is over. */
const NEVER = '600,600,600,600,600,600,600,600,600'
const QUICK = '0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03,0.03'
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

interface Stored {
  hoursAgo: number
  state?: string
  type?: string
  eventId?: string
}

/** Deliveries as the engine would have left them, in the order given, by their ids. */
async function store(office: Office, webhookId: string, given: Stored[]): Promise<string[]> {
  const rows = given.map(
    ({ hoursAgo, state = 'delivered', type = 'task.created', eventId = null }) => {
      const at = Math.round(Date.now() - hoursAgo * HOUR_MS)
      const times = { created_at: at, updated_at: at }
      return {
        id: uuidv7({ msecs: at }),
        webhook_id: webhookId,
        event_id: eventId,
        event_type: type,
        body: Buffer.from('{}'),
        state,
        attempts: 0,
        ...times,
      }
    },
  )
  await office.write((own) => own.insert('deliveries', rows))
  return rows.map(({ id }) => id)
}

const listed = (page: string): string[] =>
  [...page.matchAll(/<tbody id="delivery-([\w-]+)"/g)].map(([, id = '']) => id)

/** Where a link of the page leads to, below /console. */
function linkIn(page: string, label: string): string | undefined {
  const [, href] =
    [...page.matchAll(/<a\b[^>]*href="([^"]*)"[^>]*>([^<]*)<\/a>/g)].find(
      ([, , text]) => text === label,
    ) ?? []
  return href && unescaped(href).replace(/^\/console/, '')
}

const blockIn = (page: string, name: string): string => {
  const [, code = ''] =
    new RegExp(`<pre[^>]*aria-label="${name}"><code>([\\s\\S]*?)</code>`).exec(page) ?? []
  return unescaped(code.replace(/<[^>]*>/g, ''))
}

describe('the log', () => {
  it('is filtered by state, event, time and id, which stand in the address', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    const eventId = uuidv7()
    const event = {
      id: eventId,
      event_type: 'task.created',
      resource_type: 'task',
      resource_id: randomUUID(),
      data: '[]',
      created_at: 1,
    }
    await office.write((own) => own.insert('events', event))
    const given: Stored[] = [
      { hoursAgo: 1, state: 'failed' },
      { hoursAgo: 2, type: 'task.updated' },
      { hoursAgo: 3, state: 'failed', type: 'task.updated', eventId },
      { hoursAgo: 30 },
      { hoursAgo: 0.5, state: 'failed', type: 'webhook.test' },
    ]
    const ids = await store(office, webhookId, given)
    const other = await office.subscribe('https://example.com/other')
    await store(office, other, [{ hoursAgo: 1, state: 'failed', eventId }])
    const found = async (query: string): Promise<number[]> => {
      const { text, status } = await office.visitor.get(`/webhooks/${webhookId}?${query}`)
      expect(status, query).toBe(200)
      return listed(text).map((id) => ids.indexOf(id))
    }
    const ago = (hours: number): string =>
      new Date(Date.now() - hours * HOUR_MS).toISOString().slice(0, 16)

    const cases: { query: string; want: number[] }[] = [
      { query: '', want: [4, 0, 1, 2, 3] },
      { query: 'state=failed', want: [4, 0, 2] },
      { query: 'state=delivered', want: [1, 3] },
      { query: 'state=pending', want: [] },
      { query: 'type=task.updated', want: [1, 2] },
      { query: 'type=webhook.test', want: [4] },
      { query: 'state=failed&type=task.updated', want: [2] },
      { query: `since=${ago(2.5)}`, want: [4, 0, 1] },
      { query: `until=${ago(2.5)}`, want: [2, 3] },
      { query: `since=${ago(4)}&until=${ago(1.5)}&state=failed`, want: [2] },
      { query: `id=${ids[1]}`, want: [1] },
      { query: `id=+${ids[1]?.toUpperCase()}`, want: [1] },
      { query: `id=${eventId}`, want: [2] },
      { query: `id=${eventId}&state=delivered`, want: [] },
      { query: `id=${randomUUID()}`, want: [] },
    ]
    for (const { query, want } of cases) expect(await found(query), query).toEqual(want)

    const { text } = await office.visitor.get(
      `/webhooks/${webhookId}?state=failed&type=task.updated&id=${ids[2]}`,
    )
    expect(text).toContain('<option value="task.updated" selected>')
    expect(text).toContain(`value="${ids[2]}"`)
    expect(linkIn(text, 'Delivered')).toBe(
      `/webhooks/${webhookId}?state=delivered&type=task.updated&id=${ids[2]}`,
    )
    expect(linkIn(text, 'Clear')).toBe(`/webhooks/${webhookId}?state=failed`)
  })

  it('what cannot be looked for: 422, what is wrong, and what was typed', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    await store(office, webhookId, [{ hoursAgo: 1 }])
    const cases: [query: string, errors: Record<string, string>][] = [
      ['id=%22%3E%3Cscript%3E', { id: 'Enter the whole ID of a delivery or an event.' }],
      [
        'since=yesterday&until=2026-13-01T00:00',
        {
          since: expect.stringContaining('Enter a time'),
          until: expect.stringContaining('Enter a time'),
        },
      ],
      ['since=2026-01-02T00:00&until=2026-01-01T00:00', { until: 'Choose a time after “From”.' }],
      ['type=task.exploded', { type: 'Choose an event from the list.' }],
    ]
    for (const [query, errors] of cases) {
      const { text, status } = await office.visitor.get(`/webhooks/${webhookId}?${query}`)
      expect(status, query).toBe(422)
      expect(errorsIn(text), query).toEqual(errors)
      expect(listed(text), query).toEqual([])
      expect(text).not.toContain('"><script>')
    }
    expect((await office.visitor.get(`/webhooks/${webhookId}?state=exploded`)).status).toBe(422)
    // A cursor that is none is none.
    expect(
      listed((await office.visitor.get(`/webhooks/${webhookId}?before=x&after=%00`)).text),
    ).toHaveLength(1)
  })

  it('has pages, forth and back, that leave nothing out and show nothing twice', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    const ids = await store(
      office,
      webhookId,
      Array.from({ length: 60 }, (_, index) => ({
        hoursAgo: 0.01 * (index + 1),
        state: index % 2 ? 'failed' : 'delivered',
      })),
    )
    for (const [query, want] of [
      ['', ids],
      ['?state=failed', ids.filter((_, index) => index % 2 === 1)],
      ['?state=delivered', ids.filter((_, index) => index % 2 === 0)],
    ] as const) {
      const pages: string[][] = []
      const addresses: string[] = []
      for (
        let address: string | undefined = `/webhooks/${webhookId}${query}`;
        address !== undefined;
      ) {
        const { text }: { text: string } = await office.visitor.get(address)
        addresses.push(address)
        pages.push(listed(text))
        address = linkIn(text, 'Next')
      }
      expect(pages.flat(), query).toEqual(want)
      expect(pages.map(({ length }) => length)).toEqual(want.length === 60 ? [25, 25, 10] : [25, 5])
      // And back.
      let back = addresses.at(-1) ?? ''
      for (let page = pages.length - 2; page >= 0; page--) {
        back = linkIn((await office.visitor.get(back)).text, 'Previous') ?? ''
        expect(listed((await office.visitor.get(back)).text), `${query} back to ${page}`).toEqual(
          pages[page],
        )
      }
      expect(linkIn((await office.visitor.get(back)).text, 'Previous')).toBeUndefined()
    }
    // The pages that are not the first do not wander away.
    const second = await office.visitor.get(`/webhooks/${webhookId}?before=${ids[24]}`)
    expect(second.text).not.toContain('hx-trigger="every')
    expect(linkIn(second.text, 'Newest')).toBe(`/webhooks/${webhookId}`)
  })

  it('what is rare among many: so many are looked at, and the search goes on from there', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    const many: Stored[] = Array.from({ length: 10_000 }, (_, index) => ({
      hoursAgo: 1 + index / 10_000,
      type: 'task.updated',
    }))
    const ids = await store(office, webhookId, [...many, { hoursAgo: 3, type: 'task.deleted' }])
    const first = await office.visitor.get(`/webhooks/${webhookId}?type=task.deleted`)
    expect(listed(first.text)).toEqual([])
    expect(textOf(first.text)).toContain(
      'No match among the newest deliveries. Older ones may match.',
    )
    const next = await office.visitor.get(linkIn(first.text, 'Next') ?? '')
    expect(listed(next.text)).toEqual(ids.slice(-1))
    expect(linkIn(next.text, 'Next')).toBeUndefined()
  })
})

describe('a delivery', () => {
  interface Sent extends AsyncDisposable {
    office: Office
    webhookId: string
    requests: Awaited<ReturnType<typeof startReceiver>>['requests']
    /** Of the only delivery. */
    id: string
    address: string
  }

  /** One event, sent to a receiver that answers so. */
  async function send(answers: Answer[]): Promise<Sent> {
    const receiver = await startReceiver({ answers })
    const office = await newOffice(app)
    const webhookId = await office.subscribe(receiver.url)
    await office.emit()
    await receiver.received(1)
    const id = await until('its first attempt has ended', async () => {
      const [delivery] = await office.deliveries()
      return delivery?.attempts === 1 && delivery.id
    })
    const address = `/webhooks/${webhookId}/deliveries/${id}`
    return {
      office,
      webhookId,
      requests: receiver.requests,
      id,
      address,
      [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
    }
  }

  it('shows its attempts with what was answered, and when the next one comes', async () => {
    await using sent = await send([
      { status: 503, headers: { 'x-shop': 'closed' }, body: '{"until":"eight"}' },
      204,
    ])
    const { text } = await sent.office.visitor.get(sent.address)
    const said = textOf(text)
    expect(said).toMatch(/Attempt 2 in (9 min \d+ s|10 min 0 s)/)
    expect(text).toMatch(/<time datetime="[^"]+" title="[^"]+ UTC" data-countdown>/)
    expect(said).toContain('Attempt 1 503')
    expect(said).toContain('The endpoint answered 503.')
    expect(said).toMatch(/Connect [\d.]+ ms Waiting [\d.]+ ms Body [\d.]+ ms/)
    expect(said).toContain('Connected to 127.0.0.1')
    expect(blockIn(text, 'response headers')).toContain('x-shop: closed')
    expect(blockIn(text, 'response body')).toBe('{\n  "until": "eight"\n}')
    expect(JSON.parse(blockIn(text, 'payload'))).toEqual(
      JSON.parse(sent.requests[0]?.body.toString() ?? ''),
    )
    const [attempt] = await listLastAttempts(sent.office.scope, sent.id, 1)
    expect(attempt).toMatchObject({ number: 1, status: 503 })
  })

  it('shows the headers as they were sent, and how to verify them: openssl prints the signature', async () => {
    await using sent = await send([204])
    const { text } = await sent.office.visitor.get(sent.address)
    const [request] = sent.requests
    const headers = blockIn(text, 'request headers').split('\n')
    for (const line of headers) {
      const [name = '', value] = line.split(/: (.*)/)
      expect(request?.headers[name], name).toBe(value)
    }
    expect(headers).toHaveLength(6)
    const signature = request?.headers['x-service-signature']
    expect(blockIn(text, 'signature')).toBe(signature)
    expect(Buffer.from(blockIn(text, 'request body'))).toEqual(request?.body)

    const secret = await sent.office.secretOf(sent.webhookId)
    const command = blockIn(text, 'openssl command')
    expect(text).not.toContain(secret)
    expect(command).toContain('whsec_…')
    if (await canRun('openssl version'))
      expect(await run(command.replace('whsec_…', secret))).toBe(`${signature}\n`)
  })

  it('is sent again by the command that it shows', async () => {
    await using sent = await send([204])
    const { text } = await sent.office.visitor.get(sent.address)
    const command = blockIn(text, 'curl command')
    if (!(await canRun('curl --version'))) return
    await run(command)
    const [first, second] = sent.requests
    expect(second?.body).toEqual(first?.body)
    const kept = ['content-type', 'user-agent', 'x-service-signature', 'webhook-id']
    for (const name of kept) expect(second?.headers[name], name).toBe(first?.headers[name])
  })

  it('is retried now, cancelled, retried and resent, and says what was done', async () => {
    await using sent = await send([500, 500, 500, 204])
    const { office, webhookId, address } = sent
    const post = async (verb: string): Promise<string> =>
      textOf((await office.visitor.submit(`${address}/${verb}`)).text)
    expect(textOf((await office.visitor.get(address)).text)).toContain('Retry now')
    expect(await post('attempt')).toContain('Making the next attempt now.')
    await until(
      'the second attempt has failed',
      async () => (await office.newest(webhookId, 'retrying')).attempts === 2,
    )
    expect(await post('cancel')).toContain('Delivery cancelled. No more attempts will be made.')
    expect(textOf((await office.visitor.get(address)).text)).toContain(
      'The delivery was cancelled.',
    )
    expect(await post('cancel')).toContain('this one has ended')
    expect(await post('resend')).toContain('Only a delivered delivery can be resent.')

    expect(await post('retry')).toContain('Retrying now.')
    await until(
      'the third attempt has failed',
      async () => (await office.newest(webhookId, 'failed')).attempts === 3,
    )
    expect(textOf((await office.visitor.get(address)).text)).toContain('The manual attempt failed.')
    await post('retry')
    await office.newest(webhookId, 'delivered')
    expect(await post('resend')).toContain('Resending now.')
    await until(
      'it is resent',
      async () => (await office.newest(webhookId, 'delivered')).attempts === 5,
    )
    expect(textOf((await office.visitor.get(address)).text)).toContain('Attempt 5 204 resend')
    expect(new Set(sent.requests.map(({ body }) => body.toString())).size).toBe(1)

    const details = { delivery_id: sent.id, event_type: 'participant.created' }
    expect(await office.audited()).toEqual(
      ['attempted', 'cancelled', 'retried', 'retried', 'resent'].map((name) => ({
        action: `webhook.delivery_${name}`,
        targetId: webhookId,
        details,
      })),
    )
  })

  it('in place, the answer is its row as it was: open or closed', async () => {
    await using sent = await send([500, 'hang'])
    const hx = { 'HX-Request': 'true' }
    for (const row of ['open', 'closed']) {
      const answer = await sent.office.visitor.post(`${sent.address}/attempt`, { row }, hx)
      expect(answer.to).toBe(`${sent.address}?row=${row}`)
      const { text } = await sent.office.visitor.get(answer.to ?? '')
      expect(listed(text)).toEqual([sent.id])
      expect(text.includes('<tr class="detail">')).toBe(row === 'open')
      expect(text).toContain(`aria-expanded="${row === 'open'}"`)
      expect(text).toContain('Sending …')
      expect(text).toContain('hx-trigger="every 1s"')
    }
    // Without JavaScript there is its own page.
    expect((await sent.office.visitor.post(`${sent.address}/attempt`, { row: 'closed' })).to).toBe(
      sent.address,
    )
  })

  it('of a disabled webhook: why it ended, and no button', async () => {
    await using sent = await send([500])
    await sent.office.write((own) => disableWebhook(own, sent.webhookId, new Date()))
    const { text } = await sent.office.visitor.get(sent.address)
    expect(textOf(text)).toContain(
      'The webhook was disabled before the event was delivered. To retry it, enable the webhook first.',
    )
    expect(text).not.toContain('>Retry<')
    expect((await sent.office.visitor.submit(`${sent.address}/retry`)).text).toContain(
      'The webhook is disabled. Enable it first.',
    )
  })

  it('whose attempts are not kept any more, and one with many', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    const [old = '', busy = ''] = await store(office, webhookId, [{ hoursAgo: 1 }, { hoursAgo: 2 }])
    const attempts = Array.from({ length: 30 }, (_, index) => ({
      delivery_id: busy,
      number: index + 1,
      trigger: 'resend',
      started_at: Date.now(),
      duration_ms: 1,
      outcome: 'success',
      status: 204,
    }))
    await office.write(async (own) => {
      await own.insert('attempts', attempts)
      await own.rows('deliveries').where({ id: busy }).update({ attempts: 30 })
      await own.rows('deliveries').where({ id: old }).update({ attempts: 3 })
    })
    const page = async (id: string): Promise<string> =>
      textOf((await office.visitor.get(`/webhooks/${webhookId}/deliveries/${id}`)).text)
    expect(await page(old)).toContain('3 attempts. Responses are no longer stored.')
    const said = await page(busy)
    expect(said).toContain('Attempt 30 204')
    expect(said).not.toContain('Attempt 10 204')
    expect(said).toContain('10 earlier attempts not shown.')
  })

  it('shows what is not harmless as it is, and breaks nothing', async () => {
    const hostile = `</code></pre><script>alert(1)</script>"'\u202E${'W'.repeat(2_000)}`
    await using sent = await send([
      {
        status: 500,
        headers: { 'x-evil': '<img src=x onerror=alert(2)>"\'', 'x-long': 'L'.repeat(2_000) },
        body: hostile,
      },
    ])
    const id = uuidv7()
    const body = Buffer.from(
      JSON.stringify({ 'a"<b>': hostile, deep: [1, { x: null }], quote: "it's" }),
    )
    await sent.office.write((own) =>
      own.insert('deliveries', {
        id,
        webhook_id: sent.webhookId,
        event_type: 'task.created',
        body,
        state: 'failed',
        attempts: 0,
        created_at: 1,
        updated_at: 1,
      }),
    )
    const { text } = await sent.office.visitor.get(sent.address)
    expect(text).not.toMatch(/<script>alert|<img src=x/)
    expect(blockIn(text, 'response body')).toBe(hostile)
    expect(blockIn(text, 'response headers')).toContain('x-evil: <img src=x onerror=alert(2)>"\'')
    const other = await sent.office.visitor.get(`/webhooks/${sent.webhookId}/deliveries/${id}`)
    expect(other.text).not.toMatch(/<script>alert/)
    expect(JSON.parse(blockIn(other.text, 'payload'))).toEqual(JSON.parse(body.toString()))
    if (await canRun('openssl version')) {
      const command = blockIn(other.text, 'openssl command').replace(
        'whsec_…',
        await sent.office.secretOf(sent.webhookId),
      )
      expect((await run(command)).trim()).toBe(blockIn(other.text, 'signature'))
    }
    for (const width of [1280, 390]) {
      const options = {
        person: sent.office.manager,
        viewport: { width, height: 860 },
        colorScheme: width === 390 ? 'dark' : 'light',
      } as const
      await using visited = await visit(app, browser, sent.address, options)
      await assertReadable(visited.page, `a hostile delivery at ${width}`)
      for (const summary of await visited.page.locator('summary').all()) await summary.click()
      await assertReadable(visited.page, `all of it at ${width}`)
      await visited.page.goto(`${app.url}/console/webhooks/${sent.webhookId}/deliveries/${id}`)
      await assertReadable(visited.page, `its payload at ${width}`)
      expect(visited.troubles).toEqual([])
    }
  })

  it('for an Admin who does not manage webhooks: all of it but buttons and signatures', async () => {
    await using sent = await send([500])
    const admin = await visitor(app, await newPerson(app, sent.office.accountId))
    const { text } = await admin.get(sent.address)
    expect(blockIn(text, 'payload')).toContain(sent.id)
    expect(textOf(text)).toContain('Only people who manage webhooks see the signature.')
    expect(text).not.toContain(String(sent.requests[0]?.headers['x-service-signature']))
    expect(text).not.toMatch(/Retry now|popovertarget="ask/)
  })
})

describe.runIf(inject('database') === 'sqlite')('the log in a browser', () => {
  it('a row that failed is retried in place; the next attempt counts down; a cancelled one says so', async () => {
    let isBroken = true
    await using receiver = await startReceiver({
      answers: () => (isBroken ? { status: 500, body: 'out of order' } : 204),
    })
    const office = await newOffice(app)
    const webhookId = await office.subscribe(receiver.url)
    await using visited = await visit(app, browser, `/webhooks/${webhookId}`, {
      person: office.manager,
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
    await office.emit()
    const other = page.locator('.log tbody').filter({ hasText: 'participant.created' })
    await other.getByText('Retrying').waitFor()
    await other.getByRole('link', { name: 'participant.created' }).click()
    const countdown = other.locator('time[data-countdown]')
    const before = await countdown.textContent()
    expect(before).toMatch(/^in (9 min \d+ s|10 min 0 s)$/)
    await expect.poll(() => countdown.textContent(), { timeout: 5_000 }).not.toBe(before)
    await assertReadable(page, 'an open row')
    // The attempt that is made while it is open appears in it.
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

  it('a whole schedule that fails is seen as it happens', async () => {
    await using quick = await startApp({
      role: 'all',
      environment: { WEBHOOK_RETRY_DELAYS: QUICK },
    })
    await using receiver = await startReceiver({ answers: [500] })
    const office = await newOffice(quick)
    const webhookId = await office.subscribe(receiver.url)
    await using visited = await visit(quick, browser, `/webhooks/${webhookId}`, {
      person: office.manager,
    })
    await office.emit()
    const row = visited.page.locator('.log tbody')
    await row.getByText('Failed').waitFor()
    expect(await row.locator('.dots .bad').count()).toBe(10)
    await row.getByRole('link').click()
    await row.getByText('Gave up after 10 attempts.').waitFor()
    expect(visited.troubles).toEqual([])
  })

  it('nothing asks while nobody looks, and the keyboard keeps its place', async () => {
    const office = await newOffice(app)
    const webhookId = await office.subscribe('https://example.com/')
    await store(office, webhookId, [{ hoursAgo: 1, state: 'failed' }, { hoursAgo: 2 }])
    await using visited = await visit(app, browser, `/webhooks/${webhookId}`, {
      person: office.manager,
    })
    const { page, troubles } = visited
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.getByRole('button', { name: 'Retry', exact: true }).focus()
    await expect.poll(() => asked.length, { timeout: 10_000 }).toBeGreaterThan(0)
    await store(office, webhookId, [{ hoursAgo: 0 }])
    await expect.poll(() => page.locator('.log tbody').count(), { timeout: 10_000 }).toBe(3)
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Retry')
    await page.evaluate('Object.defineProperty(document, "hidden", { value: true })')
    asked.length = 0
    await page.waitForTimeout(4_000)
    expect(asked).toEqual([])
    expect(troubles).toEqual([])
  })

  it('works without JavaScript: reading and acting', async () => {
    await using receiver = await startReceiver()
    const office = await newOffice(app)
    const webhookId = await office.subscribe(receiver.url)
    await office.emit()
    await office.newest(webhookId, 'delivered')
    await using visited = await visit(app, browser, `/webhooks/${webhookId}`, {
      person: office.manager,
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
    await page.getByText('Verify this').click()
    await page.getByText('openssl dgst').waitFor()
    await page.getByRole('link', { name: '127.0.0.1' }).click()
    await page.getByRole('link', { name: 'participant.created' }).click()
    await page.getByRole('heading', { name: 'participant.created' }).waitFor()
    expect(await page.locator('.attempts > li').count()).toBe(2)
    expect(troubles).toEqual([])
  })
})

/** What a shell prints. The receiver is in this process: it must not wait. */
async function run(command: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', command])).stdout
}

function canRun(command: string): Promise<boolean> {
  return run(command).then(
    () => true,
    () => false,
  )
}
