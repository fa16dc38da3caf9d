import { describe, expect, it } from 'vitest'
import { hashApiKey, issueApiKey, isWellFormed, newApiKey } from '../../auth/api-key.ts'
import { authenticator } from '../../auth/authenticator.ts'
import { createFirstAccount } from '../../auth/first-account.ts'
import { verifyPassword } from '../../auth/password.ts'
import {
  findApiKey,
  listApiKeys,
  revokeApiKey,
  updateApiKey,
  updateLastUsed,
} from '../../records/api-keys.ts'
import { migrate, withSetupLock } from '../../records/database/migrate.ts'
import { type Db, openDatabase } from '../../records/database/open.ts'
import { accountScope, type WriteScope, writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { findCredentials } from '../../records/passwords.ts'
import { insertUser, updateAccess, updateUserStatus } from '../../records/users.ts'
import { newMuster } from '../cli/muster.ts'

const NOW = new Date('2026-11-21T09:00:00.000Z')

interface Installation {
  db: Db
  accountId: string
  userId: string
  token: string
  password: string
  [Symbol.asyncDispose](): Promise<void>
}

async function newInstallation(): Promise<Installation> {
  const muster = await newMuster()
  const where = { dataDir: muster.dataDir }
  const db = openDatabase(where)
  const first = await withSetupLock(where, async () => {
    await migrate(db)
    return createFirstAccount(db, NOW)
  })
  if (!first) throw new Error('There was an account already')
  return {
    db,
    ...first,
    async [Symbol.asyncDispose]() {
      await db.close()
      await muster[Symbol.asyncDispose]()
    },
  }
}

const scopeOf = ({ db, accountId }: Installation) =>
  accountScope({ dialect: db.dialect, sql: db.write }, accountId)

const write = <T>({ db, accountId }: Installation, work: (scope: WriteScope) => Promise<T>) =>
  transaction(db, (trx) => work(writeScope(trx, accountId)))

/** An admin, and a key of theirs. */
async function newAdmin(made: Installation) {
  const scope = scopeOf(made)
  const admin = { email: 'bob@example.com', fullName: 'Bob', passwordHash: 'none' }
  const userId = await write(made, (own) => insertUser(own, { ...admin, role: 'admin' }, NOW))
  return {
    scope,
    userId,
    ...(await write(made, (own) =>
      issueApiKey(own, { userId, name: 'Key', accessLevel: 'full_access' }, NOW),
    )),
  }
}

describe('newApiKey', () => {
  it('has the documented format, and a checksum that detects each changed character', () => {
    const { token, tokenHash, tokenPrefix } = newApiKey()
    expect(token).toMatch(/^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/)
    expect(tokenPrefix).toBe(token.slice(0, 8))
    expect(tokenHash).toBe(hashApiKey(token))
    expect(isWellFormed(token)).toBe(true)
    for (let at = 0; at < token.length; at++) {
      const slip = token[at] === 'x' ? 'y' : 'x'
      expect(isWellFormed(token.slice(0, at) + slip + token.slice(at + 1)), `slip at ${at}`).toBe(
        false,
      )
    }
  })

  it('uses every digit at every place except the first, which has fewer', () => {
    const places = Array.from({ length: 43 }, () => new Set<string>())
    for (let n = 0; n < 2_000; n++) {
      const { token } = newApiKey()
      for (const [at, digits] of places.entries()) digits.add(token.charAt(4 + at))
    }
    for (const digits of places.slice(1)) expect(digits.size).toBe(62)
  })
})

describe('hashApiKey', () => {
  it('is SHA-256 (FIPS 180-2, B.1)', () => {
    expect(hashApiKey('abc')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
  })
})

describe('createFirstAccount', () => {
  it('creates an owner who can sign in and a working key, and only once', async () => {
    await using made = await newInstallation()
    const { db, accountId, userId, token } = made
    expect(await authenticator(db.read)(token)).toEqual({
      principal: {
        keyId: expect.any(String),
        userId,
        accountId,
        accessLevel: 'full_access',
        finance: 'write',
      },
    })
    const found = await findCredentials(db.read, 'owner@muster.local')
    expect(await verifyPassword(found?.passwordHash ?? null, made.password)).toBe(true)
    expect(await createFirstAccount(db, NOW)).toBeUndefined()
    expect(await db.read('audit_log').orderBy('id').pluck('action')).toEqual([
      'account.created',
      'api_key.created',
    ])
  })
})

describe('authenticate', () => {
  it('a malformed or unknown token: undefined', async () => {
    await using made = await newInstallation()
    for (const token of ['', 'x', made.token.slice(0, -1), `${made.token} `, newApiKey().token])
      expect(await authenticator(made.db.read)(token), token).toBeUndefined()
  })

  it('a revocation, a deactivation and a changed permission: apply to the next call', async () => {
    await using made = await newInstallation()
    const { scope, userId, id, token } = await newAdmin(made)
    const seen = () => authenticator(made.db.read)(token)
    expect(await seen()).toMatchObject({ principal: { keyId: id, finance: 'none' } })

    await updateAccess(scope, userId, { permissions: { finance: 'read' } }, NOW)
    await updateApiKey(scope, id, { accessLevel: 'read_only' }, NOW)
    expect(await seen()).toMatchObject({
      principal: { accessLevel: 'read_only', finance: 'read' },
    })

    await updateUserStatus(scope, userId, 'deactivated', NOW)
    expect(await seen()).toMatchObject({ rejected: { keyId: id } })
    await expect(
      write(made, (own) =>
        issueApiKey(own, { userId, name: 'Key', accessLevel: 'full_access' }, NOW),
      ),
    ).rejects.toThrow('active user')
    await updateUserStatus(scope, userId, 'active', NOW)
    expect(await seen()).toHaveProperty('principal')

    expect(await revokeApiKey(scope, id, NOW)).toMatchObject({ id, revokedAt: null })
    expect(await seen()).toMatchObject({ rejected: { keyId: id } })
  })

  it('uses an index for each query', async () => {
    await using made = await newInstallation()
    const plan: { detail: string }[] = await made.db.read.raw(
      'explain query plan select 1 from api_keys join users on users.id = api_keys.user_id where api_keys.token_hash = ?',
      [''],
    )
    expect(plan.map(({ detail }) => detail).join('\n')).not.toContain('SCAN')
  })
})

describe('revokeApiKey', () => {
  it('a second revocation keeps the first time; a key of another account: undefined', async () => {
    await using made = await newInstallation()
    const { scope, userId, id } = await newAdmin(made)
    expect(await revokeApiKey(scope, id, NOW)).toMatchObject({ revokedAt: null })
    expect(await revokeApiKey(scope, id, new Date(NOW.getTime() + 1))).toMatchObject({
      revokedAt: NOW.getTime(),
    })
    expect(await listApiKeys(scope, userId)).toMatchObject([{ id, revokedAt: NOW.getTime() }])
    const other = accountScope({ dialect: 'sqlite', sql: made.db.write }, made.userId)
    expect(await revokeApiKey(other, id, NOW)).toBeUndefined()
  })
})

describe('updateLastUsed', () => {
  it('stores the latest use of each key, and ignores unknown keys', async () => {
    await using made = await newInstallation()
    const { id, userId } = await newAdmin(made)
    const { id: second } = await write(made, (own) =>
      issueApiKey(own, { userId, name: 'Second', accessLevel: 'read_only' }, NOW),
    )
    await updateLastUsed(made.db.write, [])
    await updateLastUsed(made.db.write, [
      { id, at: 2_000 },
      { id: second, at: 5_000 },
      { id, at: 3_000 },
      { id, at: 1_000 },
      { id: made.userId, at: 9_000 },
    ])
    expect((await findApiKey(made.db.read, id))?.lastUsedAt).toBe(3_000)
    expect((await findApiKey(made.db.read, second))?.lastUsedAt).toBe(5_000)
  })
})

describe('the Owner', () => {
  it('cannot be deactivated, and keeps both grants', async () => {
    await using made = await newInstallation()
    const scope = scopeOf(made)
    await expect(updateUserStatus(scope, made.userId, 'deactivated', NOW)).rejects.toThrow(
      'The Account Owner cannot be deactivated',
    )
    await expect(updateAccess(scope, made.userId, { grants: [] }, NOW)).rejects.toThrow(
      'has every permission',
    )
    expect((await findCredentials(made.db.read, 'owner@muster.local'))?.user.grants).toEqual([
      'api_keys',
      'webhooks',
    ])
  })
})
