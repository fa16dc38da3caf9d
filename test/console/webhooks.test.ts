/** Webhooks in the console: who sees and who manages them, their secrets, and what is done with them. */
import { createHmac, randomUUID } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { v7 as uuidv7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { accountScope } from '../../records/database/scope.ts'
import { findDeliveryHealth } from '../../records/reports/delivery-health.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  MAX_WEBHOOKS_PER_ACCOUNT,
} from '../../records/webhooks.ts'
import type { Route } from '../../web/console/page.ts'
import { bulkJobRoutes } from '../../web/console/webhooks/bulk-jobs.ts'
import { bulkStartRoutes } from '../../web/console/webhooks/bulk-start.ts'
import { deliveryRoutes } from '../../web/console/webhooks/delivery.ts'
import { webhookEditRoutes } from '../../web/console/webhooks/edit.ts'
import { webhookLogRoutes } from '../../web/console/webhooks/log.ts'
import { webhookSecretRoutes } from '../../web/console/webhooks/secret.ts'
import { webhookSettingsRoutes } from '../../web/console/webhooks/settings.ts'
import { webhooksRoutes } from '../../web/console/webhooks/webhooks.ts'
import { assertReadable, openBrowser } from '../browser.ts'
import { startApp, type TestApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { errorsIn, filledIn, formOf } from './forms.ts'
import { newOffice, type Office, textOf } from './hooks.ts'
import { type ConsoleAnswer, newPerson, PASSWORD, visit, visitor } from './visitors.ts'

const SECRET = /whsec_[A-Za-z0-9+/]{43}=/
/** None comes by itself before a test is over. */
const NEVER = '600,600,600,600,600,600,600,600,600'
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

const allRoutes: Route[] = [
  ...bulkJobRoutes,
  ...webhooksRoutes,
  ...webhookEditRoutes,
  ...webhookLogRoutes,
  ...webhookSettingsRoutes,
  ...bulkStartRoutes,
  ...webhookSecretRoutes,
  ...deliveryRoutes,
]

function secretIn({ text, status }: ConsoleAnswer): string {
  const [secret] = text.match(SECRET) ?? []
  if (status !== 200 || secret === undefined) throw new Error(`There is no secret in ${text}`)
  return secret
}

const signatureOf = (secret: string, body: Buffer): string =>
  createHmac('sha256', secret).update(body).digest('hex')

async function webhookOf({ scope }: Office, id: string) {
  const webhook = await findWebhook(scope, id)
  if (!webhook) throw new Error('There is no webhook')
  return webhook
}

/** A webhook that was disabled while so many events happened, and is enabled again. */
async function missedSome(office: Office, url: string, count: number): Promise<string> {
  const id = await office.subscribe(url)
  await office.write((own) => disableWebhook(own, id, new Date()))
  await office.emit(count)
  await office.write((own) => enableWebhook(own, id, new Date()))
  return id
}

describe('who sees and who manages webhooks', () => {
  /** A webhook with a delivery and a bulk job, of an account of its own. */
  async function newAll() {
    const receiver = await startReceiver()
    const office = await newOffice(app)
    const id = await missedSome(office, receiver.url, 2)
    const { to = '' } = await office.visitor.post(`/webhooks/${id}/send-missed`, { rate: '500' })
    const delivery = await office.newest(id, 'delivered')
    const ids: Record<string, string> = {
      ':webhook': id,
      ':delivery': delivery.id,
      ':job': to.split('/').at(-1) ?? '',
    }
    const address = ({ path }: Route): string => path.replace(/:\w+/g, (name) => ids[name] ?? '')
    return { office, id, address, [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose]() }
  }

  it('the Owner and an Admin who manages them: every page is there', async () => {
    await using all = await newAll()
    const owner = await all.office.scope.rows('users').where({ role: 'owner' }).first('id')
    for (const person of [
      all.office.manager,
      { accountId: all.office.accountId, userId: owner.id },
    ]) {
      const theirs = await visitor(app, person)
      for (const route of allRoutes.filter(({ method }) => method === 'GET'))
        expect((await theirs.get(all.address(route))).status, route.path).toBe(200)
    }
  })

  it('an Admin who does not: lists and logs without buttons, secret or signature, and whom to ask', async () => {
    await using all = await newAll()
    const { office, id } = all
    const admin = await visitor(
      app,
      await newPerson(app, office.accountId, { fullName: 'Priya Raman' }),
    )
    const readable = [
      '/webhooks',
      '/webhooks/jobs',
      '/webhooks/jobs/:job',
      '/webhooks/:webhook',
      '/webhooks/:webhook/settings',
    ]
    for (const route of allRoutes) {
      const answer =
        route.method === 'GET'
          ? await admin.get(all.address(route))
          : await admin.post(all.address(route))
      const isSeen =
        route.method === 'GET' &&
        [...readable, '/webhooks/:webhook/deliveries/:delivery'].includes(route.path)
      expect(answer.status, `${route.method} ${route.path}`).toBe(isSeen ? 200 : 404)
      if (!isSeen) continue
      const main = /<main[\s\S]*<\/main>/.exec(answer.text)?.[0] ?? ''
      expect(main, route.path).not.toMatch(/method="post"|hx-post|formmethod/)
      expect(main, route.path).not.toMatch(/whsec_|x-service-signature/)
    }
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/settings`])
      expect(textOf((await admin.get(path)).text)).toContain(
        'You can view webhooks but not change them. To get access, ask Test Owner, the Account Owner',
      )
  })

  it('a Member and who is not signed in: nothing', async () => {
    await using all = await newAll()
    const member = await visitor(
      app,
      await newPerson(app, all.office.accountId, { role: 'member' }),
    )
    const guest = await visitor(app)
    for (const route of allRoutes) {
      const method = route.method === 'GET' ? 'get' : 'post'
      expect((await member[method](all.address(route))).status, route.path).toBe(404)
      expect((await guest[method](all.address(route))).to, route.path).toMatch(/^\/sign-in/)
    }
    expect((await member.get('')).text).not.toContain('href="/console/webhooks"')
  })

  it('who manages those of another account: 404 for every address with an id, and nothing happens', async () => {
    await using all = await newAll()
    const stranger = await newOffice(app)
    const before = await all.office.audited()
    for (const route of allRoutes.filter(({ path }) => path.includes(':'))) {
      const fields = {
        password: PASSWORD,
        url: 'https://example.com/',
        event_types: '*',
        since: '2026-01-01T00:00',
        rate: '1',
      }
      const answer =
        route.method === 'GET'
          ? await stranger.visitor.get(all.address(route))
          : await stranger.visitor.post(all.address(route), fields)
      expect(answer.status, `${route.method} ${route.path}`).toBe(404)
    }
    expect(await all.office.audited()).toEqual(before)
    expect(await webhookOf(all.office, all.id)).toMatchObject({
      enabled: true,
      hasNextSecret: false,
    })
    // Not the delivery of another webhook of the same account either.
    const other = await all.office.subscribe('https://example.com/')
    const [delivery] = await all.office.deliveries()
    expect(
      (await all.office.visitor.get(`/webhooks/${other}/deliveries/${delivery?.id}`)).status,
    ).toBe(404)
  })
})

describe('a webhook is made and changed', () => {
  it('shows the catalogue of events with what it says of each, and the secret once', async () => {
    const office = await newOffice(app)
    const blank = await office.visitor.get('/webhooks/new')
    const said = textOf(blank.text)
    for (const { name, description } of Object.values(eventTypes)) {
      expect(blank.text).toContain(`value="${name}"`)
      expect(said.replace(/ ([.,:;])/g, '$1')).toContain(
        description
          .replaceAll('`', ' ')
          .replace(/\s+/g, ' ')
          .replace(/ ([.,:;])/g, '$1')
          .trim(),
      )
    }
    const answer = await office.visitor.post('/webhooks', {
      url: 'https://example.com/hooks#part',
      description: ' Order system ',
      event_types: ['task.created', 'payment.paid', 'task.created'],
      ordering: 'by_resource',
    })
    const secret = secretIn(answer)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { id } = await office.scope.rows('webhooks').first('id')
    expect(await webhookOf(office, id)).toMatchObject({
      url: 'https://example.com/hooks',
      description: 'Order system',
      eventTypes: ['task.created', 'payment.paid'],
      ordering: 'by_resource',
      enabled: true,
      createdBy: office.manager.userId,
    })
    expect(await office.secretOf(id)).toBe(secret)
    for (const path of [
      '/webhooks',
      `/webhooks/${id}`,
      `/webhooks/${id}/settings`,
      `/webhooks/${id}/edit`,
      `/webhooks/${id}/secret`,
    ])
      expect((await office.visitor.get(path)).text, path).not.toContain(secret)
    const [entry] = await office.audited()
    expect(entry).toMatchObject({
      action: 'webhook.created',
      targetId: id,
      details: { event_types: 'task.created, payment.paid' },
    })
    expect(JSON.stringify(entry)).not.toContain(secret)
  })

  it('what cannot be: 422, what is wrong with each field, and what was typed', async () => {
    const office = await newOffice(app)
    const wrong = {
      url: 'http://169.254.169.254/latest"><script>alert(1)</script>',
      description: `<script>alert(1)</script>${'x'.repeat(200)}`,
      event_types: ['task.created', 'task.exploded'],
      ordering: 'sideways',
    }
    const answer = await office.visitor.post('/webhooks', wrong)
    expect(answer.status).toBe(422)
    expect(errorsIn(answer.text)).toEqual({
      url: 'The URL must lead to a public address, and 169.254.169.254 is not one.',
      description: 'The description must be at most 200 characters long.',
      event_types: 'There is no event “task.exploded”.',
      ordering: 'Choose an order.',
    })
    expect(answer.text).not.toContain('<script>alert')
    const { url, description, event_types } = filledIn(formOf(answer.text), {})
    expect({ url, description, event_types }).toEqual({
      url: wrong.url,
      description: wrong.description,
      event_types: 'task.created',
    })

    const nothing = await office.visitor.post('/webhooks', {})
    expect(errorsIn(nothing.text)).toEqual({
      url: 'The URL must be a complete address such as https://example.com/webhooks.',
      event_types: 'Choose at least one event.',
    })
    expect(await office.scope.rows('webhooks')).toEqual([])
  })

  it('as many as an account may have: 422, and what was typed', async () => {
    const office = await newOffice(app)
    for (let count = 0; count < MAX_WEBHOOKS_PER_ACCOUNT; count++)
      await office.subscribe(`https://example.com/${count}`)
    const answer = await office.visitor.post('/webhooks', {
      url: 'https://example.com/more',
      event_types: '*',
    })
    expect(answer.status).toBe(422)
    expect(answer.text).toContain('An account may have at most 50 webhooks.')
    expect(answer.text).toContain('value="https://example.com/more"')
    expect((await office.visitor.get('/webhooks')).status).toBe(200)
  })

  it('says of an address, before it is sent, whether it can be used: at most sixty times a minute', async () => {
    const office = await newOffice(app)
    const verdict = async (url: string): Promise<string> => {
      const answer = await office.visitor.post('/webhooks/address', {
        url,
        description: 'as it is',
      })
      expect(answer.status).toBe(200)
      return textOf(/<div id="url-verdict"[\s\S]*?<\/div>/.exec(answer.text)?.[0] ?? '')
    }
    expect(await verdict('https://example.com/in')).toContain('This URL works.')
    expect(await verdict('ftp://example.com/in')).toContain('The URL must begin with https://.')
    expect(await verdict('https://localhost./')).toContain('This URL works')
    expect(await verdict('https://10.0.0.1/')).toContain('10.0.0.1 is not one')
    expect((await verdict(' ')).trim()).toBe('')
    for (let count = 0; count < 56; count++) await verdict('https://example.com/')
    expect(await verdict('https://example.com/')).toContain('This was tried too often.')
    // Of somebody else, it is not too often.
    const colleague = await visitor(
      app,
      await newPerson(app, office.accountId, { grants: ['webhooks'] }),
    )
    expect(
      (await colleague.post('/webhooks/address', { url: 'https://example.com/' })).text,
    ).toContain('This URL works')
  })

  it('changes, with what was and what is in the audit log; saved without a change, nothing is noted', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/old', ['task.created'])
    const { fields, to } = formOf((await office.visitor.get(`/webhooks/${id}/edit`)).text)
    expect(to).toBe(`/webhooks/${id}/edit`)
    const same = filledIn({ to, fields }, {})
    await office.visitor.post(to, same)
    expect(await office.audited()).toEqual([])

    const bad = await office.visitor.post(to, { ...same, url: 'nowhere' })
    expect(bad.status).toBe(422)
    expect(bad.text).toContain('value="nowhere"')
    const changed = { ...same, url: 'https://example.com/new', event_types: ['*', 'task.created'] }
    expect((await office.visitor.submit(to, changed)).text).toContain(
      'Webhook saved. The next attempt uses the new settings.',
    )
    expect(await webhookOf(office, id)).toMatchObject({
      url: 'https://example.com/new',
      eventTypes: ['*'],
    })
    expect(await office.audited()).toEqual([
      {
        action: 'webhook.updated',
        targetId: id,
        details: {
          changes: {
            url: { from: 'https://example.com/old', to: 'https://example.com/new' },
            event_types: { from: 'task.created', to: '*' },
          },
        },
      },
    ])
  })

  it('is tested, disabled, enabled and deleted', async () => {
    await using receiver = await startReceiver({ answers: [204, 500] })
    const office = await newOffice(app)
    const id = await office.subscribe(receiver.url)
    expect((await office.visitor.submit(`/webhooks/${id}/test`)).text).toContain('Test event sent.')
    expect(await office.newest(id, 'delivered')).toMatchObject({ eventType: 'webhook.test' })

    await office.emit()
    await office.newest(id, 'retrying')
    expect((await office.visitor.get(`/webhooks/${id}/settings`)).text).toContain(
      'Scheduled retries are cancelled and marked failed.',
    )
    const disabled = await office.visitor.submit(`/webhooks/${id}/disable`)
    expect(disabled.text).toContain('Webhook disabled. Nothing is sent until you enable it again.')
    expect(textOf(disabled.text)).toContain(
      'Nothing is sent. After you enable it again, you can send the events it missed.',
    )
    expect((await office.newest(id, 'failed')).failureReason).toBe('webhook_disabled')
    expect((await office.visitor.submit(`/webhooks/${id}/test`)).text).toContain(
      'The webhook is disabled. Enable it first.',
    )
    await office.visitor.post(`/webhooks/${id}/disable`)

    expect(textOf((await office.visitor.submit(`/webhooks/${id}/enable`)).text)).toContain(
      'and may have missed events.',
    )
    expect(textOf((await office.visitor.submit(`/webhooks/${id}/delete`)).text)).toContain(
      'deleted. Webhooks',
    )
    expect((await office.visitor.get(`/webhooks/${id}`)).status).toBe(404)
    expect((await office.audited()).map(({ action, targetId }) => [action, targetId])).toEqual(
      ['test_sent', 'disabled', 'enabled', 'deleted'].map((name) => [`webhook.${name}`, id]),
    )
  })
})

