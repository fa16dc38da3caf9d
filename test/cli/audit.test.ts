import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../records/database/open.ts'
import { type Muster, newAccount, newMuster, PASSWORD } from './muster.ts'

async function readAuditLog({ dataDir }: Muster) {
  const db = openDatabase({ dataDir })
  const entries = await db.read('audit_log').orderBy('id')
  await db.close()
  return entries
}

/** The actor of each entry. */
const COMMAND_LINE = { user_id: null, user_name: 'The command line', ip: null }

describe('audit log of the command line', () => {
  it('has each change of accounts, users and keys once, without secrets', async () => {
    await using muster = await newMuster()
    const { account_id: account } = await newAccount(muster)
    const bob = ['--email', 'bob@example.com']
    const user = ['--account', account, ...bob, '--role', 'admin', '--password', PASSWORD]
    const { user_id } = await muster.json(['user', 'create', ...user])
    const options = [...bob, '--name', 'CI', '--access', 'read_only']
    const key = await muster.json(['key', 'create', ...options])
    // The second revocation changes nothing, so it has no entry.
    for (let time = 0; time < 2; time++) await muster.json(['key', 'revoke', key.id])

    const entries = await readAuditLog(muster)
    expect(entries).toMatchObject(
      [
        { action: 'account.created', target_id: account },
        { action: 'user.created', target_id: user_id, target_name: 'bob' },
        { action: 'api_key.created', target_id: key.id, target_name: 'CI' },
        { action: 'api_key.revoked', target_id: key.id, target_name: 'CI' },
      ].map((entry) => ({ ...entry, ...COMMAND_LINE, account_id: account })),
    )
    expect(JSON.stringify(entries)).not.toContain(key.token)
    expect(JSON.stringify(entries)).not.toContain(PASSWORD)
  })

  it('has each change of webhooks, without secrets', async () => {
    await using muster = await newMuster()
    const { account_id } = await newAccount(muster)
    const options = ['--account', account_id, '--url', 'https://example.com/hooks', '--events', '*']
    const { id } = await muster.json(['webhook', 'create', ...options])
    // The second of two equal changes changes nothing, so it has no entry.
    for (const change of ['disable', 'disable', 'enable', 'enable'])
      await muster.json(['webhook', change, id])
    await muster.json(['webhook', 'test', id])
    await muster.json(['webhook', 'rotate', id])
    await muster.json(['webhook', 'rotate', id, '--activate'])

    const entries = await readAuditLog(muster)
    expect(entries).toMatchObject(
      [
        ...['account.created', 'webhook.created', 'webhook.disabled', 'webhook.enabled'],
        ...['webhook.test_sent', 'webhook.secret_prepared', 'webhook.secret_activated'],
      ].map((action) => ({ action, ...COMMAND_LINE })),
    )
    expect(JSON.stringify(entries)).not.toMatch(/whsec_|mst_\w{20}/)
  })
})
