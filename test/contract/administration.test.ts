/** `muster webhook update|delete` and `muster user list|update|deactivate` beside a running
 *  service. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Muster, newMuster } from '../cli/muster.ts'
import { linkIn, listActions, newConsoleUser, PASSWORD, visitor } from '../console/visitors.ts'
import { UNKNOWN_ID } from '../handlers/new-records.ts'
import { startApp, type TestApp } from '../helpers.ts'
import { newSubscriber } from '../webhooks/harness.ts'

let app: TestApp
let muster: Muster
beforeAll(async () => {
  app = await startApp({ role: 'all' })
  muster = await newMuster()
})
afterAll(async () => {
  await muster?.[Symbol.asyncDispose]()
  await app?.[Symbol.asyncDispose]()
})

const options = () => ({
  environment: { ...app.database.environment, WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' },
})
const run = (...args: string[]) => muster.run(args, options())
const json = (...args: string[]) => muster.json(args, options())
const refusal = (message: string) => ({ status: 1, stdout: '', stderr: `${message}\n` })

describe('webhook update', () => {
  it('changes the named fields for the next event, and no others', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant, receiver, webhookId } = subscriber
    await tenant.emit()
    await receiver.received(1)
    const url = new URL('/moved', receiver.url).href
    const change = ['--url', url, '--events', 'task.created']
    const changed = await json('webhook', 'update', webhookId, ...change)
    expect(changed).toEqual({
      id: webhookId,
      changes: {
        url: { from: receiver.url, to: url },
        event_types: { from: '*', to: 'task.created' },
      },
    })
    await tenant.emit(1, 'participant.created')
    await tenant.emit(1, 'task.created')
    await receiver.received(2)
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/webhooks', '/moved'])

    const otherFields = ['--description', 'Orders', '--ordering', 'by_resource']
    expect((await run('webhook', 'update', webhookId, ...otherFields)).stdout).toBe(
      `Updated webhook ${webhookId}: description, ordering.\n`,
    )
    expect((await run('webhook', 'update', webhookId, ...otherFields)).stdout).toBe(
      `Webhook ${webhookId} has these values already.\n`,
    )
    const [listed] = await json('webhook', 'list', '--account', tenant.accountId)
    expect(listed).toMatchObject({
      url,
      description: 'Orders',
      event_types: ['task.created'],
      ordering: 'by_resource',
      enabled: true,
    })
    expect(await listActions(app, tenant.accountId)).toEqual(['webhook.updated', 'webhook.updated'])
  })

  it('refuses invalid fields, and changes nothing', async () => {
    await using subscriber = await newSubscriber(app)
    const { tenant, webhookId } = subscriber
    const findWebhook = () => app.db.read('webhooks').where({ id: webhookId }).first()
    const before = await findWebhook()
    const update = (...args: string[]) => run('webhook', 'update', webhookId, ...args)
    expect(await update('--url', 'http://10.0.0.1/', '--description', 'x')).toMatchObject({
      status: 1,
      stdout: '',
    })
    expect(await update('--description', 'x'.repeat(201))).toEqual(
      refusal('The description must be at most 200 characters long.'),
    )
    for (const args of [[], ['--events', 'nonsense'], ['--ordering', 'random']])
      expect((await update(...args)).status).toBe(2)
    expect(await run('webhook', 'update', UNKNOWN_ID, '--description', 'x')).toEqual(
      refusal(`There is no webhook ${UNKNOWN_ID}`),
    )
    expect(await findWebhook()).toEqual(before)
    expect(await listActions(app, tenant.accountId)).toEqual([])
  })
})

describe('webhook delete', () => {
  it('ends its scheduled deliveries, and sends nothing more', async () => {
    await using subscriber = await newSubscriber(app, { answers: [500] })
    const { tenant, receiver, webhookId } = subscriber
    const { id } = await tenant.emitOne()
    await tenant.reached(id, 'retrying')
    expect(await json('webhook', 'delete', webhookId)).toEqual({ id: webhookId, deleted: true })
    expect(await tenant.find(id)).toMatchObject({
      state: 'failed',
      failureReason: 'webhook_deleted',
      nextAttemptAt: null,
    })
    const before = receiver.requests.length
    await tenant.emit()
    expect(await tenant.deliveries()).toHaveLength(1)
    expect(receiver.requests).toHaveLength(before)
    expect(await json('webhook', 'list', '--account', tenant.accountId)).toEqual([])
    expect(await run('webhook', 'delete', webhookId)).toEqual(
      refusal(`There is no webhook ${webhookId}`),
    )
    expect(await listActions(app, tenant.accountId)).toEqual(['webhook.deleted'])
  })
})

describe('user list, update and deactivate', () => {
  it('deactivate: ends sign-in, sessions, the link and API keys of the user at once, and of no other', async () => {
    const account = await app.newAccount()
    const { accountId } = account
    const person = await newConsoleUser(app, accountId)
    const key = await app.newKey(person)
    const session = await visitor(app, person)
    const owner = await visitor(app, account)
    const link = linkIn(await owner.post(`/people/${person.userId}/link`))
    const guest = await visitor(app)
    const signIn = () => guest.post('/sign-in', { email: person.email, password: PASSWORD })
    const me = () => app.call('GET', '/public/v1/me', { key })
    expect([(await session.get('')).status, (await me()).status]).toEqual([200, 200])

    const deactivate = ['user', 'deactivate', '--email', person.email]
    expect(await json(...deactivate)).toEqual({ user_id: person.userId, status: 'deactivated' })
    expect([(await session.get('')).status, (await me()).status]).toEqual([303, 401])
    expect([(await signIn()).status, (await guest.get(link)).status]).toEqual([401, 404])
    expect([(await owner.get('')).status, (await app.as(account).get('/me')).status]).toEqual([
      200, 200,
    ])
    expect((await run(...deactivate)).stdout).toBe(`${person.email} is deactivated already.\n`)
    const actions = await listActions(app, accountId)
    expect(actions.filter((action) => action === 'user.deactivated')).toHaveLength(1)

    // A reactivation does not bring back old cookies and links.
    expect((await owner.post(`/people/${person.userId}/reactivate`)).status).toBe(303)
    expect([(await session.get('')).status, (await guest.get(link)).status]).toEqual([303, 404])
    expect([(await signIn()).status, (await me()).status]).toEqual([303, 200])
  })

  it('deactivate: refuses the Owner of an account', async () => {
    const { userId } = await app.newAccount()
    const { email } = await app.db.read('users').where({ id: userId }).first('email')
    expect(await run('user', 'deactivate', '--email', email)).toEqual(
      refusal('The Account Owner cannot be deactivated. Transfer the ownership first.'),
    )
    expect(await run('user', 'deactivate', '--email', 'nobody@example.com')).toEqual(
      refusal('There is no user with the email nobody@example.com'),
    )
  })

  it('update: frees an email for another user, and refuses one that is used', async () => {
    const { accountId } = await app.newAccount()
    const { email, userId } = await newConsoleUser(app, accountId)
    const update = ['user', 'update', '--email', email, '--new-email']
    const taken = (await newConsoleUser(app, accountId)).email
    expect(await run(...update, taken)).toEqual(
      refusal(`A user with the email ${taken} already exists.`),
    )
    const other = `other.${email}`
    expect(await json(...update, other)).toEqual({ user_id: userId, email: other })
    const guest = await visitor(app)
    const signIn = async (as: string) =>
      (await guest.post('/sign-in', { email: as, password: PASSWORD })).status
    expect([await signIn(email), await signIn(other)]).toEqual([401, 303])
    expect(await listActions(app, accountId)).toContain('user.email_changed')
    const fields = ['--account', accountId, '--role', 'member', '--password', PASSWORD]
    expect((await run('user', 'create', '--email', email, ...fields)).status).toBe(0)
  })

  it('list: users of one account with their states, without secrets', async () => {
    const { accountId, userId } = await app.newAccount()
    const invited = await newConsoleUser(app, accountId, { role: 'member', fullName: 'Ivy' })
    await app.db.write('users').where({ id: invited.userId }).update({ password_hash: null })
    const gone = await newConsoleUser(app, accountId, { grants: ['webhooks'] })
    await json('user', 'deactivate', '--email', gone.email)
    const users = await json('user', 'list', '--account', accountId)
    expect(users).toMatchObject([
      { id: userId, account_id: accountId, role: 'owner', state: 'active' },
      { id: invited.userId, full_name: 'Ivy', role: 'member', state: 'invited', grants: [] },
      { id: gone.userId, role: 'admin', state: 'deactivated', grants: ['webhooks'] },
    ])
    expect(JSON.stringify(users)).not.toMatch(/password|hash/)
    const { stdout } = await run('user', 'list', '--account', accountId)
    expect(stdout.split('\n')[0]).toMatch(/^ID +ACCOUNT +EMAIL +NAME +ROLE +STATE$/)
    expect(stdout.trimEnd().split('\n')).toHaveLength(4)
    expect((await json('user', 'list')).length).toBeGreaterThan(3)
  })
})