describe('the signing secret', () => {
  it('is shown again for the password, which may be wrong five times', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/')
    const secret = await office.secretOf(id)
    const to = `/webhooks/${id}/secret`
    for (const password of ['', 'guess 1', 'guess 2', 'guess 3']) {
      const answer = await office.visitor.post(to, { password })
      expect(answer.status).toBe(422)
      expect(answer.text).not.toContain('whsec_')
    }
    expect(secretIn(await office.visitor.post(to, { password: PASSWORD }))).toBe(secret)
    expect((await office.visitor.get(to)).text).not.toContain(secret)
    expect(await office.audited()).toEqual([
      { action: 'webhook.secret_revealed', targetId: id, details: {} },
    ])

    for (let count = 0; count < 5; count++) await office.visitor.post(to, { password: 'guess' })
    const locked = await office.visitor.post(to, { password: PASSWORD })
    expect(locked.status).toBe(422)
    expect(locked.text).toContain('This was tried too often.')
    expect(locked.text).not.toContain('whsec_')
  })

  it('is changed without a gap: the old one signs until the next is activated', async () => {
    await using receiver = await startReceiver()
    const office = await newOffice(app)
    const id = await office.subscribe(receiver.url)
    const old = await office.secretOf(id)
    const signature = async (count: number): Promise<unknown> => {
      await office.emit()
      const request = (await receiver.received(count))[count - 1]
      return [old, next].map(
        (secret) =>
          request && signatureOf(secret, request.body) === request.headers['x-service-signature'],
      )
    }
    expect((await office.visitor.submit(`/webhooks/${id}/secret/activate`)).text).toContain(
      'There is no next secret. Prepare one first.',
    )
    const first = secretIn(await office.visitor.post(`/webhooks/${id}/secret/prepare`))
    const next = secretIn(await office.visitor.post(`/webhooks/${id}/secret/prepare`))
    expect(new Set([old, first, next]).size).toBe(3)
    const page = await office.visitor.get(`/webhooks/${id}/secret`)
    expect(page.text).toContain('Prepare another secret')
    expect(page.text).not.toContain('whsec_')
    const shown = await office.visitor.post(`/webhooks/${id}/secret`, { password: PASSWORD })
    expect(shown.text.match(/whsec_[A-Za-z0-9+/]{43}=/g)).toEqual(
      expect.arrayContaining([old, next]),
    )
    expect(await signature(1)).toEqual([true, false])

    expect((await office.visitor.submit(`/webhooks/${id}/secret/activate`)).text).toContain(
      'New secret activated.',
    )
    expect(await signature(2)).toEqual([false, true])
    expect((await office.audited()).map(({ action }) => action)).toEqual([
      'webhook.secret_prepared',
      'webhook.secret_prepared',
      'webhook.secret_revealed',
      'webhook.secret_activated',
    ])
    expect(JSON.stringify(await office.audited())).not.toContain('whsec_')
  })
})

