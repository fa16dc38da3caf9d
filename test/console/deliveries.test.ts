/** The page of a delivery in the console, and the actions on it. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, it } from 'vitest'
import { listLastAttempts } from '../../records/attempts.ts'
import { disableWebhook } from '../../records/webhooks.ts'
import { assertReadable } from '../browser.ts'
import { until } from '../helpers.ts'
import { type Answer, type ReceivedRequest, startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { blockIn, deliveryIdsIn, mainText } from './forms.ts'
import { newWebhookAdmin, type WebhookAdmin } from './hooks.ts'
import { newSite, SCREENS } from './site.ts'
import { storeDeliveries } from './stored-deliveries.ts'
import { newConsoleUser, visitor } from './visitors.ts'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const { app } = site

describe('a delivery', () => {
  interface Sent extends AsyncDisposable {
    admin: WebhookAdmin
    webhookId: string
    requests: ReceivedRequest[]
    /** The ID of the only delivery. */
    id: string
    /** The path of the page of the delivery. */
    path: string
  }

  /** Emits one event to a receiver with these responses. `query` is added to its URL. */
  async function send(answers: Answer[], query = ''): Promise<Sent> {
    const receiver = await startReceiver({ answers })
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe(receiver.url + query)
    await admin.emit()
    await receiver.received(1)
    const id = await until('its first attempt has ended', async () => {
      const [delivery] = await admin.deliveries()
      return delivery?.attempts === 1 && delivery.id
    })
    const path = `/webhooks/${webhookId}/deliveries/${id}`
    return {
      admin,
      webhookId,
      requests: receiver.requests,
      id,
      path,
      [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
    }
  }

  it('shows its attempts with their responses, and the time of the next one', async () => {
    await using sent = await send([
      { status: 503, headers: { 'x-shop': 'closed' }, body: '{"until":"eight"}' },
      204,
    ])
    const { text } = await sent.admin.visitor.get(sent.path)
    const shown = mainText(text)
    expect(shown).toMatch(/Attempt 2 in (9 min \d+ s|10 min 0 s)/)
    expect(text).toMatch(/<time datetime="[^"]+" title="[^"]+ UTC" data-countdown>/)
    expect(shown).toContain('Attempt 1 503')
    expect(shown).toContain('The endpoint responded with status 503.')
    expect(shown).toMatch(/Connect [\d.]+ ms Waiting [\d.]+ ms Body [\d.]+ ms/)
    expect(shown).toContain('Connected to 127.0.0.1')
    expect(blockIn(text, 'response headers')).toContain('x-shop: closed')
    expect(blockIn(text, 'response body')).toBe('{\n  "until": "eight"\n}')
    expect(JSON.parse(blockIn(text, 'payload'))).toEqual(
      JSON.parse(sent.requests[0]?.body.toString() ?? ''),
    )
    const [attempt] = await listLastAttempts(sent.admin.scope, sent.id, 1)
    expect(attempt).toMatchObject({ number: 1, status: 503 })
  })

  it('shows the request as it was sent, and an openssl command that prints its signature', async () => {
    await using sent = await send([204])
    const { text } = await sent.admin.visitor.get(sent.path)
    const [request] = sent.requests
    const headers = blockIn(text, 'request headers').split('\n')
    for (const line of headers) {
      const [name = '', value] = line.split(/: (.*)/)
      expect(request?.headers[name], name).toBe(value)
    }
    expect(headers).toHaveLength(8)
    const signature = request?.headers['x-service-signature']
    expect(blockIn(text, 'signature')).toBe(signature)
    expect(Buffer.from(blockIn(text, 'request body'))).toEqual(request?.body)

    const secret = await sent.admin.secretOf(sent.webhookId)
    const command = blockIn(text, 'openssl command')
    expect(text).not.toContain(secret)
    expect(command).toContain('whsec_…')
    if (await canRun('openssl version'))
      expect(await run(command.replace('whsec_…', secret))).toBe(`${signature}\n`)
  })

  it('shows a curl command that repeats the request', async () => {
    // curl expands braces and ranges of a URL, unless it is told not to.
    await using sent = await send([204], '?tags[0]={a,b}')
    const { text } = await sent.admin.visitor.get(sent.path)
    const command = blockIn(text, 'curl command')
    if (!(await canRun('curl --version'))) return
    await run(command)
    const [first, second] = sent.requests
    expect(sent.requests).toHaveLength(2)
    expect(second?.path).toBe(first?.path)
    expect(second?.body).toEqual(first?.body)
    for (const name of ['content-type', 'user-agent', 'x-service-signature', 'webhook-id'])
      expect(second?.headers[name], name).toBe(first?.headers[name])
    const traceIds = [first, second].map((request) =>
      String(request?.headers.traceparent).slice(3, 35),
    )
    expect(traceIds[1]).toBe(traceIds[0])
    expect(text).toContain(`<code>${traceIds[0]}</code>`)
  })

  it('offers each action in its state, makes the attempts, and writes the audit log', async () => {
    await using sent = await send([500, 500, 500, 204])
    const { admin, webhookId, path } = sent
    const post = async (verb: string): Promise<string> =>
      mainText((await admin.visitor.submit(`${path}/${verb}`)).text)
    expect(mainText((await admin.visitor.get(path)).text)).toMatch(
      /Attempt 2 in .*\. “Retry now” makes this attempt immediately\. It does not add another one\. Retry now/s,
    )
    expect(await post('attempt')).toContain('Retrying now.')
    await until(
      'the second attempt has failed',
      async () => (await admin.newest(webhookId, 'retrying')).attempts === 2,
    )
    expect(await post('cancel')).toContain('Delivery cancelled. No more attempts will be made.')
    expect(mainText((await admin.visitor.get(path)).text)).toContain('The delivery was cancelled.')
    expect((await admin.visitor.get(path)).text).toContain('>Retry<')
    expect(await post('cancel')).toContain('The delivery has ended.')
    expect(await post('resend')).toContain('Only a delivered delivery can be resent.')

    expect(await post('retry')).toContain('Retrying now.')
    await until(
      'the third attempt has failed',
      async () => (await admin.newest(webhookId, 'failed')).attempts === 3,
    )
    expect(mainText((await admin.visitor.get(path)).text)).toContain('The manual attempt failed.')
    await post('retry')
    await admin.newest(webhookId, 'delivered')
    expect(await post('resend')).toContain('Resending now.')
    await until(
      'the delivery is resent',
      async () => (await admin.newest(webhookId, 'delivered')).attempts === 5,
    )
    expect(mainText((await admin.visitor.get(path)).text)).toContain('Attempt 5 204 resend')
    expect(new Set(sent.requests.map(({ body }) => body.toString())).size).toBe(1)

    const details = { delivery_id: sent.id, event_type: 'participant.created' }
    expect(await admin.auditEntries()).toEqual(
      ['attempted', 'cancelled', 'retried', 'retried', 'resent'].map((name) => ({
        action: `webhook.delivery_${name}`,
        targetId: webhookId,
        details,
      })),
    )
    const owner = await visitor(app, admin.owner)
    expect(mainText((await owner.get('/audit-log')).text)).toContain(
      'Started the next attempt of a delivery to the webhook',
    )
  })

  it('after an action of htmx: the response is its row, open or closed as before', async () => {
    await using sent = await send([500, 'hang'])
    const hx = { 'HX-Request': 'true' }
    for (const row of ['open', 'closed']) {
      const answer = await sent.admin.visitor.post(`${sent.path}/attempt`, { row }, hx)
      expect(answer.to).toBe(`${sent.path}?row=${row}`)
      const { text } = await sent.admin.visitor.get(answer.to ?? '')
      expect(deliveryIdsIn(text)).toEqual([sent.id])
      expect(text.includes('<tr class="detail">')).toBe(row === 'open')
      expect(text).toContain(`aria-expanded="${row === 'open'}"`)
      expect(text).toContain('Sending …')
      expect(text).toContain('hx-trigger="every 1s"')
    }
    // Without JavaScript, the delivery has its own page.
    expect((await sent.admin.visitor.post(`${sent.path}/attempt`, { row: 'closed' })).to).toBe(
      sent.path,
    )
  })

  it('of a disabled webhook: shows why it failed and no button', async () => {
    await using sent = await send([500])
    await sent.admin.write((scope) => disableWebhook(scope, sent.webhookId, new Date()))
    const { text } = await sent.admin.visitor.get(sent.path)
    expect(mainText(text)).toContain(
      'The webhook was disabled before the event was delivered. To retry it, enable the webhook first.',
    )
    expect(text).not.toContain('>Retry<')
    expect((await sent.admin.visitor.submit(`${sent.path}/retry`)).text).toContain(
      'The webhook is disabled. Enable it first.',
    )
  })

  it('says when its attempts are no longer stored, and shows the last 20 of many', async () => {
    const admin = await newWebhookAdmin(app)
    const webhookId = await admin.subscribe('https://example.com/')
    const [old = '', busy = ''] = await storeDeliveries(admin, webhookId, [
      { hoursAgo: 1 },
      { hoursAgo: 2 },
    ])
    const attempts = Array.from({ length: 30 }, (_, index) => ({
      delivery_id: busy,
      number: index + 1,
      trigger: 'resend',
      started_at: Date.now(),
      duration_ms: 1,
      outcome: 'success',
      status: 204,
    }))
    await admin.write(async (scope) => {
      await scope.insert('attempts', attempts)
      await scope.rows('deliveries').where({ id: busy }).update({ attempts: 30 })
      await scope.rows('deliveries').where({ id: old }).update({ attempts: 3 })
    })
    const page = async (id: string): Promise<string> =>
      mainText((await admin.visitor.get(`/webhooks/${webhookId}/deliveries/${id}`)).text)
    expect(await page(old)).toContain('3 attempts. Their details have been deleted.')
    const shown = await page(busy)
    expect(shown).toContain('Attempt 30 204')
    expect(shown).not.toContain('Attempt 10 204')
    expect(shown).toContain('10 earlier attempts not shown.')
  })

  it('escapes hostile content, which does not break the layout', async () => {
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
    await sent.admin.write((scope) =>
      scope.insert('deliveries', {
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
    const { text } = await sent.admin.visitor.get(sent.path)
    expect(text).not.toMatch(/<script>alert|<img src=x/)
    expect(blockIn(text, 'response body')).toBe(hostile)
    expect(blockIn(text, 'response headers')).toContain('x-evil: <img src=x onerror=alert(2)>"\'')
    const other = await sent.admin.visitor.get(`/webhooks/${sent.webhookId}/deliveries/${id}`)
    expect(other.text).not.toMatch(/<script>alert/)
    expect(JSON.parse(blockIn(other.text, 'payload'))).toEqual(JSON.parse(body.toString()))
    if (await canRun('openssl version')) {
      const command = blockIn(other.text, 'openssl command').replace(
        'whsec_…',
        await sent.admin.secretOf(sent.webhookId),
      )
      expect((await run(command)).trim()).toBe(blockIn(other.text, 'signature'))
    }
    for (const screen of SCREENS) {
      const { width } = screen.viewport
      await using visited = await site.visit(sent.path, { person: sent.admin.manager, ...screen })
      await assertReadable(visited.page, `a hostile delivery at ${width}`)
      for (const summary of await visited.page.locator('main summary').all()) await summary.click()
      await assertReadable(visited.page, `a hostile delivery with open details at ${width}`)
      await visited.page.goto(`${app.url}/console/webhooks/${sent.webhookId}/deliveries/${id}`)
      await assertReadable(visited.page, `a hostile payload at ${width}`)
      expect(visited.troubles).toEqual([])
    }
  })

  it('has no buttons and no signatures for an Admin without the grant', async () => {
    await using sent = await send([500])
    const admin = await visitor(app, await newConsoleUser(app, sent.admin.accountId))
    const { text } = await admin.get(sent.path)
    expect(blockIn(text, 'payload')).toContain(sent.id)
    expect(mainText(text)).toContain('Only people who manage webhooks see the signature.')
    expect(text).not.toContain(String(sent.requests[0]?.headers['x-service-signature']))
    expect(text).not.toMatch(/Retry now|popovertarget="ask/)
  })
})

/** Returns what a shell prints. Asynchronous, because the receiver runs in this process. */
async function run(command: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', command])).stdout
}

function canRun(command: string): Promise<boolean> {
  return run(command).then(
    () => true,
    () => false,
  )
}
