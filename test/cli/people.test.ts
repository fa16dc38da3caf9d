import { describe, expect, it } from 'vitest'
import { authenticator } from '../../auth/authenticator.ts'
import { verifyPassword } from '../../auth/password.ts'
import { openDatabase } from '../../records/database/open.ts'
import { findCredentials } from '../../records/passwords.ts'
import { accountOptions, type Muster, newAccount, newMuster, PASSWORD } from './muster.ts'
import { startServing } from './serving.ts'

const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/)
const ISO = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const BOB = ['--email', 'bob@example.com']

/** The stored user and the hash of the password. */
async function readCredentials({ dataDir }: Muster, email: string) {
  const db = openDatabase({ dataDir })
  const credentials = await findCredentials(db.read, email)
  await db.close()
  return credentials
}

describe('account create', () => {
  it('creates an account and its Owner, who has all permissions and grants', async () => {
    await using muster = await newMuster()
    const created = await newAccount(muster)
    expect(created).toEqual({ account_id: UUID, user_id: UUID })

    const found = await readCredentials(muster, ' ANN@example.com')
    expect(found?.user).toMatchObject({
      id: created.user_id,
      accountId: created.account_id,
      email: 'ann@example.com',
      fullName: 'ann',
      role: 'owner',
      status: 'active',
      grants: ['api_keys', 'webhooks'],
      permissions: {
        participants: 'write',
        tasks: 'write',
        jobs: 'write',
        exports: 'write',
        finance: 'write',
      },
    })
    expect(await verifyPassword(found?.passwordHash ?? null, PASSWORD)).toBe(true)
  })

  it('without --json: prints the next command', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['account', 'create', ...accountOptions()])
    expect(status).toBe(0)
    expect(stdout).toContain("muster key create --email 'ann@example.com'")
    expect(stdout).not.toContain(PASSWORD)
  })

  it('reads the password from standard input', async () => {
    await using muster = await newMuster()
    const options = ['--name', 'Acme', '--email', 'ann@example.com', '--password', '-']
    await muster.json(['account', 'create', ...options], { input: `${PASSWORD}\n` })
    const found = await readCredentials(muster, 'ann@example.com')
    expect(await verifyPassword(found?.passwordHash ?? null, PASSWORD)).toBe(true)
  })
})

describe('account create and user create', () => {
  it.each([
    {
      reason: 'an email in use',
      args: ['account', 'create', ...accountOptions('Other', 'ANN@Example.com')],
      message: 'A user with the email ANN@Example.com already exists.\n',
    },
    {
      reason: 'a short password',
      args: ['account', 'create', '--name', 'Other', ...BOB, '--password', 'short'],
      message: 'The password must be at least 8 characters long\n',
    },
    {
      reason: 'an invalid email',
      args: ['account', 'create', ...accountOptions('Other', 'nobody')],
      message: '"nobody" is not an email. Use the form name@example.com.\n',
    },
    {
      reason: 'an empty name',
      args: ['account', 'create', ...accountOptions(' ', 'bob@example.com')],
      message: 'The account name must not be empty.\n',
    },
    {
      reason: 'several wrong options',
      args: [
        ...['account', 'create', '--name', ' ', '--email', 'nobody'],
        ...['--full-name', ' ', '--password', 'short'],
      ],
      message:
        'The account name must not be empty.\n' +
        '"nobody" is not an email. Use the form name@example.com.\n' +
        'The full name must not be empty.\n' +
        'The password must be at least 8 characters long\n',
    },
    {
      reason: 'an unknown account',
      args: ['user', 'create', '--account', 'x', ...BOB, '--role', 'admin', '--password', PASSWORD],
      message: 'There is no account x\n',
    },
    {
      reason: 'an email of a user of the account',
      args: [
        ...['user', 'create', '--account', 'Acme', '--email', 'ann@example.com'],
        ...['--role', 'admin', '--password', PASSWORD],
      ],
      message: 'A user with the email ann@example.com already exists.\n',
    },
    {
      reason: 'a Member with grants',
      args: [
        ...['user', 'create', '--account', 'Acme', ...BOB],
        ...['--role', 'member', '--grant', 'webhooks', '--password', PASSWORD],
      ],
      message: 'A Member cannot manage API keys or webhooks. Only an Admin can have grants.\n',
    },
  ])('refuse $reason, and create nothing', async ({ args, message }) => {
    await using muster = await newMuster()
    await newAccount(muster)
    expect(await muster.run([...args, '--json'])).toEqual({
      status: 1,
      stdout: '',
      stderr: message,
    })
    expect(await muster.json(['account', 'list'])).toHaveLength(1)
    expect(await muster.json(['user', 'list', '--account', 'Acme'])).toHaveLength(1)
  })
})

describe('user create', () => {
  it('creates an admin with grants and a Finance permission', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    const created = await muster.json([
      ...['user', 'create', '--account', 'Acme', ...BOB, '--full-name', 'Bob Bo'],
      ...['--role', 'admin', '--grant', 'api_keys,webhooks', '--finance', 'read'],
      ...['--password', PASSWORD],
    ])
    expect(created).toEqual({ user_id: UUID })
    expect((await readCredentials(muster, 'bob@example.com'))?.user).toMatchObject({
      fullName: 'Bob Bo',
      role: 'admin',
      grants: ['api_keys', 'webhooks'],
      permissions: { participants: 'write', finance: 'read' },
    })
  })

  it('creates a member without grants and Finance permission', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    await muster.json([
      ...['user', 'create', '--account', 'Acme', ...BOB],
      ...['--role', 'member', '--password', PASSWORD],
    ])
    expect((await readCredentials(muster, 'bob@example.com'))?.user).toMatchObject({
      role: 'member',
      grants: [],
      permissions: { participants: 'read', finance: 'none' },
    })
  })
})

