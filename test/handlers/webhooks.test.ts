/** Webhooks by API: who may manage them, secrets that are shown once, and the audit log. */
import { describe, expect, test } from 'vitest'
import { etagOf } from '../../operations/etag.ts'
import { type Client, sharedApp, type TestAccount, until } from '../helpers.ts'
import { type Body, expectSuccess, requestExample, UNKNOWN_ID } from './new-records.ts'

const app = sharedApp()

const example = () => requestExample('WebhookCreateBody')
const newWebhook = (client: Client, fields = {}): Promise<Body> =>
  expectSuccess(client.post('/webhooks', { ...example(), ...fields }))

async function newTenant(): Promise<{ account: TestAccount; client: Client }> {
  const account = await app.newAccount()
  return { account, client: app.as(account) }
}

/** The stored rows of the account. */
const rowsOf = (table: string, { accountId }: TestAccount): Promise<Body[]> =>
  app.db.read(table).where({ account_id: accountId }).orderBy('id')

describe('createWebhook', () => {
  test('the example of the contract → 201 with the secret, which a GET and a list have as null', async () => {
    const { client } = await newTenant()
    const { status, body, headers } = await client.post('/webhooks', example())
    expect({ status, body }).toEqual({
      status: 201,
      body: {
        ...example(),
        id: expect.any(String),
        format: 'event',
        ordering: 'none',
        header_names: [],
        enabled: true,
        disabled_at: null,
        secret: expect.stringMatching(/^whsec_[\w+/]{43}=$/),
        has_next_secret: false,
        next_secret: null,
        created_at: expect.any(String),
        updated_at: body.created_at,
      },
    })
    const stored = { ...body, secret: null }
    const read = await client.get(`/webhooks/${body.id}`)
    expect(read.body).toEqual(stored)
    expect((await client.get('/webhooks')).body.data).toEqual([stored])
    expect(headers.get('etag')).toBe(read.headers.get('etag'))
    expect(headers.get('etag')).toBe(etagOf(JSON.stringify(stored)))
    expect(headers.get('location')).toBe(`/public/v1/webhooks/${body.id}`)
  })

  test('a repeated request → the same webhook with secret: null; no table and no log has the secret', async () => {
    const { account, client } = await newTenant()
    const send = () => client.post('/webhooks', example(), { 'Idempotency-Key': 'w' })
    const { body } = await send()
    const again = await send()
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.body).toEqual({ ...body, secret: null })
    const logged = await until('both requests are logged', async () => {
      const rows = await rowsOf('request_log', account)
      return rows.length === 2 && rows
    })
    expect(logged[0].response_body).toContain('"secret":"whsec_…"')
    const stored = await app.db.read('idempotency_keys').where({ user_id: account.userId })
    const everything = JSON.stringify([logged, stored, await rowsOf('audit_log', account)])
    expect(everything).not.toContain(body.secret)
  })

  test('enabled: false → no delivery is created', async () => {
    const { account, client } = await newTenant()
    const webhook = await newWebhook(client, { event_types: ['*'], enabled: false })
    expect(webhook).toMatchObject({ enabled: false, disabled_at: webhook.created_at })
    await expectSuccess(client.post('/participants', { full_name: 'Ada' }))
    expect(await rowsOf('deliveries', account)).toEqual([])
  })

  test.each([
    ['url', { url: 'https://10.0.0.1/' }, /not public/],
    ['url', { url: 'https://example.com:0/' }, /port from 1 to 65535/],
    ['description', { description: 'a\u0007' }, /control characters/],
    ['event_types.0', { event_types: ['task.destroyed'] }, /./],
  ])('a wrong %s → 422, and no webhook', async (field, fields, message) => {
    const { client } = await newTenant()
    const { status, body } = await client.post('/webhooks', { ...example(), ...fields })
    expect(status).toBe(422)
    expect(body.errors[field].join()).toMatch(message)
    expect((await client.get('/webhooks')).body.meta.total).toBe(0)
  })

  test('above the quota → 422 on webhooks', async () => {
    const { account, client } = await newTenant()
    await app.db
      .write('account_quotas')
      .insert({ account_id: account.accountId, name: 'webhooks', value: 1 })
    await newWebhook(client)
    const { status, body } = await client.post('/webhooks', example())
    expect({ status, errors: body.errors }).toEqual({
      status: 422,
      errors: { webhooks: [expect.stringContaining('at most 1 webhook')] },
    })
  })
})

