import { argon2Sync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { hashPassword, newPassword, verifyPassword } from '../../auth/password.ts'

describe('hashPassword', () => {
  it('stores the cost, and a different salt each time', async () => {
    const [one, other] = await Promise.all([
      hashPassword('correct horse'),
      hashPassword('correct horse'),
    ])
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    expect(other).not.toBe(one)
  })

  it('refuses a common password, also in full-width letters', async () => {
    for (const password of ['Password1', 'ｐａｓｓｗｏｒｄ1'])
      await expect(hashPassword(password)).rejects.toThrow('lists of common passwords')
  })

  it('accepts 8 to 200 characters, whatever their length in bytes', async () => {
    for (const password of ['1234567', '🔑'.repeat(7), 'x'.repeat(201)])
      await expect(hashPassword(password)).rejects.toThrow('characters long')
    for (const password of ['1f9c4b7a', '🔑🗝'.repeat(100)])
      await expect(hashPassword(password)).resolves.toContain('$argon2id$')
  })
})

describe('verifyPassword', () => {
  it('accepts the password in both Unicode normal forms, and no other', async () => {
    const hash = await hashPassword('caf\u00e9 au lait')
    expect(await verifyPassword(hash, 'caf\u00e9 au lait')).toBe(true)
    expect(await verifyPassword(hash, 'cafe\u0301 au lait')).toBe(true)
    expect(await verifyPassword(hash, 'cafe au lait')).toBe(false)
    expect(await verifyPassword(hash, '')).toBe(false)
    expect(await verifyPassword(hash, 'x'.repeat(1_000_000))).toBe(false)
  })

  it('verifies with the cost in the hash, so hashes of a lower cost stay valid', async () => {
    const nonce = Buffer.from('saltsaltsaltsalt')
    const tag = argon2Sync('argon2id', {
      message: 'older password',
      nonce,
      memory: 64,
      passes: 1,
      parallelism: 2,
      tagLength: 32,
    })
    const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString('base64').replaceAll('=', ''))
    expect(
      await verifyPassword(`$argon2id$v=19$m=64,t=1,p=2$${salt}$${hash}`, 'older password'),
    ).toBe(true)
  })

  it('a missing or unreadable hash: false', async () => {
    for (const hash of [null, '', 'none', '$argon2id$v=19$m=19456,t=2,p=1$$'])
      expect(await verifyPassword(hash, 'none')).toBe(false)
  })
})

describe('newPassword', () => {
  it('has four groups of unambiguous characters, and differs each time', () => {
    const passwords = Array.from({ length: 100 }, newPassword)
    for (const password of passwords)
      expect(password).toMatch(/^([a-km-np-z2-9]{5}-){3}[a-km-np-z2-9]{5}$/)
    expect(new Set(passwords).size).toBe(passwords.length)
  })
})
