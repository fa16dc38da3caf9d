/** API keys: access to the pages, and the effect of changes on the next API request. */
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { issueApiKey } from '../../auth/api-key.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import type { Grant } from '../../records/users.ts'
import { assertReadable } from '../browser.ts'
import { sharedApp, type TestAccount, type TestApp, until } from '../helpers.ts'
import { pathOfLink } from './forms.ts'
import { newSite, SCREENS } from './site.ts'
import {
  type ConsoleAnswer,
  memberWith,
  newAccountOwner,
  newConsoleUser,
  PASSWORD,
  TOKEN_PATTERN,
  type Visitor,
  visitor,
} from './visitors.ts'

function tokenIn({ text, status }: ConsoleAnswer): string {
  const [token] = text.match(TOKEN_PATTERN) ?? []
  if (status !== 200 || token === undefined) throw new Error(`There is no token in ${text}`)
  return token
}

async function keyNamed(app: TestApp, name: string) {
  const [key] = await app.db.read('api_keys').where({ name })
  return key
}

describe('API keys', () => {
  let account: TestAccount
  let owner: Visitor
  const app = sharedApp()
  beforeAll(async () => {
    ;({ account, owner } = await newAccountOwner(app))
  })

  const visitorWithGrant = async (grant: Grant): Promise<Visitor> =>
    visitor(app, await newConsoleUser(app, account.accountId, { grants: [grant] }))

  it('creates a key for the signed-in user, and shows its token in a curl command once', async () => {
    const admin = await newConsoleUser(app, account.accountId, {
      fullName: 'Jonas Weber',
      grants: ['api_keys'],
    })
    const adminVisitor = await visitor(app, admin)
    const answer = await adminVisitor.post('/api-keys', {
      name: ' Nightly import ',
      access_level: 'full_access',
    })
    const token = tokenIn(answer)
    expect(answer.text.replaceAll('&#39;', "'")).toContain(
      `curl -H 'Authorization: Bearer ${token}' ${app.config.baseUrl}/public/v1/participants`,
    )
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await keyNamed(app, 'Nightly import')).toMatchObject({
      user_id: admin.userId,
      access_level: 'full_access',
      token_prefix: token.slice(0, 8),
    })
    expect(
      (await app.as({ key: token }).post('/tasks', { title: 'Made with the new key' })).status,
    ).toBe(201)

    const { text } = await adminVisitor.get('/api-keys')
    expect(text).toContain('Nightly import')
    expect(text).toContain(`${token.slice(0, 8)}…`)
    expect(text).not.toContain(token)
    expect(JSON.stringify(await app.db.read('audit_log').select('*'))).not.toContain(token)
  })

  it('an invalid name or access level: 422 with the error and the input', async () => {
    const before = await app.db.read('api_keys').count({ total: '*' })
    const nameless = await owner.post('/api-keys', { name: ' ', access_level: 'full_access' })
    expect(nameless.status).toBe(422)
    expect(nameless.text).toContain('Enter a name.')
    expect(nameless.text).toContain('value="full_access" checked')
    const other = await owner.post('/api-keys', { name: 'CI', access_level: 'admin' })
    expect(other.status).toBe(422)
    expect(other.text).toContain('Choose an access level.')
    expect(other.text).toContain('value="CI"')
    expect(await app.db.read('api_keys').count({ total: '*' })).toEqual(before)
  })

  it('updates the name and access level from the next request on', async () => {
    const token = tokenIn(
      await owner.post('/api-keys', { name: 'Storefront', access_level: 'full_access' }),
    )
    const { id } = await keyNamed(app, 'Storefront')
    const write = async () => (await app.as({ key: token }).post('/tasks', { title: 'x' })).status
    expect(await write()).toBe(201)
    expect(
      (await owner.submit(`/api-keys/${id}`, { name: 'Shop', access_level: 'read_only' })).text,
    ).toContain('Key “Shop” updated.')
    expect(await write()).toBe(403)
    expect((await app.as({ key: token }).get('/tasks')).status).toBe(200)
    const [entry] = await app.db
      .read('audit_log')
      .where({ target_id: id, action: 'api_key.changed' })
    expect(JSON.parse(entry.details)).toEqual({
      changes: {
        name: { from: 'Storefront', to: 'Shop' },
        access_level: { from: 'full_access', to: 'read_only' },
      },
    })
    const tooLong = 'x'.repeat(201)
    const refused = await owner.post(`/api-keys/${id}`, {
      name: tooLong,
      access_level: 'read_only',
    })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(tooLong)
  })

  it('revokes a key: its requests fail with 401, it cannot be updated, and the Revoked tab lists it', async () => {
    const token = tokenIn(
      await owner.post('/api-keys', { name: 'Old CI', access_level: 'read_only' }),
    )
    const { id } = await keyNamed(app, 'Old CI')
    expect((await app.as({ key: token }).get('/tasks')).status).toBe(200)
    expect((await owner.submit(`/api-keys/${id}/revoke`)).text).toContain(
      'Key “Old CI” revoked. Requests with it now fail.',
    )
    expect((await app.as({ key: token }).get('/tasks')).status).toBe(401)
    const { revoked_at } = await keyNamed(app, 'Old CI')
    await owner.post(`/api-keys/${id}/revoke`)
    expect(
      (await owner.submit(`/api-keys/${id}`, { name: 'New CI', access_level: 'full_access' })).text,
    ).toContain('is revoked. Create another key instead.')
    expect(await keyNamed(app, 'Old CI')).toMatchObject({ revoked_at, access_level: 'read_only' })
    // The notice with the name of the key has been shown on an earlier page.
    expect((await owner.get('/api-keys')).text).not.toContain('Old CI')
    expect((await owner.get('/api-keys?state=revoked')).text).toContain('Old CI')
    expect(
      await app.db.read('audit_log').where({ target_id: id, action: 'api_key.revoked' }),
    ).toHaveLength(1)
  })

  it('shows the last use, and the keys of deactivated users', async () => {
    const person = await newConsoleUser(app, account.accountId, {
      fullName: 'Lena Fischer',
      grants: ['api_keys'],
    })
    const token = tokenIn(
      await (await visitor(app, person)).post('/api-keys', {
        name: 'Of Lena',
        access_level: 'read_only',
      }),
    )
    expect((await app.as({ key: token }).get('/tasks')).status).toBe(200)
    const readKeyRow = async () =>
      (await owner.get('/api-keys')).text.match(/<tr(?:(?!<\/tr>).)*Of Lena.*?<\/tr>/s)?.[0] ?? ''
    await until('the last use is stored', async () => !(await readKeyRow()).includes('Never'))
    expect(await readKeyRow()).not.toContain('Deactivated')
    await app.db.write('users').where({ id: person.userId }).update({ status: 'deactivated' })
    expect(await readKeyRow()).toContain('Deactivated')
  })

  it('an Admin without the grant: lists the keys, and gets 404 for every action, as a Member does', async () => {
    await owner.post('/api-keys', { name: 'Of the Owner', access_level: 'full_access' })
    const { id } = await keyNamed(app, 'Of the Owner')
    const manager = await visitorWithGrant('api_keys')
    const reader = await visitorWithGrant('webhooks')
    const member = await memberWith(app, account, {})

    const list = await reader.get('/api-keys')
    expect(list.text).toContain('Of the Owner')
    expect(list.text).toContain('ask Test Owner, the Account Owner')
    const managedList = await manager.get('/api-keys')
    for (const action of ['Create API key', 'Revoke<', `/console/api-keys/${id}`]) {
      expect(managedList.text).toContain(action)
      expect(list.text).not.toContain(action)
    }
    expect(list.text).not.toMatch(/api-keys\/[0-9a-f]{8}-/)
    expect((await member.get('/api-keys')).status).toBe(404)
    for (const user of [reader, member])
      for (const answer of [
        await user.get('/api-keys/new'),
        await user.get(`/api-keys/${id}`),
        await user.post('/api-keys', { name: 'Not to be', access_level: 'full_access' }),
        await user.post(`/api-keys/${id}`, { name: 'Not to be', access_level: 'read_only' }),
        await user.post(`/api-keys/${id}/revoke`),
      ])
        expect(answer.status).toBe(404)
    expect(await keyNamed(app, 'Not to be')).toBeUndefined()
    expect(await keyNamed(app, 'Of the Owner')).toMatchObject({
      access_level: 'full_access',
      revoked_at: null,
    })
  })

  it('an Admin with the grant: restricts and revokes the key of another user, but cannot give it Full Access', async () => {
    const name = 'Of the Owner, managed'
    await owner.post('/api-keys', { name, access_level: 'full_access' })
    const { id } = await keyNamed(app, name)
    const manager = await visitorWithGrant('api_keys')
    await manager.post(`/api-keys/${id}`, { name, access_level: 'read_only' })
    expect(await keyNamed(app, name)).toMatchObject({
      access_level: 'read_only',
      user_id: account.userId,
    })
    const raised = await manager.submit(`/api-keys/${id}`, { name, access_level: 'full_access' })
    expect(raised.text).toContain(
      'Only the owner of the key and the Account Owner can give it Full Access.',
    )
    expect(await keyNamed(app, name)).toMatchObject({ access_level: 'read_only' })
    await manager.post(`/api-keys/${id}/revoke`)
    expect((await keyNamed(app, name)).revoked_at).not.toBeNull()
  })

  it('keys of another account: 404, and nothing changes', async () => {
    const stranger = await visitor(app, await app.newAccount())
    await owner.post('/api-keys', { name: 'Ours alone', access_level: 'full_access' })
    const before = await keyNamed(app, 'Ours alone')
    expect((await stranger.get(`/api-keys/${before.id}`)).status).toBe(404)
    expect(
      (await stranger.post(`/api-keys/${before.id}`, { name: 'Theirs', access_level: 'read_only' }))
        .status,
    ).toBe(404)
    expect((await stranger.post(`/api-keys/${before.id}/revoke`)).status).toBe(404)
    expect((await stranger.get('/api-keys')).text).not.toContain('Ours alone')
    expect(await keyNamed(app, 'Ours alone')).toEqual(before)
  })

  /** Creates keys named `No 0.`, `No 1.` and so on. `to` is the number after the last one. */
  const newKeys = ({ accountId, userId }: TestAccount, from: number, to: number) =>
    transaction(app.db, async (trx) => {
      const scope = writeScope(trx, accountId)
      for (let n = from; n < to; n++) {
        const key = { userId, name: `No ${n}.`, accessLevel: 'read_only' } as const
        await issueApiKey(scope, key, new Date())
      }
    })

  it('more than 100 keys of a user: refused, until one is revoked', async () => {
    const other = await app.newAccount()
    // With the key of `newAccount`, these are 100.
    await newKeys(other, 0, 99)
    const otherOwner = await visitor(app, other)
    const another = { name: 'Another', access_level: 'read_only' }
    expect((await otherOwner.submit('/api-keys', another)).text).toContain(
      'A user can have at most 100 API keys. Revoke one that you no longer need.',
    )
    await otherOwner.post(`/api-keys/${(await keyNamed(app, 'No 98.')).id}/revoke`)
    expect((await otherOwner.post('/api-keys', another)).status).toBe(200)
  })

  it('lists 50 keys a page, newest first', async () => {
    const other = await app.newAccount()
    await newKeys(other, 0, 60)
    const otherOwner = await visitor(app, other)
    const names = (text: string) => [...text.matchAll(/>(No \d+)\.</g)].map(([, name]) => name)
    const { text } = await otherOwner.get('/api-keys')
    expect(names(text)).toEqual(Array.from({ length: 50 }, (_, n) => `No ${59 - n}`))
    const second = await otherOwner.get(pathOfLink(text, 'Next') ?? '')
    expect(names(second.text)).toEqual(Array.from({ length: 10 }, (_, n) => `No ${9 - n}`))
  })

  it('without keys: explains their use', async () => {
    const other = await app.newAccount()
    await app.db.write('api_keys').where({ account_id: other.accountId }).delete()
    const { text } = await (await visitor(app, other)).get('/api-keys')
    expect(text).toContain('No API keys yet')
    expect(text).toContain('Create API key')
  })
})

