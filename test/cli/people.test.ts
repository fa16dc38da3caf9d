import { describe, expect, it } from 'vitest'
import { authenticator } from '../../auth/authenticator.ts'
import { verifyPassword } from '../../auth/password.ts'
import { openDatabase } from '../../records/database/open.ts'
import { findCredentials } from '../../records/passwords.ts'
import { until } from '../helpers.ts'
import { type Muster, newAccount, newMuster, PASSWORD, type Started } from './muster.ts'

const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/)
const ISO = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('account create', () => {
  it('creates an account and its Owner, who has all permissions and grants', async () => {
    await using muster = await newMuster()
    const created = await newAccount(muster)
    expect(created).toEqual({ account_id: UUID, user_id: UUID })

    const db = openDatabase({ dataDir: muster.dataDir })
    const found = await findCredentials(db.read, ' ANN@example.com')
    await db.close()
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
    const { status, stdout } = await muster.run([
      'account',
      'create',
      '--name',
      'Acme',
      '--email',
      'ann@example.com',
      '--password',
      PASSWORD,
    ])
    expect(status).toBe(0)
    expect(stdout).toContain("muster key create --email 'ann@example.com'")
    expect(stdout).not.toContain(PASSWORD)
  })

  it('reads the password from standard input', async () => {
    await using muster = await newMuster()
    const args = [
      'account',
      'create',
      '--name',
      'Acme',
      '--email',
      'ann@example.com',
      '--password',
      '-',
    ]
    await muster.json(args, { input: `${PASSWORD}\n` })
    const db = openDatabase({ dataDir: muster.dataDir })
    const found = await findCredentials(db.read, 'ann@example.com')
    await db.close()
    expect(await verifyPassword(found?.passwordHash ?? null, PASSWORD)).toBe(true)
  })
})

describe('account create and user create: refusals', () => {
  it('create nothing, and print the reason on standard error with status 1', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    const create = (email: string, password: string, name = 'Other') =>
      muster.run([
        'account',
        'create',
        '--name',
        name,
        '--email',
        email,
        '--password',
        password,
        '--json',
      ])
    const createUser = (...more: string[]) =>
      muster.run(['user', 'create', '--password', PASSWORD, '--json', ...more])

    for (const [ended, message] of [
      [
        create('ANN@Example.com', PASSWORD),
        'A user with the email ANN@Example.com already exists.\n',
      ],
      [create('bob@example.com', 'short'), 'The password must be at least 8 characters long\n'],
      [create('nobody', PASSWORD), '"nobody" is not an email. Use the form name@example.com.\n'],
      [create('bob@example.com', PASSWORD, ' '), 'The account name must not be empty.\n'],
      [
        createUser('--account', 'x', '--email', 'bob@example.com', '--role', 'admin'),
        'There is no account x\n',
      ],
      [
        createUser('--account', account, '--email', 'ann@example.com', '--role', 'admin'),
        'A user with the email ann@example.com already exists.\n',
      ],
      [
        createUser(
          '--account',
          account,
          '--email',
          'bob@example.com',
          '--role',
          'member',
          '--grant',
          'webhooks',
        ),
        'A Member cannot manage API keys or webhooks. Only an Admin can have grants.\n',
      ],
    ] as const)
      expect(await ended).toEqual({ status: 1, stdout: '', stderr: message })

    const db = openDatabase({ dataDir: muster.dataDir })
    expect(await db.read('accounts').count({ accounts: '*' })).toEqual([{ accounts: 1 }])
    await db.close()
  })
})

describe('user create', () => {
  it('creates an admin with grants and a Finance permission', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    const args = [
      'user',
      'create',
      '--account',
      account,
      '--email',
      'bob@example.com',
      '--role',
      'admin',
      '--password',
      PASSWORD,
    ]
    const created = await muster.json([
      ...args,
      '--grant',
      'api_keys,webhooks',
      '--finance',
      'read',
      '--full-name',
      'Bob Bo',
    ])
    expect(created).toEqual({ user_id: UUID })

    const db = openDatabase({ dataDir: muster.dataDir })
    const found = await findCredentials(db.read, 'bob@example.com')
    await db.close()
    expect(found?.user).toMatchObject({
      fullName: 'Bob Bo',
      role: 'admin',
      grants: ['api_keys', 'webhooks'],
      permissions: { participants: 'write', finance: 'read' },
    })
  })

  it('creates a member without grants and Finance permission', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    await muster.json([
      'user',
      'create',
      '--account',
      account,
      '--email',
      'mo@example.com',
      '--role',
      'member',
      '--password',
      PASSWORD,
    ])
    const db = openDatabase({ dataDir: muster.dataDir })
    const found = await findCredentials(db.read, 'mo@example.com')
    await db.close()
    expect(found?.user).toMatchObject({
      role: 'member',
      grants: [],
      permissions: { participants: 'read', finance: 'none' },
    })
  })
})

describe('key create, list and revoke', () => {
  it('creates a key that works until it is revoked, and lists it without its token', async () => {
    await using muster = await newMuster()
    const { user_id: userId } = await newAccount(muster)
    const { id, token } = await muster.json([
      'key',
      'create',
      '--email',
      'ANN@example.com',
      '--name',
      'Sync',
      '--access',
      'read_only',
    ])
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

  it('refuse unknown users and keys', async () => {
    await using muster = await newMuster()
    for (const [args, message] of [
      [
        ['key', 'create', '--email', 'x@example.com', '--name', 'A', '--access', 'read_only'],
        'There is no user with the email x@example.com\n',
      ],
      [
        ['key', 'list', '--email', 'x@example.com'],
        'There is no user with the email x@example.com\n',
      ],
      [['key', 'revoke', 'nonsense'], 'There is no API key nonsense\n'],
      [
        ['key', 'revoke', '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'],
        'There is no API key 0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11\n',
      ],
    ] as const)
      expect(await muster.run([...args])).toEqual({ status: 1, stdout: '', stderr: message })
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

    const { started, url } = await serve(muster)
    const post = (path: string, fields: Record<string, string>) =>
      fetch(url + path, { method: 'POST', redirect: 'manual', body: new URLSearchParams(fields) })
    const link = new URL(created.url).pathname
    expect(
      (await post('/console/sign-in', { email: 'ann@example.com', password: PASSWORD })).status,
    ).toBe(303)
    expect((await post(link, { password: 'a wholly new password' })).status).toBe(303)
    expect((await post(link, { password: 'and another one' })).status).toBe(404)
    expect(
      (await post('/console/sign-in', { email: 'ann@example.com', password: PASSWORD })).status,
    ).toBe(401)
    expect(
      (
        await post('/console/sign-in', {
          email: 'ann@example.com',
          password: 'a wholly new password',
        })
      ).status,
    ).toBe(303)
    started.process.kill('SIGTERM')
    await started.ended
  })

  it('refuses an unknown email', async () => {
    await using muster = await newMuster()
    await newAccount(muster)
    const { status, stdout, stderr } = await muster.run([
      'user',
      'link',
      '--email',
      'bob@example.com',
    ])
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toContain('There is no user with the email bob@example.com')
  })
})

async function serve(muster: Muster): Promise<{ started: Started; url: string }> {
  const started = muster.start(['serve', '--json'], {
    environment: { PORT: '0', LOG_LEVEL: 'warn' },
  })
  const line = await until(
    'the service is ready',
    () => started.output.stdout.includes('\n') && started.output.stdout,
    60_000,
  )
  return { started, url: JSON.parse(line).url }
}
