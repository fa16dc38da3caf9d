import { describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { FIXED_DEFAULTS } from '../../records/quotas.ts'
import type { Route } from '../../web/console/page.ts'
import { routes } from '../../web/console/routes.ts'
import { sharedApp } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { fieldErrors, mainForm, mainText, withValues } from './forms.ts'
import { loadWebhook, newWebhookAdmin, readSecret, subscribeAndMiss } from './hooks.ts'
import { type ConsoleAnswer, newConsoleUser, PASSWORD, type Visitor, visitor } from './visitors.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

const webhookRoutes = routes.filter(({ path }) => /^\/webhooks\b/.test(path))

describe('access to webhooks', () => {
  /** An account with a webhook, a delivery and a bulk job, for requests of different users. */
  async function newTarget() {
    const receiver = await startReceiver()
    const admin = await newWebhookAdmin(app)
    const id = await subscribeAndMiss(admin, receiver.url, 2)
    const { to = '' } = await admin.visitor.post(`/webhooks/${id}/send-missed`, { rate: '500' })
    const delivery = await admin.newest(id, 'delivered')
    const ids: Record<string, string> = {
      ':webhook': id,
      ':delivery': delivery.id,
      ':job': to.split('/').at(-1) ?? '',
    }
    const request = (
      user: Visitor,
      { method, path: template }: Route,
      fields?: Record<string, string>,
    ): Promise<ConsoleAnswer> => {
      const path = template.replace(/:\w+/g, (name) => ids[name] ?? '')
      return method === 'GET' ? user.get(path) : user.post(path, fields)
    }
    return {
      admin,
      id,
      /** Requests a route with the IDs of this account. */
      request,
      [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
    }
  }

  it('the Owner and an Admin with the grant can open every page', async () => {
    await using target = await newTarget()
    for (const person of [target.admin.manager, target.admin.owner]) {
      const user = await visitor(app, person)
      for (const route of webhookRoutes.filter(({ method }) => method === 'GET'))
        expect((await target.request(user, route)).status, route.path).toBe(200)
    }
  })

  it('an Admin without the grant sees lists and logs without buttons, secrets or signatures, and reads whom to ask', async () => {
    await using target = await newTarget()
    const { admin, id } = target
    const reader = await visitor(
      app,
      await newConsoleUser(app, admin.accountId, { fullName: 'Priya Raman' }),
    )
    const readable = [
      ...['/webhooks', '/webhooks/jobs', '/webhooks/jobs/:job', '/webhooks/:webhook'],
      ...['/webhooks/:webhook/settings', '/webhooks/:webhook/deliveries/:delivery'],
    ]
    for (const route of webhookRoutes) {
      const answer = await target.request(reader, route)
      const isReadable = route.method === 'GET' && readable.includes(route.path)
      expect(answer.status, `${route.method} ${route.path}`).toBe(isReadable ? 200 : 404)
      if (!isReadable) continue
      const main = /<main[\s\S]*<\/main>/.exec(answer.text)?.[0] ?? ''
      expect(main, route.path).not.toMatch(/method="post"|hx-post|formmethod/)
      expect(main, route.path).not.toMatch(/whsec_|x-service-signature/)
    }
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/settings`])
      expect(mainText((await reader.get(path)).text)).toContain(
        'You can view webhooks but not change them. To get access, ask Test Owner, the Account Owner',
      )
  })

  it('a Member gets 404 and a guest the sign-in page for every route', async () => {
    await using target = await newTarget()
    const member = await visitor(
      app,
      await newConsoleUser(app, target.admin.accountId, { role: 'member' }),
    )
    const guest = await visitor(app)
    for (const route of webhookRoutes) {
      expect((await target.request(member, route)).status, route.path).toBe(404)
      expect((await target.request(guest, route)).to, route.path).toMatch(/^\/sign-in/)
    }
    expect((await member.get('')).text).not.toContain('href="/console/webhooks"')
  })

  it('the manager of another account gets 404 for every URL with an ID, and changes nothing', async () => {
    await using target = await newTarget()
    const stranger = await newWebhookAdmin(app)
    const before = await target.admin.auditEntries()
    for (const route of webhookRoutes.filter(({ path }) => path.includes(':'))) {
      const fields = {
        password: PASSWORD,
        url: 'https://example.com/',
        event_types: '*',
        since: '2026-01-01T00:00',
        rate: '1',
      }
      const answer = await target.request(stranger.visitor, route, fields)
      expect(answer.status, `${route.method} ${route.path}`).toBe(404)
    }
    expect(await target.admin.auditEntries()).toEqual(before)
    expect(await loadWebhook(target.admin, target.id)).toMatchObject({
      enabled: true,
      hasNextSecret: false,
    })
    // The delivery of another webhook in the same account is not found either.
    const other = await target.admin.subscribe('https://example.com/')
    const [delivery] = await target.admin.deliveries()
    expect(
      (await target.admin.visitor.get(`/webhooks/${other}/deliveries/${delivery?.id}`)).status,
    ).toBe(404)
  })
})

describe('a webhook', () => {
  it('lists every event with its description, stores the input, and shows the secret once', async () => {
    const admin = await newWebhookAdmin(app)
    const blank = await admin.visitor.get('/webhooks/new')
    const shown = mainText(blank.text)
    for (const { name, description } of Object.values(eventTypes)) {
      expect(blank.text).toContain(`value="${name}"`)
      // Code is an element of its own, which adds spaces to the text of the page.
      expect(shown.replace(/ ([.,:;])/g, '$1')).toContain(
        description
          .replaceAll('`', ' ')
          .replace(/\s+/g, ' ')
          .replace(/ ([.,:;])/g, '$1')
          .trim(),
      )
    }
    const answer = await admin.visitor.post('/webhooks', {
      url: 'https://example.com/hooks#part',
      description: ' Order system ',
      event_types: ['task.created', 'payment.paid', 'task.created'],
      ordering: 'by_resource',
    })
    const secret = readSecret(answer)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { id } = await admin.scope.rows('webhooks').first('id')
    expect(await loadWebhook(admin, id)).toMatchObject({
      url: 'https://example.com/hooks',
      description: 'Order system',
      eventTypes: ['task.created', 'payment.paid'],
      ordering: 'by_resource',
      enabled: true,
      createdBy: admin.manager.userId,
    })
    expect(await admin.secretOf(id)).toBe(secret)
    for (const path of [
      '/webhooks',
      `/webhooks/${id}`,
      `/webhooks/${id}/settings`,
      `/webhooks/${id}/edit`,
      `/webhooks/${id}/secret`,
    ])
      expect((await admin.visitor.get(path)).text, path).not.toContain(secret)
    const [entry] = await admin.auditEntries()
    expect(entry).toMatchObject({
      action: 'webhook.created',
      targetId: id,
      details: { event_types: 'task.created, payment.paid' },
    })
    expect(JSON.stringify(entry)).not.toContain(secret)
  })

  it('invalid input: 422, an error for each field, and the input stays', async () => {
    const admin = await newWebhookAdmin(app)
    const wrong = {
      url: 'http://169.254.169.254/latest"><script>alert(1)</script>',
      description: `<script>alert(1)</script>${'x'.repeat(200)}`,
      event_types: ['task.created', 'task.exploded'],
      ordering: 'sideways',
      headers: 'Host: example.com',
    }
    const answer = await admin.visitor.post('/webhooks', wrong)
    expect(answer.status).toBe(422)
    expect(fieldErrors(answer.text)).toEqual({
      url:
        'The URL must point to a public IP address, and 169.254.169.254 is not public. ' +
        'An operator can permit it with WEBHOOK_ALLOW_ADDRESSES.',
      description: 'The description must be at most 200 characters long.',
      event_types: 'There is no event “task.exploded”.',
      ordering: 'Choose an order.',
      headers: 'Muster sets the header Host itself. Use another name.',
    })
    expect(answer.text).not.toContain('<script>alert')
    const { url, description, event_types } = withValues(mainForm(answer.text), {})
    expect({ url, description, event_types }).toEqual({
      url: wrong.url,
      description: wrong.description,
      event_types: 'task.created',
    })

    const nothing = await admin.visitor.post('/webhooks', {})
    expect(fieldErrors(nothing.text)).toEqual({
      url: 'Enter a complete URL, for example https://example.com/webhooks.',
      event_types: 'Choose at least one event.',
    })
    expect(await admin.scope.rows('webhooks')).toEqual([])
  })

  it('more webhooks than the account may have: 422, and the input stays', async () => {
    const admin = await newWebhookAdmin(app)
    for (let count = 0; count < FIXED_DEFAULTS.webhooks; count++)
      await admin.subscribe(`https://example.com/${count}`)
    const answer = await admin.visitor.post('/webhooks', {
      url: 'https://example.com/more',
      event_types: '*',
    })
    expect(answer.status).toBe(422)
    expect(answer.text).toContain('An account may have at most 50 webhooks.')
    expect(answer.text).toContain('value="https://example.com/more"')
    expect((await admin.visitor.get('/webhooks')).status).toBe(200)
  })

  it('checks a URL while it is typed, at most 60 times a minute', async () => {
    const admin = await newWebhookAdmin(app)
    const verdict = async (url: string): Promise<string> => {
      const answer = await admin.visitor.post('/webhooks/check-url', {
        url,
        description: 'as it is',
      })
      expect(answer.status).toBe(200)
      return mainText(/<div id="url-verdict"[\s\S]*?<\/div>/.exec(answer.text)?.[0] ?? '')
    }
    expect(await verdict('https://example.com/in')).toContain('This URL is valid.')
    expect(await verdict('ftp://example.com/in')).toContain('The URL must begin with https://.')
    expect(await verdict('https://localhost./')).toContain('This URL is valid.')
    expect(await verdict('https://10.0.0.1/')).toContain('10.0.0.1 is not public')
    expect((await verdict(' ')).trim()).toBe('')
    // An empty URL does not count, so these and the four above are 60.
    for (let count = 0; count < 56; count++) await verdict('https://example.com/')
    expect(await verdict('https://example.com/')).toContain('Too many attempts.')
    // Each user has a limit of their own.
    const colleague = await visitor(
      app,
      await newConsoleUser(app, admin.accountId, { grants: ['webhooks'] }),
    )
    expect(
      (await colleague.post('/webhooks/check-url', { url: 'https://example.com/' })).text,
    ).toContain('This URL is valid.')
  })

  it('an update writes old and new values to the audit log; a form without a change writes nothing', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/old', { eventTypes: ['task.created'] })
    const { fields, to } = mainForm((await admin.visitor.get(`/webhooks/${id}/edit`)).text)
    expect(to).toBe(`/webhooks/${id}/edit`)
    const same = withValues({ to, fields }, {})
    expect((await admin.visitor.submit(to, same)).text).toContain('No changes to save.')
    expect(await admin.auditEntries()).toEqual([])

    const bad = await admin.visitor.post(to, { ...same, url: 'nowhere' })
    expect(bad.status).toBe(422)
    expect(bad.text).toContain('value="nowhere"')
    const changed = { ...same, url: 'https://example.com/new', event_types: ['*', 'task.created'] }
    expect((await admin.visitor.submit(to, changed)).text).toContain(
      'Webhook updated. The next attempt uses the new URL.',
    )
    expect(await loadWebhook(admin, id)).toMatchObject({
      url: 'https://example.com/new',
      eventTypes: ['*'],
    })
    expect(await admin.auditEntries()).toEqual([
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
    const described = { ...changed, description: 'The shop' }
    expect((await admin.visitor.submit(to, described)).text).not.toContain('uses the new URL')
  })

  it('an international host name is shown as people write it, and stays the same when it is saved', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://xn--bcher-kva.example/in')
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/settings`])
      expect(mainText((await admin.visitor.get(path)).text), path).toContain('bücher.example/in')
    const edit = mainForm((await admin.visitor.get(`/webhooks/${id}/edit`)).text)
    const form = withValues(edit, {})
    expect(form.url).toBe('https://bücher.example/in')
    expect((await admin.visitor.submit(edit.to, form)).text).toContain('No changes to save.')
    expect((await loadWebhook(admin, id)).url).toBe('https://xn--bcher-kva.example/in')
  })

  it('headers: stored values are never shown, and stay unless a line is replaced or removed', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(app)
    const created = await admin.visitor.post('/webhooks', {
      url: receiver.url,
      event_types: '*',
      headers: 'Authorization: Bearer first\r\n\r\nX-Api-Key: kept-value\r\nX-Old: removed-value',
    })
    readSecret(created)
    const { id } = await admin.scope.rows('webhooks').first('id')
    const edit = mainForm((await admin.visitor.get(`/webhooks/${id}/edit`)).text)
    const form = withValues(edit, {})
    expect(form.headers).toBe('Authorization: ••••••••\nX-Api-Key: ••••••••\nX-Old: ••••••••')
    const headers = 'authorization: Bearer second\nX-Api-Key: ••••••••'
    const saved = await admin.visitor.submit(edit.to, { ...form, headers })
    expect(saved.text).toContain('Webhook updated.')
    expect(mainText(saved.text)).toContain('X-Api-Key')
    const unknown = await admin.visitor.post(edit.to, { ...form, headers: 'X-New: ••••••••' })
    expect(fieldErrors(unknown.text).headers).toContain('The value of X-New must have')

    const elsewhere = { ...form, headers, url: 'https://example.com/' }
    expect(fieldErrors((await admin.visitor.post(edit.to, elsewhere)).text).headers).toContain(
      'Enter them again, or remove the headers: X-Api-Key.',
    )

    await admin.emit()
    const delivery = await admin.newest(id, 'delivered')
    expect(receiver.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer second',
      'x-api-key': 'kept-value',
    })
    expect(receiver.requests[0]?.headers).not.toHaveProperty('x-old')
    for (const path of ['/edit', '/settings', `/deliveries/${delivery.id}`])
      expect((await admin.visitor.get(`/webhooks/${id}${path}`)).text, path).not.toMatch(
        /Bearer|kept-value/,
      )
    const entries = await admin.auditEntries()
    expect(entries).toMatchObject([
      { details: { headers: 'Authorization, X-Api-Key, X-Old' } },
      {
        details: {
          changes: {
            headers: {
              from: 'Authorization, X-Api-Key, X-Old',
              to: 'X-Api-Key, authorization (new value)',
            },
          },
        },
      },
    ])
    expect(JSON.stringify(entries)).not.toMatch(/Bearer|-value/)
  })

  it('more than ten test events within a minute: refused', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('http://127.0.0.1:9/')
    const texts = []
    for (let n = 0; n < 11; n++)
      texts.push((await admin.visitor.submit(`/webhooks/${id}/test`)).text)
    expect(texts.filter((text) => text.includes('Test event sent.'))).toHaveLength(10)
    expect(texts[10]).toContain('Too many attempts. Try again in 1 minute.')
  })

  it('sends a test event, cancels retries when it is disabled, and gets 404 after its deletion', async () => {
    await using receiver = await startReceiver({ answers: [204, 500] })
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    expect((await admin.visitor.submit(`/webhooks/${id}/test`)).text).toContain('Test event sent.')
    expect(await admin.newest(id, 'delivered')).toMatchObject({ eventType: 'webhook.test' })

    await admin.emit()
    await admin.newest(id, 'retrying')
    const settings = mainText((await admin.visitor.get(`/webhooks/${id}/settings`)).text)
    expect(settings).toContain('Scheduled retries are cancelled and marked failed.')
    expect(settings).toContain('The webhook and its delivery log are no longer shown.')
    const disabled = await admin.visitor.submit(`/webhooks/${id}/disable`)
    expect(disabled.text).toContain('Webhook disabled. Nothing is sent until you enable it again.')
    expect(mainText(disabled.text)).toContain(
      'Nothing is sent. After you enable it again, you can send the events it missed.',
    )
    expect((await admin.newest(id, 'failed')).failureReason).toBe('webhook_disabled')
    expect((await admin.visitor.submit(`/webhooks/${id}/test`)).text).toContain(
      'The webhook is disabled. Enable it first.',
    )
    await admin.visitor.post(`/webhooks/${id}/disable`)

    expect(mainText((await admin.visitor.submit(`/webhooks/${id}/enable`)).text)).toContain(
      'and may have missed events.',
    )
    expect(mainText((await admin.visitor.submit(`/webhooks/${id}/delete`)).text)).toContain(
      'deleted. Webhooks',
    )
    expect((await admin.visitor.get(`/webhooks/${id}`)).status).toBe(404)
    expect((await admin.auditEntries()).map(({ action, targetId }) => [action, targetId])).toEqual(
      ['test_sent', 'disabled', 'enabled', 'deleted'].map((name) => [`webhook.${name}`, id]),
    )
  })

  it('disabled several times at once: one entry in the audit log', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    const others = await Promise.all(
      [1, 2, 3].map(async () => {
        const person = await newConsoleUser(app, admin.owner.accountId, { grants: ['webhooks'] })
        return visitor(app, person)
      }),
    )
    const posts = [admin.visitor, ...others].map((each) => each.post(`/webhooks/${id}/disable`))
    expect((await Promise.all(posts)).map(({ status }) => status)).toEqual([303, 303, 303, 303])
    expect((await admin.auditEntries()).map(({ action }) => action)).toEqual(['webhook.disabled'])
  })
})
