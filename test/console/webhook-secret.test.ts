/** The signing secret of a webhook in the console. */
import { describe, expect, it } from 'vitest'
import { activateSecret, prepareSecret } from '../../records/webhook-secrets.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { sharedApp } from '../helpers.ts'
import { signatureOf, startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { mainText } from './forms.ts'
import { newWebhookAdmin, readSecret, SECRET_PATTERN } from './hooks.ts'
import { PASSWORD } from './visitors.ts'

const app = sharedApp({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })

describe('the signing secret', () => {
  it('that cannot be read pauses the webhook until another one is activated', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    const sealed = sealSecret('a key that nobody has any more, at all', id, newSecret())
    await admin.write((scope) => prepareSecret(scope, id, sealed, new Date()))
    await admin.write((scope) => activateSecret(scope, id, new Date()))
    const isPaused = async (path: string): Promise<boolean> =>
      mainText((await admin.visitor.get(path)).text).includes('Paused')
    for (const path of ['/webhooks', `/webhooks/${id}`, `/webhooks/${id}/settings`])
      expect(await isPaused(path)).toBe(true)
    expect(mainText((await admin.visitor.get(`/webhooks/${id}`)).text)).toContain(
      'Deliveries are paused: the signing secret or a header cannot be read. No delivery is lost.',
    )
    const revealed = await admin.visitor.submit(`/webhooks/${id}/secret`, { password: PASSWORD })
    expect(revealed.text).toContain('The signing secret cannot be read')

    await admin.visitor.post(`/webhooks/${id}/secret/prepare`)
    await admin.visitor.submit(`/webhooks/${id}/secret/activate`)
    for (const path of ['/webhooks', `/webhooks/${id}`]) expect(await isPaused(path)).toBe(false)
  })

  it('is shown for the right password, and not after five wrong ones', async () => {
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe('https://example.com/')
    const secret = await admin.secretOf(id)
    const secretPath = `/webhooks/${id}/secret`
    for (const password of ['', 'guess 1', 'guess 2', 'guess 3']) {
      const answer = await admin.visitor.post(secretPath, { password })
      expect(answer.status).toBe(422)
      expect(answer.text).not.toContain('whsec_')
    }
    expect(readSecret(await admin.visitor.post(secretPath, { password: PASSWORD }))).toBe(secret)
    expect((await admin.visitor.get(secretPath)).text).not.toContain(secret)
    expect(await admin.auditEntries()).toEqual([
      { action: 'webhook.secret_revealed', targetId: id, details: {} },
    ])

    for (let count = 0; count < 5; count++)
      await admin.visitor.post(secretPath, { password: 'guess' })
    const locked = await admin.visitor.post(secretPath, { password: PASSWORD })
    expect(locked.status).toBe(422)
    expect(locked.text).toContain('Too many attempts.')
    expect(locked.text).not.toContain('whsec_')
  })

  it('is rotated: the current one signs until the next one is activated', async () => {
    await using receiver = await startReceiver()
    const admin = await newWebhookAdmin(app)
    const id = await admin.subscribe(receiver.url)
    const old = await admin.secretOf(id)
    /** Emits an event. Returns the secret that signs its request. `count` is the number of requests
     *  including this one. */
    const signingSecret = async (count: number): Promise<string | undefined> => {
      await admin.emit()
      const request = (await receiver.received(count))[count - 1]
      return [old, next].find(
        (secret) =>
          request && signatureOf(secret, request.body) === request.headers['x-service-signature'],
      )
    }
    expect((await admin.visitor.submit(`/webhooks/${id}/secret/activate`)).text).toContain(
      'There is no next secret. Prepare one first.',
    )
    const first = readSecret(await admin.visitor.post(`/webhooks/${id}/secret/prepare`))
    const next = readSecret(await admin.visitor.post(`/webhooks/${id}/secret/prepare`))
    expect(new Set([old, first, next]).size).toBe(3)
    const page = await admin.visitor.get(`/webhooks/${id}/secret`)
    expect(page.text).toContain('Prepare another secret')
    expect(page.text).not.toContain('whsec_')
    const shown = await admin.visitor.post(`/webhooks/${id}/secret`, { password: PASSWORD })
    expect(shown.text.match(new RegExp(SECRET_PATTERN, 'g'))).toEqual(
      expect.arrayContaining([old, next]),
    )
    expect(await signingSecret(1)).toBe(old)

    expect((await admin.visitor.submit(`/webhooks/${id}/secret/activate`)).text).toContain(
      'New secret activated.',
    )
    expect(await signingSecret(2)).toBe(next)
    expect((await admin.auditEntries()).map(({ action }) => action)).toEqual([
      'webhook.secret_prepared',
      'webhook.secret_prepared',
      'webhook.secret_revealed',
      'webhook.secret_activated',
    ])
    expect(JSON.stringify(await admin.auditEntries())).not.toContain('whsec_')
  })
})
