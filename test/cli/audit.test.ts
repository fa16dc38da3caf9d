import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { newAccount, newMuster, PASSWORD } from './muster.ts'

describe('audit log of the command line', () => {
  it('records changes of accounts, users and keys, without secrets', async () => {
    await using muster = await newMuster()
    const { account_id: account, user_id: owner } = await newAccount(muster)
    const user = await muster.json([
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
    ])
    const key = await muster.json([
      'key',
      'create',
      '--email',
      'bob@example.com',
      '--name',
      'CI',
      '--access',
      'read_only',
    ])
    for (let n = 0; n < 2; n++) await muster.json(['key', 'revoke', key.id])

    const db = openDatabase({ dataDir: muster.dataDir })
    const entries = await db.read('audit_log').orderBy('id')
    await db.close()
    expect(entries).toMatchObject(
      [
        { action: 'account.created', target_id: account },
        { action: 'user.created', target_id: user.user_id, target_name: 'bob' },
        { action: 'api_key.created', target_id: key.id, target_name: 'CI' },
        { action: 'api_key.revoked', target_id: key.id, target_name: 'CI' },
      ].map((entry) => ({
        ...entry,
        account_id: account,
        user_id: null,
        user_name: 'The command line',
        ip: null,
      })),
    )
    expect(entries).toHaveLength(4)
    expect(JSON.stringify(entries)).not.toContain(key.token)
    expect(JSON.stringify(entries)).not.toContain(PASSWORD)
    expect(owner).not.toBe(user.user_id)
  })

  it('records changes of webhooks, without secrets', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    const { id } = await muster.json([
      'webhook',
      'create',
      '--account',
      account_id,
      '--url',
      'https://example.com/hooks',
      '--events',
      '*',
    ])
    await muster.json(['webhook', 'disable', id])
    await muster.json(['webhook', 'enable', id])
    await muster.json(['webhook', 'test', id])
    await muster.json(['webhook', 'rotate', id])
    await muster.json(['webhook', 'rotate', id, '--activate'])

    const db = openDatabase({ dataDir: muster.dataDir })
    const rows = await db.read('audit_log').orderBy('id')
    await db.close()
    expect(rows.map(({ action }) => action)).toEqual([
      'account.created',
      'webhook.created',
      'webhook.disabled',
      'webhook.enabled',
      'webhook.test_sent',
      'webhook.secret_prepared',
      'webhook.secret_activated',
    ])
    expect(
      rows.every(
        ({ user_id, user_name, ip }) =>
          user_id === null && user_name === 'The command line' && ip === null,
      ),
    ).toBe(true)
    expect(JSON.stringify(rows)).not.toMatch(/whsec_|mst_\w{20}/)
  })
})