describe('what was missed and what failed', () => {
  it('send missed: counted first, then sent, paused, resumed and cancelled', async () => {
    await using receiver = await startReceiver()
    const office = await newOffice(app)
    const id = await missedSome(office, receiver.url, 30)
    const to = `/webhooks/${id}/send-missed`
    expect(textOf((await office.visitor.get(to)).text)).toContain('30 deliveries , about 1 second.')
    expect(textOf((await office.visitor.get(`${to}?since=&until=&rate=1`)).text)).toContain(
      '30 deliveries , about 30 seconds.',
    )

    const wrong = await office.visitor.post(to, { since: 'yesterday', until: '', rate: '5000' })
    expect(wrong.status).toBe(422)
    expect(errorsIn(wrong.text)).toEqual({
      since: 'Enter a time in UTC, for example 2026-11-21T09:30.',
      rate: 'Enter a whole number from 1 to 500.',
    })
    expect(wrong.text).toContain('value="5000"')

    const started = await office.visitor.submit(to, { since: '', until: '', rate: '1' })
    expect(started.text).toContain('Sending started.')
    const [job] = await office.scope.rows('bulk_jobs').select('id', 'total', 'created_by')
    expect(job).toMatchObject({ total: 30, created_by: office.manager.userId })
    const address = `/webhooks/jobs/${job.id}`
    expect(started.text).toContain('<progress max="30"')
    expect((await office.visitor.get(`/webhooks/${id}`)).text).toContain('<progress max="30"')
    expect(textOf((await office.visitor.get('/webhooks/jobs')).text)).toMatch(/Running \d+ of 30/)
    const again = await office.visitor.post(to, { rate: '500' })
    expect(again.status).toBe(422)
    expect(again.text).toContain('already does this and is running')

    expect((await office.visitor.submit(`${address}/pause`)).text).toContain('Job paused.')
    expect(textOf((await office.visitor.get(address)).text)).toContain('Paused Resume')
    expect((await office.visitor.submit(`${address}/resume`)).text).toContain('Job resumed.')
    expect((await office.visitor.submit(`${address}/cancel`)).text).toContain('Job cancelled.')
    expect((await office.visitor.submit(`${address}/pause`)).text).toContain(
      `Bulk job ${job.id} is cancelled.`,
    )
    expect((await office.audited()).map(({ action, targetId }) => [action, targetId])).toEqual(
      ['send_missed_started', 'bulk_job_paused', 'bulk_job_resumed', 'bulk_job_cancelled'].map(
        (name) => [`webhook.${name}`, id],
      ),
    )

    await office.visitor.post(to, { rate: '500' })
    await until('all has arrived', async () => receiver.requests.length === 30)
    await until('the job is completed', async () =>
      (await office.visitor.get('/webhooks/jobs')).text.includes('Completed'),
    )
    expect(textOf((await office.visitor.get(to)).text)).toContain(
      'The webhook missed no events in this period.',
    )
    const nothing = await office.visitor.post(to, { rate: '500' })
    expect(nothing.status).toBe(422)
  })

  it('send missed of a webhook that was never disabled: since when must be said', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/', ['task.created'])
    const to = `/webhooks/${id}/send-missed`
    const blank = await office.visitor.get(to)
    expect(blank.status).toBe(200)
    expect(errorsIn(blank.text)).toEqual({})
    expect(
      errorsIn((await office.visitor.post(to, { since: '', rate: '50' })).text),
    ).toHaveProperty('since')
    const from = new Date(Date.now() - HOUR_MS).toISOString().slice(0, 16)
    expect(
      (await office.visitor.post(to, { since: from, until: from, rate: '50' })).text,
    ).toContain('Choose a time after “From”.')
    expect((await office.visitor.get(`${to}?since=${from}`)).text).toContain(
      'The webhook missed no events in this period.',
    )
  })

  it('retry failed: of a type and a time', async () => {
    let isBroken = true
    await using receiver = await startReceiver({ answers: () => (isBroken ? 500 : 204) })
    const office = await newOffice(app)
    const id = await office.subscribe(receiver.url)
    await office.emit(3, 'task.created')
    await office.emit(2, 'job.created')
    await receiver.received(5)
    await until('all wait for their second attempt', async () =>
      (await office.deliveries()).every(({ state }) => state === 'retrying'),
    )
    for (const delivery of await office.deliveries())
      await office.visitor.post(`/webhooks/${id}/deliveries/${delivery.id}/cancel`)
    isBroken = false
    const to = `/webhooks/${id}/retry-failed`
    expect((await office.visitor.get(to)).text).toContain('<strong>5 deliveries</strong>')
    expect((await office.visitor.get(`${to}?type=task.created`)).text).toContain(
      '<strong>3 deliveries</strong>',
    )
    expect(
      (await office.visitor.get(`${to}?since=2020-01-01T00:00&until=2020-02-01T00:00`)).text,
    ).toContain('No deliveries failed')
    expect((await office.visitor.get(`${to}?type=task.exploded`)).status).toBe(422)
    const since = new Date(Date.now() - HOUR_MS).toISOString().slice(0, 16)
    await office.visitor.post(to, { since, until: '', type: 'task.created', rate: '500' })
    const states = async () =>
      (await office.deliveries()).map(({ eventType, state }) => `${eventType} ${state}`).sort()
    await until(
      'three are delivered',
      async () => (await states()).filter((state) => state.endsWith('delivered')).length === 3,
    )
    expect(await states()).toEqual([
      ...Array(2).fill('job.created failed'),
      ...Array(3).fill('task.created delivered'),
    ])
  })
})