describe('updateWebhook', () => {
  test('all fields → the webhook has them; the same fields again change nothing', async () => {
    const { account, client } = await newTenant()
    const webhook = await newWebhook(client)
    const fields = {
      url: 'https://example.org/other?a=1',
      description: '',
      event_types: ['*'],
      ordering: 'by_resource',
      enabled: false,
    }
    const path = `/webhooks/${webhook.id}`
    const first = await client.patch(path, fields)
    expect(first.body).toMatchObject({ ...fields, disabled_at: expect.any(String) })
    const again = await client.patch(path, fields)
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'))
    expect((await rowsOf('audit_log', account)).map(({ action }) => action)).toEqual([
      'webhook.created',
      'webhook.updated',
      'webhook.disabled',
    ])
    const enabled = await client.patch(path, { enabled: true })
    expect(enabled.body).toMatchObject({ enabled: true, disabled_at: null })
  })

  test('an older version in If-Match → 412, also after the create with its secret', async () => {
    const { client } = await newTenant()
    const created = await client.post('/webhooks', example())
    const path = `/webhooks/${created.body.id}`
    const etag = { 'If-Match': created.headers.get('etag') ?? '' }
    expect(await client.patch(path, { description: 'a' }, etag)).toMatchObject({ status: 200 })
    expect(await client.patch(path, { description: 'b' }, etag)).toMatchObject({ status: 412 })
    expect(await client.delete(path, etag)).toMatchObject({ status: 412 })
  })
})

describe('headers', () => {
  const header = (name: string, value: string | null) => ({ name, value })

  test('are sent, and no response, table or log has their values', async () => {
    const { account, client } = await newTenant()
    const webhook = await newWebhook(client, {
      headers: [header('Authorization', 'Bearer s3cret'), header('X-Api-Key', 's3cret-too')],
    })
    expect(webhook.header_names).toEqual(['Authorization', 'X-Api-Key'])
    const path = `/webhooks/${webhook.id}`
    await client.patch(path, {
      headers: [header('X-Api-Key', 's3cret'), header('X-B', '')],
    } as object)
    await client.patch(path, undefined)
    const read = await client.get(path)
    expect(read.body).toEqual({ ...webhook, secret: null })
    const logged = await until('the requests are logged', async () => {
      const rows = await rowsOf('request_log', account)
      return rows.length >= 3 && rows
    })
    expect(logged[0].request_body).toContain('{"name":"X-Api-Key","value":"…"}')
    const tables = [logged, await rowsOf('webhooks', account), await rowsOf('audit_log', account)]
    expect(JSON.stringify(tables)).not.toContain('s3cret')
  })

  test('the same values again change nothing; others are replaced, kept by null, and removed', async () => {
    const { account, client } = await newTenant()
    const headers = [header('X-A', 'a'), header('X-B', 'b'), header('X-C', 'c')]
    const webhook = await newWebhook(client, { headers })
    const path = `/webhooks/${webhook.id}`
    const patch = (fields: object) => expectSuccess(client.patch(path, fields))
    expect(await patch({ headers })).toEqual({ ...webhook, secret: null })
    expect(await patch({ headers: headers.map(({ name }) => header(name, null)) })).toEqual({
      ...webhook,
      secret: null,
    })
    const changed = await patch({
      headers: [header('x-a', 'new'), header('X-B', null), header('X-Unknown', null)],
    })
    expect(changed.header_names).toEqual(['X-B', 'x-a'])
    expect(changed.updated_at > webhook.updated_at).toBe(true)
    const actions = (await rowsOf('audit_log', account)).map(({ action }) => action)
    expect(actions).toEqual(['webhook.created', 'webhook.updated'])

    // Another host gets no stored value.
    const url = 'https://other.example.com/'
    const kept = await client.patch(path, {
      url,
      headers: [header('x-a', 'new'), header('X-B', null)],
    })
    expect(kept).toMatchObject({
      status: 422,
      body: { errors: { headers: [expect.stringContaining('or remove the headers: X-B.')] } },
    })
    expect(await client.patch(path, { url })).toMatchObject({ status: 422 })
    expect(await patch({ url, headers: [header('x-a', 'new')] })).toMatchObject({
      url,
      header_names: ['x-a'],
    })
  })

  test.each([
    ['a header of deliveries', [header('Webhook-Id', 'a')], 'headers.0.name'],
    ['a name twice', [header('X-A', 'a'), header('x-a', 'b')], 'headers.1.name'],
    ['a space in a name', [header('X A', 'a')], 'headers.0.name'],
    ['a line break in a value', [header('X-A', 'a\r\nHost: b')], 'headers.0.value'],
    ['21 headers', Array.from({ length: 21 }, (_, n) => header(`X-${n}`, 'a')), 'headers'],
  ])('%s → 422', async (_, headers, field) => {
    const { client } = await newTenant()
    const created = await client.post('/webhooks', { ...example(), headers })
    const { id } = await newWebhook(client)
    for (const { status, body } of [created, await client.patch(`/webhooks/${id}`, { headers })])
      expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
  })
})