describe('API keys in a browser', () => {
  const site = newSite()
  const { app } = site

  it('signs up, creates a key, and the key works', async () => {
    await using visited = await site.visit('/sign-in')
    const { page } = visited
    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByLabel('Account name').fill('Northwind')
    await page.getByLabel('Your name').fill('Mara Keller')
    await page.getByLabel('Email').fill('mara@northwind.example')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByText('Welcome to Muster.').waitFor()
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('link', { name: 'Create API key' }).click()
    await page.getByLabel('Name').fill('Nightly import')
    await page.getByLabel('Full Access').check()
    await page.getByRole('button', { name: 'Create API key' }).click()
    const token = (await page.getByRole('group', { name: 'key' }).innerText()).trim()
    await assertReadable(page, 'the new key')
    const response = await app
      .as({ key: token })
      .post('/participants', { full_name: 'Ada Lovelace' })
    expect(response.status).toBe(201)
    await page.getByRole('link', { name: 'Done' }).click()
    await page.getByRole('cell', { name: 'Nightly import' }).waitFor()
    expect(await page.content()).not.toContain(token)
    expect(visited.troubles).toEqual([])
  })

  it.each([{ javaScriptEnabled: true }, { javaScriptEnabled: false }])(
    'revokes a key after a confirmation, with JavaScript: $javaScriptEnabled',
    async ({ javaScriptEnabled }) => {
      const account = await app.newAccount()
      expect((await app.as(account).get('/tasks')).status).toBe(200)
      await using visited = await site.visit('/api-keys', {
        person: account,
        javaScriptEnabled,
      })
      const { page } = visited
      await page.getByRole('button', { name: 'Revoke' }).click()
      await page
        .getByRole('dialog', { name: 'Revoke “Test key”?' })
        .getByRole('button', { name: 'Revoke key' })
        .click()
      await page.getByText('Key “Test key” revoked.').waitFor()
      expect((await app.as(account).get('/tasks')).status).toBe(401)
      await page.getByRole('link', { name: 'Revoked' }).click()
      await page.getByRole('cell', { name: 'Test key' }).waitFor()
      expect(visited.troubles).toEqual([])
    },
  )

  // The pages are the same on both databases.
  it.runIf(inject('database') === 'sqlite')(
    'every page: readable on wide light and on narrow dark screens',
    async () => {
      const account = await app.newAccount()
      const admin = await newConsoleUser(app, account.accountId)
      const [key] = await app.db
        .read('api_keys')
        .where({ account_id: account.accountId })
        .pluck('id')
      for (const screen of SCREENS) {
        await using ownerVisit = await site.visit('/api-keys', { ...screen, person: account })
        for (const path of [
          '/api-keys',
          '/api-keys?state=revoked',
          '/api-keys/new',
          `/api-keys/${key}`,
        ]) {
          await ownerVisit.page.goto(`${app.url}/console${path}`)
          await assertReadable(ownerVisit.page, path)
        }
        await ownerVisit.page.goto(`${app.url}/console/api-keys`)
        await ownerVisit.page.getByRole('button', { name: 'Revoke' }).click()
        await assertReadable(ownerVisit.page, 'the dialog that confirms revoking')
        await using adminVisit = await site.visit('/api-keys', { ...screen, person: admin })
        await assertReadable(adminVisit.page, 'the list without the grant')
        expect([...ownerVisit.troubles, ...adminVisit.troubles]).toEqual([])
      }
    },
  )
})