describe('how webhooks are doing', () => {
  interface Given {
    state: string
    hoursAgo: number
    type?: string
  }

  async function store(office: Office, webhookId: string, given: Given[]): Promise<void> {
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
    await office.write((own) => own.insert('deliveries', rows))
  }

  it('by hour, without tests, older ones and other webhooks', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/')
    const other = await office.subscribe('https://example.com/other')
    await store(office, id, [
      ...Array(3).fill({ state: 'delivered', hoursAgo: 0.5 }),
      { state: 'failed', hoursAgo: 0.6 },
      { state: 'failed', hoursAgo: 0.1, type: 'webhook.test' },
      { state: 'delivered', hoursAgo: 23.5 },
      { state: 'failed', hoursAgo: 24.5 },
      { state: 'retrying', hoursAgo: 30 },
      { state: 'retrying', hoursAgo: 2.5 },
    ])
    await store(office, other, [{ state: 'failed', hoursAgo: 1 }])
    const health = (await findDeliveryHealth(office.scope, [id, other], new Date())).get(id)
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

    const list = await office.visitor.get('/webhooks')
    expect(textOf(list.text)).toMatch(/80 % 2 oldest 1 d ago/)
    expect(list.text).toContain('aria-label="By hour: 4 delivered, 1 failed, 1 waiting"')
    expect(textOf((await office.visitor.get(`/webhooks/${id}`)).text)).toContain('80 % 4 of 5')
    const strange = accountScope({ dialect: app.db.dialect, sql: app.db.read }, randomUUID())
    expect((await findDeliveryHealth(strange, [id], new Date())).get(id)).toMatchObject({
      share: null,
      failed: 0,
    })
  })

  it('a busy one: a sample of each hour, which says so', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/')
    await store(office, id, [
      ...Array(2_000).fill({ state: 'delivered', hoursAgo: 0.5 }),
      ...Array(1_200).fill({ state: 'failed', hoursAgo: 2.5 }),
    ])
    const health = (await findDeliveryHealth(office.scope, [id], new Date())).get(id)
    expect(health).toMatchObject({
      isSample: true,
      sampleSize: 417,
      failed: 1_000,
      countedUpTo: 1_000,
      share: 0.5,
    })
    const said = textOf((await office.visitor.get(`/webhooks/${id}`)).text)
    expect(said).toContain('≈ 50 % estimated')
    expect(said).toContain('1,000+')
  })

  it('names and addresses that are not harmless are shown as they are, and break nothing', async () => {
    const office = await newOffice(app)
    const description = `"><script>alert(1)</script>' \u202Egnp.exe ${'W'.repeat(120)}`
    const url = `https://example.com/${'%22%3E'.repeat(300)}?<img src=x onerror=alert(2)>='`
    const made = await office.visitor.post('/webhooks', { url, description, event_types: '*' })
    expect(made.status).toBe(200)
    const { id } = await office.scope.rows('webhooks').first('id')
    for (const path of [
      '/webhooks',
      `/webhooks/${id}`,
      `/webhooks/${id}/settings`,
      `/webhooks/${id}/edit`,
      `/webhooks/${id}/secret`,
    ]) {
      const { text, status } = await office.visitor.get(path)
      expect(status).toBe(200)
      expect(text, path).not.toMatch(/<script>alert|<img src=x/)
    }
    for (const width of [1280, 390]) {
      await using visited = await visit(app, browser, '/webhooks', {
        person: office.manager,
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

describe.runIf(inject('database') === 'sqlite')('webhooks in a browser', () => {
  it('a webhook is made, tested, and its delivery appears by itself', async () => {
    await using receiver = await startReceiver({
      answers: [{ status: 200, headers: { 'x-served-by': 'the shop' }, body: '{"ok":true}' }],
    })
    const office = await newOffice(app)
    await using visited = await visit(app, browser, '/webhooks', { person: office.manager })
    const { page, troubles } = visited
    await assertReadable(page, 'no webhooks')
    await page.getByRole('link', { name: 'Create your first webhook' }).click()
    await page.getByLabel('URL').fill('http://10.0.0.1/')
    await page.getByText('10.0.0.1 is not one').waitFor()
    await page.getByLabel('URL').fill(receiver.url)
    await page.getByText('This URL works.').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('field-url')
    await page.getByLabel('Description').fill('The shop')
    await page.getByLabel('participant.created').check()
    await assertReadable(page, 'a new webhook')
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByRole('heading', { name: 'Webhook created' }).waitFor()
    await assertReadable(page, 'the secret')
    expect(await page.locator('.code-block code').textContent()).toMatch(SECRET)
    await page.getByRole('link', { name: 'Done' }).click()
    await page.getByText('No deliveries yet').waitFor()

    await page.getByRole('button', { name: 'Send test event' }).click()
    await page.getByText('Test event sent.').waitFor()
    const row = page.getByRole('row').filter({ hasText: 'webhook.test' })
    await row.getByText('Delivered').waitFor()
    expect(page.url()).toMatch(/\/console\/webhooks\/[\w-]+$/)
    // And what happens elsewhere.
    await office.emit()
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
    // Nothing is moved under the eyes of who reads.
    await office.emit()
    await receiver.received(3)
    await page.waitForTimeout(4_000)
    expect(await page.locator('.log tbody').count()).toBe(2)
    await row.getByRole('link', { name: 'webhook.test' }).click()
    await expect.poll(() => page.locator('.log tbody').count(), { timeout: 10_000 }).toBe(3)
    expect(await opened.count()).toBe(0)
    expect(troubles).toEqual([])
  })

  it('what was missed is counted as it is chosen, and sent before one’s eyes', async () => {
    await using receiver = await startReceiver()
    const office = await newOffice(app)
    const id = await missedSome(office, receiver.url, 40)
    await using visited = await visit(app, browser, `/webhooks/${id}`, { person: office.manager })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'Send missed events' }).click()
    await page.getByText('40 deliveries').waitFor()
    await page.getByLabel('Maximum per second').fill('20')
    await page.getByLabel('Maximum per second').blur()
    await page.getByText('about 2 seconds').waitFor()
    await assertReadable(page, 'what was missed')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByText('Sending started.').waitFor()
    const progress = page.getByRole('progressbar')
    await progress.waitFor()
    await assertReadable(page, 'a bulk job')
    await page.getByText('Completed').waitFor()
    expect(await progress.getAttribute('value')).toBe('40')
    await page.goto(`${app.url}/console/webhooks/jobs`)
    await assertReadable(page, 'bulk jobs')
    expect(troubles).toEqual([])
  })

  it('disabling asks first; the secret is prepared and activated', async () => {
    const office = await newOffice(app)
    const id = await office.subscribe('https://example.com/')
    await using visited = await visit(app, browser, `/webhooks/${id}/settings`, {
      person: office.manager,
    })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'Signing secret' }).click()
    await page.getByRole('button', { name: 'Prepare new secret' }).click()
    await page.getByRole('heading', { name: 'Next secret created' }).waitFor()
    await page.getByRole('link', { name: 'Done' }).click()
    await assertReadable(page, 'the secret of a webhook')
    await page.getByRole('button', { name: 'Activate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click()
    await page.getByText('New secret activated.').waitFor()
    await page.goto(`${app.url}/console/webhooks/${id}/settings`)
    await page.getByRole('button', { name: 'Disable' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Scheduled retries are cancelled and marked failed.').waitFor()
    await assertReadable(page, 'a question')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    expect((await webhookOf(office, id)).enabled).toBe(true)
    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog.getByRole('button', { name: 'Disable webhook' }).click()
    await page.getByText('Webhook disabled. Nothing is sent until you enable it again.').waitFor()
    await assertReadable(page, 'a disabled webhook')
    expect(troubles).toEqual([])
  })

  it('is readable on a phone in the dark', async () => {
    await using receiver = await startReceiver({ answers: [500, 204] })
    const office = await newOffice(app)
    const id = await missedSome(office, receiver.url, 1)
    await office.emit(2)
    await receiver.received(2)
    const options = {
      person: office.manager,
      viewport: { width: 390, height: 800 },
      colorScheme: 'dark',
    } as const
    await using visited = await visit(app, browser, '/webhooks', options)
    const { page, troubles } = visited
    await assertReadable(page, 'webhooks')
    const paths = [
      '',
      '/settings',
      '/edit',
      '/secret',
      '/send-missed',
      '/retry-failed',
      '?state=failed&type=task.created',
      '?id=x',
    ]
    for (const path of paths) {
      await page.goto(`${app.url}/console/webhooks/${id}${path}`)
      await assertReadable(page, path)
    }
    // The 422 of an id that is none.
    expect(troubles.filter((trouble) => !trouble.includes('422'))).toEqual([])
  })
})