describe('user quota', () => {
  it('shows, sets and resets the rate limit, and audits each change', async () => {
    await using muster = await newMuster()
    const { user_id } = await newAccount(muster)
    const quota = (...limit: string[]) =>
      muster.json([
        ...['user', 'quota', '--email', 'ann@example.com'],
        ...(limit.length > 0 ? ['--requests-per-minute', ...limit] : []),
      ])
    expect(await quota()).toEqual({ user_id, requests_per_minute: 60 })
    expect(await quota('600')).toEqual({ user_id, requests_per_minute: 600 })
    expect(await quota()).toEqual({ user_id, requests_per_minute: 600 })
    await muster.json(['account', 'quota', 'Acme', '--requests-per-minute', '120'])
    expect(await quota('default')).toEqual({ user_id, requests_per_minute: 120 })
    const db = openDatabase({ dataDir: muster.dataDir })
    const entries = await db.read('audit_log').where('action', 'user.quota_changed').orderBy('id')
    await db.close()
    expect(entries.map(({ details }) => JSON.parse(details).changes.requests_per_minute)).toEqual([
      { from: 60, to: 600 },
      { from: 600, to: 120 },
    ])
  })
})

describe('key create, list and revoke', () => {
  it('creates a key that works until it is revoked, and lists it without its token', async () => {
    await using muster = await newMuster()
    const { user_id: userId } = await newAccount(muster)
    const options = ['--email', 'ANN@example.com', '--name', 'Sync', '--access', 'read_only']
    const { id, token } = await muster.json(['key', 'create', ...options])
    expect({ id, token }).toEqual({
      id: UUID,
      token: expect.stringMatching(/^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/),
    })

    const db = openDatabase({ dataDir: muster.dataDir })
    expect(await authenticator(db.read)(token)).toMatchObject({
      principal: { keyId: id, userId, accessLevel: 'read_only', finance: 'write' },
    })

    const listed = {
      id,
      name: 'Sync',
      access_level: 'read_only',
      token_prefix: token.slice(0, 8),
      created_at: ISO,
      last_used_at: null,
      revoked_at: null,
    }
    expect(await muster.json(['key', 'list', '--email', 'ann@example.com'])).toEqual([listed])

    const revoked = await muster.json(['key', 'revoke', id])
    expect(revoked).toEqual({ id, revoked_at: ISO })
    // The same connection must not cache the key.
    expect(await authenticator(db.read)(token)).toMatchObject({ rejected: { keyId: id } })
    await db.close()

    expect(await muster.json(['key', 'revoke', id])).toEqual(revoked)
    expect(await muster.json(['key', 'list', '--email', 'ann@example.com'])).toEqual([
      { ...listed, revoked_at: revoked.revoked_at },
    ])
    const { stdout } = await muster.run(['key', 'list', '--email', 'ann@example.com'])
    expect(stdout).toContain(`revoked ${revoked.revoked_at}`)
    expect(stdout).not.toContain(token)
  })

  it.each([
    {
      args: ['key', 'create', '--email', 'x@example.com', '--name', 'A', '--access', 'read_only'],
      message: 'There is no user with the email x@example.com\n',
    },
    {
      args: ['key', 'list', '--email', 'x@example.com'],
      message: 'There is no user with the email x@example.com\n',
    },
    { args: ['key', 'revoke', 'nonsense'], message: 'There is no API key nonsense\n' },
    {
      args: ['key', 'revoke', '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'],
      message: 'There is no API key 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11\n',
    },
  ])('refuse an unknown user or key: $args', async ({ args, message }) => {
    await using muster = await newMuster()
    await muster.run(['migrate'])
    expect(await muster.run(args)).toEqual({ status: 1, stdout: '', stderr: message })
  })
})

describe('user link', () => {
  it('creates a link that sets a new password once', async () => {
    await using muster = await newMuster()
    const { user_id } = await newAccount(muster)
    const created = await muster.json(['user', 'link', '--email', 'ANN@example.com'])
    expect(created).toEqual({
      user_id,
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:3000\/console\/invitation\/[\w-]{43}$/),
      expires_at: ISO,
    })

    const { ready } = await startServing(muster)
    const post = async (path: string, fields: Record<string, string>): Promise<number> => {
      const body = new URLSearchParams(fields)
      return (await fetch(ready.url + path, { method: 'POST', redirect: 'manual', body })).status
    }
    const signIn = (password: string) =>
      post('/console/sign-in', { email: 'ann@example.com', password })
    const link = new URL(created.url).pathname
    expect(await signIn(PASSWORD)).toBe(303)
    expect(await post(link, { password: 'a wholly new password' })).toBe(303)
    expect(await post(link, { password: 'and another one' })).toBe(404)
    expect(await signIn(PASSWORD)).toBe(401)
    expect(await signIn('a wholly new password')).toBe(303)
  })

  it('refuses an unknown email', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    expect(await muster.run(['user', 'link', ...BOB])).toEqual({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('There is no user with the email bob@example.com'),
    })
  })
})
