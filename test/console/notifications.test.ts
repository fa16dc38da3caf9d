/** Who is told about webhooks, jobs and quotas outside of the console. */
import { describe, expect, it } from 'vitest'
import { operationalTypes } from '../../generated/events.ts'
import { sharedApp } from '../helpers.ts'
import { fieldErrors, mainText, tableOf } from './forms.ts'
import { loadWebhook, newWebhookAdmin } from './hooks.ts'

const app = sharedApp()

const SLACK = 'https://hooks.slack.com/services/T1/B1/a-secret'
const ALL = Object.keys(operationalTypes)

describe('notifications', () => {
  it('a Slack channel is added once, without its URL on any page, and its notices are changed', async () => {
    const admin = await newWebhookAdmin(app)
    const { visitor } = admin
    const empty = await visitor.get('/notifications')
    expect(mainText(empty.text)).toContain('No recipients yet')
    expect(empty.text.match(/name="event_types" value="[^"]*" checked/g)).toHaveLength(ALL.length)
    const [, key = ''] = /name="form:key" value="([^"]+)"/.exec(empty.text) ?? []
    const fields = { url: SLACK, description: 'Slack #ops', event_types: ALL, 'form:key': key }
    const { to = '' } = await visitor.post('/notifications', fields)
    const [, id = ''] = /^\/webhooks\/([^/]+)\/settings$/.exec(to) ?? []
    expect((await visitor.post('/notifications', fields)).to).toBe('/notifications')
    expect(await admin.scope.rows('webhooks')).toHaveLength(1)
    expect(await loadWebhook(admin, id)).toMatchObject({
      url: 'https://hooks.slack.com/',
      description: 'Slack #ops',
      format: 'slack',
      eventTypes: ALL,
      createdBy: admin.manager.userId,
    })

    const listed = await visitor.get('/notifications')
    expect(tableOf(listed.text, 'Recipients')).toEqual([
      ['Slack #ops', 'Slack', 'All', 'Edit Slack #ops'],
    ])
    const change = { event_types: ['muster.webhook_failing'] }
    await visitor.post(`/notifications/${id}`, change)
    expect(await loadWebhook(admin, id)).toMatchObject({ eventTypes: change.event_types })
    expect((await visitor.post(`/notifications/${id}`, {})).status).toBe(422)
    for (const path of ['/notifications', `/notifications/${id}`, to, `/webhooks/${id}`])
      expect((await visitor.get(path)).text, path).not.toContain('a-secret')
    expect(JSON.stringify(await admin.auditEntries())).not.toContain('a-secret')
    expect((await visitor.get(`/webhooks/${id}/edit`)).status).toBe(404)
  })

  it('a form with errors names them, and keeps what was typed', async () => {
    const { visitor, scope } = await newWebhookAdmin(app)
    const answer = await visitor.post('/notifications', {
      url: 'http://10.0.0.1/',
      description: ' ',
      event_types: [],
    })
    expect(answer.status).toBe(422)
    expect(fieldErrors(answer.text)).toEqual({
      url: expect.stringContaining('10.0.0.1 is not public'),
      description: 'The name must not be empty.',
      event_types: 'Choose at least one notice.',
    })
    expect(answer.text).toContain('value="http://10.0.0.1/"')
    expect(answer.text).not.toContain('checked')
    const record = { url: SLACK, description: 'S', event_types: ['task.created'] }
    expect((await visitor.post('/notifications', record)).status).toBe(422)
    expect(await scope.rows('webhooks')).toEqual([])
  })

  it('a webhook with operational events is listed, and keeps its other events when these are changed', async () => {
    const admin = await newWebhookAdmin(app)
    const form = await admin.visitor.get('/webhooks/new?notices=all')
    expect(form.text.match(/name="event_types" value="muster[^"]*" checked/g)).toHaveLength(
      ALL.length,
    )
    await admin.visitor.post('/webhooks', {
      url: 'https://example.com/',
      event_types: ['*', 'task.created', 'muster.quota_reached'],
    })
    const { id, event_types } = await admin.scope.rows('webhooks').first()
    expect(JSON.parse(event_types)).toEqual(['*', 'muster.quota_reached'])
    expect(tableOf((await admin.visitor.get('/notifications')).text, 'Recipients')).toEqual([
      ['example.com/', 'Webhook', '1 of 7', 'Edit example.com/'],
    ])
    await admin.visitor.post(`/notifications/${id}`, { event_types: ['muster.import_ended'] })
    expect((await loadWebhook(admin, id)).eventTypes).toEqual(['*', 'muster.import_ended'])
    await admin.visitor.post(`/notifications/${id}`, {})
    expect((await loadWebhook(admin, id)).eventTypes).toEqual(['*'])
  })
})
