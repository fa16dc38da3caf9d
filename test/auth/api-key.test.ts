import { randomUUID } from 'node:crypto'
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
import { accountScope, writeScope } from '../../records/database/scope.ts'
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
  if (!first) throw new Error('The new database already has an account')
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

const issueKey = ({ db, accountId }: Installation, userId: string) =>
  transaction(db, (trx) =>
    issueApiKey(
      writeScope(trx, accountId),
      { userId, name: 'Key', accessLevel: 'full_access' },
      NOW,
    ),
  )

/** An Admin with a Full Access key. */
async function newAdmin(installation: Installation) {
  const { db, accountId } = installation
  const admin = {
    email: 'bob@example.com',
    fullName: 'Bob',
    passwordHash: 'none',
    role: 'admin',
  } as const
  const userId = await transaction(db, (trx) => insertUser(writeScope(trx, accountId), admin, NOW))
  const { id, token } = await issueKey(installation, userId)
  return { scope: scopeOf(installation), userId, id, token }
}

describe('newApiKey', () => {
  it('has the documented format, prefix and hash', () => {
    const { token, tokenHash, tokenPrefix } = newApiKey()
    expect(token).toMatch(/^mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/)
    expect(tokenPrefix).toBe(token.slice(0, 8))
    expect(tokenHash).toBe(hashApiKey(token))
  })

  it('ends with a checksum that detects each changed character', () => {
    const { token } = newApiKey()
    expect(isWellFormed(token)).toBe(true)
    for (const [index, character] of [...token].entries()) {
      const typo = character === 'x' ? 'y' : 'x'
      const mistyped = token.slice(0, index) + typo + token.slice(index + 1)
      expect(isWellFormed(mistyped), `character ${index}`).toBe(false)
    }
  })

  it('uses each of the 62 digits at every place after the first', () => {
    const digitsByPlace = Array.from({ length: 43 }, () => new Set<string>())
    // So many that a missing digit is no accident.
    for (let count = 0; count < 2_000; count++) {
      const { token } = newApiKey()
      for (const [place, digits] of digitsByPlace.entries())
        digits.add(token.charAt('mst_'.length + place))
    }
    // 256 bits are fewer than 43 digits of base 62, so the first digit has fewer values.
    for (const digits of digitsByPlace.slice(1)) expect(digits.size).toBe(62)
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
  it('creates and logs an account and a working key, and its Owner can sign in', async () => {
    await using installation = await newInstallation()
    const { db, accountId, userId, token, password } = installation
    expect(await authenticator(db.read)(token)).toEqual({
      principal: {
        keyId: expect.any(String),
        userId,
        accountId,
        accessLevel: 'full_access',
        finance: 'write',
        requestsPerMinute: null,
        // SQLite has no booleans.
        managesWebhooks: 1,
      },
    })
    const found = await findCredentials(db.read, 'owner@muster.local')
    expect(await verifyPassword(found?.passwordHash ?? null, password)).toBe(true)
    expect(await db.read('audit_log').orderBy('id').pluck('action')).toEqual([
      'account.created',
      'api_key.created',
    ])
  })

  it('creates nothing if there is an account', async () => {
    await using installation = await newInstallation()
    const { db } = installation
    expect(await createFirstAccount(db, NOW)).toBeUndefined()
    expect(await db.read('accounts')).toHaveLength(1)
  })
})

describe('authenticate', () => {
  it('a malformed or unknown token: undefined', async () => {
    await using installation = await newInstallation()
    for (const token of [
      '',
      'x',
      installation.token.slice(0, -1),
      `${installation.token} `,
      newApiKey().token,
    ])
      expect(await authenticator(installation.db.read)(token), token).toBeUndefined()
  })

  it('a changed permission or access level, a deactivation and a revocation apply to the next call', async () => {
    await using installation = await newInstallation()
    const { scope, userId, id, token } = await newAdmin(installation)
    const authenticate = () => authenticator(installation.db.read)(token)
    expect(await authenticate()).toMatchObject({ principal: { keyId: id, finance: 'none' } })

    await updateAccess(scope, userId, { permissions: { finance: 'read' } }, NOW)
    await updateApiKey(scope, id, { accessLevel: 'read_only' }, NOW)
    expect(await authenticate()).toMatchObject({
      principal: { accessLevel: 'read_only', finance: 'read' },
    })

    await updateUserStatus(scope, userId, 'deactivated', NOW)
    expect(await authenticate()).toMatchObject({ rejected: { keyId: id } })
    await updateUserStatus(scope, userId, 'active', NOW)
    expect(await authenticate()).toHaveProperty('principal')

    await revokeApiKey(scope, id, NOW)
    expect(await authenticate()).toMatchObject({ rejected: { keyId: id } })
  })

  it('sends one query, which uses an index for each table', async () => {
    await using installation = await newInstallation()
    const { read } = installation.db
    const queries: { sql: string; bindings: string[] }[] = []
    const record = (query: { sql: string; bindings: string[] }) => void queries.push(query)
    read.on('query', record)
    await authenticator(read)(installation.token)
    read.off('query', record)
    expect(queries).toHaveLength(1)
    const [{ sql, bindings }] = queries as [(typeof queries)[number]]
    const plan: { detail: string }[] = await read.raw(`explain query plan ${sql}`, bindings)
    const steps = plan.map(({ detail }) => detail)
    expect(steps.filter((step) => step.includes('USING INDEX')).length).toBeGreaterThan(1)
    expect(steps.join('\n')).not.toContain('SCAN')
  })
})

describe('issueApiKey', () => {
  it('a deactivated user: refused', async () => {
    await using installation = await newInstallation()
    const { scope, userId } = await newAdmin(installation)
    await updateUserStatus(scope, userId, 'deactivated', NOW)
    await expect(issueKey(installation, userId)).rejects.toThrow('active user')
  })
})

describe('revokeApiKey', () => {
  it('a second revocation keeps the time of the first', async () => {
    await using installation = await newInstallation()
    const { scope, userId, id } = await newAdmin(installation)
    expect(await revokeApiKey(scope, id, NOW)).toMatchObject({ id, revokedAt: null })
    expect(await revokeApiKey(scope, id, new Date(NOW.getTime() + 1))).toMatchObject({
      revokedAt: NOW.getTime(),
    })
    expect(await listApiKeys(scope, userId)).toMatchObject([{ id, revokedAt: NOW.getTime() }])
  })

  it('a key of another account: undefined, and the key stays valid', async () => {
    await using installation = await newInstallation()
    const { db } = installation
    const { scope, userId, id } = await newAdmin(installation)
    const otherScope = accountScope({ dialect: db.dialect, sql: db.write }, randomUUID())
    expect(await revokeApiKey(otherScope, id, NOW)).toBeUndefined()
    expect(await listApiKeys(scope, userId)).toMatchObject([{ id, revokedAt: null }])
  })
})

describe('updateLastUsed', () => {
  it('stores the latest use of each key, and ignores unknown keys', async () => {
    await using installation = await newInstallation()
    const { id, userId } = await newAdmin(installation)
    const { id: second } = await issueKey(installation, userId)
    await updateLastUsed(installation.db, [])
    await updateLastUsed(installation.db, [
      { id, at: 2_000 },
      { id: second, at: 5_000 },
      { id, at: 3_000 },
      { id, at: 1_000 },
      { id: installation.userId, at: 9_000 },
    ])
    expect((await findApiKey(installation.db.read, id))?.lastUsedAt).toBe(3_000)
    expect((await findApiKey(installation.db.read, second))?.lastUsedAt).toBe(5_000)
  })
})

describe('the Account Owner', () => {
  it('cannot be deactivated, and keeps both grants', async () => {
    await using installation = await newInstallation()
    const scope = scopeOf(installation)
    await expect(updateUserStatus(scope, installation.userId, 'deactivated', NOW)).rejects.toThrow(
      'The Account Owner cannot be deactivated',
    )
    await expect(updateAccess(scope, installation.userId, { grants: [] }, NOW)).rejects.toThrow(
      'has every permission',
    )
    expect(
      (await findCredentials(installation.db.read, 'owner@muster.local'))?.user.grants,
    ).toEqual(['api_keys', 'webhooks'])
  })
})