test('deleteWebhook → 404 for each operation, and the list does not have it', async () => {
  const { client } = await newTenant()
  const { id } = await newWebhook(client)
  expect(await client.delete(`/webhooks/${id.toUpperCase()}`)).toMatchObject({ status: 204 })
  for (const path of ['secret', 'secret/activate', 'test'])
    expect(await client.post(`/webhooks/${id}/${path}`, undefined)).toMatchObject({ status: 404 })
  expect(await client.get(`/webhooks/${id}`)).toMatchObject({ status: 404 })
  expect(await client.patch(`/webhooks/${id}`, {})).toMatchObject({ status: 404 })
  expect((await client.get('/webhooks')).body.meta.total).toBe(0)
})

test('the secrets: prepared, then activated; a repeated activation changes nothing', async () => {
  const { account, client } = await newTenant()
  const { id, secret } = await newWebhook(client)
  const activate = () => expectSuccess(client.post(`/webhooks/${id}/secret/activate`, undefined))
  expect(await activate()).toMatchObject({ has_next_secret: false })
  const prepared = await client.post(`/webhooks/${id}/secret`, undefined, {
    'Idempotency-Key': 'p',
  })
  expect(prepared.body).toMatchObject({
    secret: null,
    has_next_secret: true,
    next_secret: expect.stringMatching(/^whsec_/),
  })
  expect(prepared.body.next_secret).not.toBe(secret)
  const repeated = await client.post(`/webhooks/${id}/secret`, undefined, {
    'Idempotency-Key': 'p',
  })
  expect(repeated.body).toEqual({ ...prepared.body, next_secret: null })
  const read = await client.get(`/webhooks/${id}`)
  expect(read.body).toEqual(repeated.body)
  expect(prepared.headers.get('etag')).toBe(read.headers.get('etag'))
  for (const _ of ['first', 'again'])
    expect(await activate()).toMatchObject({ has_next_secret: false, next_secret: null })
  expect((await rowsOf('audit_log', account)).map(({ action }) => action)).toEqual([
    'webhook.created',
    'webhook.secret_prepared',
    'webhook.secret_activated',
  ])
})

describe('permission', () => {
  test('an Admin: 403 without the grant, and again when the Owner takes it back', async () => {
    const { account } = await newTenant()
    const { accountId } = account
    const { userId } = await app.newUser(accountId, { grants: ['webhooks'], finance: 'write' })
    const admin = app.as({ key: await app.newKey({ accountId, userId }) })
    const { id } = await newWebhook(admin)
    const grant = (isGranted: boolean) =>
      app.db.write('users').where({ id: userId }).update({ can_manage_webhooks: isGranted })
    const refused = {
      status: 403,
      body: { message: 'The owner of this API key may not manage webhooks.' },
    }
    await grant(false)
    expect(await admin.get('/webhooks')).toMatchObject(refused)
    expect(await admin.get(`/webhooks/${id}`)).toMatchObject(refused)
    expect(await admin.get('/deliveries')).toMatchObject(refused)
    expect(await admin.patch(`/webhooks/${id}`, { enabled: false })).toMatchObject(refused)
    expect(await admin.post(`/deliveries/${UNKNOWN_ID}/retry`, undefined)).toMatchObject(refused)
    expect((await admin.get('/me')).body.user.can_manage_webhooks).toBe(false)
    await grant(true)
    expect(await admin.get(`/webhooks/${id}`)).toMatchObject({ body: { enabled: true } })
    expect((await admin.get('/me')).body.user.can_manage_webhooks).toBe(true)
    const [entry] = await rowsOf('audit_log', account)
    expect(entry).toMatchObject({ action: 'webhook.created', user_id: userId, target_id: id })
    expect(entry.ip).toContain('127.0.0.1')
  })

  test('a Member → 403; a Read Only key of the Owner reads, and gets 403 for changes', async () => {
    const { account, client } = await newTenant()
    const { id } = await newWebhook(client)
    const { accountId } = account
    const { userId } = await app.newUser(accountId, { role: 'member' })
    const member = app.as({ key: await app.newKey({ accountId, userId }) })
    expect(await member.get('/webhooks')).toMatchObject({ status: 403 })
    const readOnly = app.as({ key: await app.newKey(account, 'read_only') })
    expect(await readOnly.get(`/webhooks/${id}`)).toMatchObject({
      status: 200,
      body: { secret: null, next_secret: null },
    })
    expect(await readOnly.post('/webhooks', example())).toMatchObject({ status: 403 })
    expect(await readOnly.post(`/webhooks/${id}/secret`, undefined)).toMatchObject({ status: 403 })
  })
})
