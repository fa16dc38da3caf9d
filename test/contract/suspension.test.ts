/** `muster account suspend` and `resume` beside running nodes. */
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { suspendAccount } from '../../records/account-suspension.ts'
import { insertWebhook } from '../../records/webhooks.ts'
import { type Muster, newMuster } from '../cli/muster.ts'
import {
  linkIn,
  listActions,
  newConsoleUser,
  PASSWORD,
  sessionOf,
  visitor,
} from '../console/visitors.ts'
import {
  newDatabase,
  startApp,
  type TestAccount,
  type TestApp,
  type TestDatabase,
  until,
} from '../helpers.ts'
import { newSubscriber, newTenant } from '../webhooks/harness.ts'

const SUSPENDED = 'The account of this API key is suspended.'

describe('a suspended account', () => {
  let database: TestDatabase
  let nodes: TestApp[]
  let app: TestApp
  let muster: Muster
  beforeAll(async () => {
    database = await newDatabase()
    // SQLite has one node.
    const count = inject('database') === 'postgres' ? 2 : 1
    const environment = { WEBHOOK_RETRY_DELAYS: '2,1,1,1,1,1,1,1,1' }
    nodes = []
    for (let node = 0; node < count; node++)
      nodes.push(await startApp({ database, role: 'all', environment }))
    app = nodes[0] as TestApp
    muster = await newMuster()
  })
  afterAll(async () => {
    await muster?.[Symbol.asyncDispose]()
    for (const node of nodes) await node[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const run = (...args: string[]) => muster.run(args, { environment: database.environment })
  const json = (...args: string[]) => muster.json(args, { environment: database.environment })
  const suspend = (account: Pick<TestAccount, 'accountId'>) =>
    json('account', 'suspend', account.accountId)
  const resume = (account: Pick<TestAccount, 'accountId'>) =>
    json('account', 'resume', account.accountId)

  it('API keys: 401 on every node, until the account is resumed; other accounts are served', async () => {
    const account = await app.newAccount()
    const other = await app.newAccount()
    const statuses = async ({ key }: TestAccount) =>
      Promise.all(nodes.map(async (node) => (await node.as({ key }).get('/me')).status))
    const onEachNode = (status: number) => nodes.map(() => status)
    expect(await statuses(account)).toEqual(onEachNode(200))

    await suspend(account)
    const refused = await app.as(account).post('/participants', { full_name: 'Ada' })
    expect([refused.status, refused.body]).toEqual([401, { message: SUSPENDED }])
    expect(refused.headers.get('www-authenticate')).toBe('Bearer realm="Muster API"')
    expect([await statuses(account), await statuses(other)]).toEqual([
      onEachNode(401),
      onEachNode(200),
    ])
    expect(await app.db.read('participants').where({ account_id: account.accountId })).toEqual([])

    await app.db
      .write('api_keys')
      .where({ user_id: account.userId })
      .update({ revoked_at: Date.now() })
    expect((await app.as(account).get('/me')).body.message).toContain('revoked')
    await app.db.write('api_keys').where({ user_id: account.userId }).update({ revoked_at: null })
    await resume(account)
    expect(await statuses(account)).toEqual(onEachNode(200))
    expect(await listActions(app, account.accountId)).toEqual([
      'account.suspended',
      'account.resumed',
    ])
  })

  it('console: sessions end, and sign-in and one-time links are refused until the account is resumed', async () => {
    const account = await app.newAccount()
    const person = await newConsoleUser(app, account.accountId)
    const owner = await visitor(app, account)
    const invited = await newConsoleUser(app, account.accountId)
    const link = linkIn(await owner.post(`/people/${invited.userId}/link`))
    const guest = await visitor(app)
    const signIn = (password: string) => guest.post('/sign-in', { email: person.email, password })
    expect((await owner.get('/people')).status).toBe(200)

    await suspend(account)
    expect(await owner.get('/people')).toMatchObject({
      status: 303,
      to: '/sign-in?next=%2Fconsole%2Fpeople',
    })
    const refused = await signIn(PASSWORD)
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('Your account is suspended.')
    expect(refused.headers.has('set-cookie')).toBe(false)
    expect((await signIn('wrong')).text).not.toContain('suspended')
    expect((await guest.get(link)).status).toBe(404)
    expect((await guest.post(link, { password: PASSWORD })).status).toBe(404)

    await resume(account)
    // A resumed account does not bring back a session.
    expect((await owner.get('/people')).status).toBe(303)
    const signedIn = await signIn(PASSWORD)
    expect((await guest.get('', sessionOf(signedIn))).status).toBe(200)
    expect((await guest.get(link)).status).toBe(200)
  })

  it('deliveries: no attempt is made or counted while suspended, then the schedule continues', async () => {
    await using failing = await newSubscriber(app, { answers: [500, 204] })
    await using other = await newSubscriber(app)
    const { tenant } = failing
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    // Without the command, which takes so long to start that the retry could begin before.
    await tenant.write((scope) => suspendAccount(scope, new Date()))
    const before = (await tenant.find(id)).attempts

    // A new event, and a webhook that did not exist at the suspension.
    const late = await tenant.subscribe(`${failing.receiver.url}/late`)
    await tenant.emit()
    await other.tenant.emit(20)
    await other.receiver.received(20)
    // The retry was due after 2 s.
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect(failing.receiver.requests).toHaveLength(before)
    expect(await tenant.find(id)).toMatchObject({ state: 'retrying', attempts: before })
    for (const node of nodes) {
      const metrics = (await node.call('GET', '/metrics')).text
      const [, oldest] = /^muster_delivery_oldest_due_seconds (.*)$/m.exec(metrics) ?? []
      expect(Number(oldest)).toBeLessThan(1)
      expect(metrics).toMatch(/^muster_delivery_paused_webhooks 0$/m)
    }

    await resume(tenant)
    expect((await tenant.reached(id, 'delivered')).attempts).toBe(before + 1)
    await until('all events are delivered', async () =>
      (await tenant.deliveries()).every(({ state }) => state === 'delivered'),
    )
    const deliveries = await tenant.deliveries()
    expect(deliveries.map(({ attempts }) => attempts).toSorted()).toEqual([1, 1, before + 1])
    expect(deliveries.filter(({ webhookId }) => webhookId === late)).toHaveLength(1)
  })

  it('commands that cause an attempt are refused', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500] })
    const { tenant, webhookId } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    await json('deliveries', 'cancel', id)
    await suspend(tenant)
    for (const args of [
      ['deliveries', 'retry', id],
      ['deliveries', 'retry-failed', '--webhook', webhookId, '--since', '2026-01-01T00:00:00Z'],
      ['webhook', 'test', webhookId],
    ])
      expect(await run(...args)).toEqual({
        status: 1,
        stdout: '',
        stderr: 'The account is suspended. Resume it first with "muster account resume".\n',
      })
  })

  it('a webhook that is created during the suspension command is suspended, too', async () => {
    const tenant = await newTenant(app)
    const webhook = {
      url: 'http://127.0.0.1:9/',
      description: '',
      eventTypes: ['*'],
      createdBy: null,
    }
    const [created] = await Promise.all([
      tenant.write((scope) => insertWebhook(scope, webhook, () => 'sealed', new Date())),
      suspend(tenant),
    ])
    const [row] = await app.db.read('webhooks').where({ id: created.id })
    expect(row.suspended_at).not.toBeNull()
  })
})
