/** The audit log. */
import { describe, expect, it } from 'vitest'
import { insertAuditEntry } from '../../records/audit-log.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { sharedApp } from '../helpers.ts'
import { pathOfLink } from './forms.ts'
import { visitor } from './visitors.ts'

const KEY_ID = '0199a4c2-6d1e-7c3a-9a53-5a1f0e9d2b11'

describe('audit log', () => {
  const app = sharedApp()

  /** Writes an entry for each name: the user has revoked the key of this name. Without `userId`,
   *  the operator has done so. */
  async function writeEntries(
    accountId: string,
    keyNames: string[],
    userId?: string,
  ): Promise<void> {
    const user = userId === undefined ? null : { id: userId, fullName: 'Mara Keller' }
    await transaction(app.db, async (trx) => {
      for (const name of keyNames) {
        const target = { type: 'api_key', id: KEY_ID, name } as const
        await insertAuditEntry(
          writeScope(trx, accountId),
          { user, action: 'api_key.revoked', target, ip: '203.0.113.9' },
          new Date(),
        )
      }
    })
  }

  it('no entries: says what appears here', async () => {
    const owner = await visitor(app, await app.newAccount())
    expect((await owner.get('/audit-log')).text).toContain('No entries yet')
  })

  it('an entry: a sentence with the user and the IP address', async () => {
    const account = await app.newAccount()
    await writeEntries(account.accountId, ['CI & <b>'], account.userId)
    const { text } = await (await visitor(app, account)).get('/audit-log')
    expect(text).toMatch(/Revoked the API key “<a [^>]*>CI &#38; &#60;b&#62;<\/a>”/)
    expect(text).toContain('Mara Keller')
    expect(text).toContain('203.0.113.9')
  })

  it('120 entries: pages of 50 in both directions, each entry once', async () => {
    const account = await app.newAccount()
    const names = Array.from({ length: 120 }, (_, n) => `Key ${n}`)
    await writeEntries(account.accountId, names)
    const owner = await visitor(app, account)
    const read = async (path: string) => {
      const { text } = await owner.get(path)
      return {
        names: [...text.matchAll(/>(Key \d+)</g)].map(([, name]) => name),
        previous: pathOfLink(text, 'Previous'),
        next: pathOfLink(text, 'Next'),
      }
    }
    const first = await read('/audit-log?kind=api_key')
    const second = await read(first.next ?? '')
    const third = await read(second.next ?? '')
    expect([...first.names, ...second.names, ...third.names]).toEqual(names.toReversed())
    expect(first.previous).toBeUndefined()
    expect(third.next).toBeUndefined()
    expect(third.previous).toContain('kind=api_key')
    const back = await read(third.previous ?? '')
    expect(back.names).toEqual(second.names)
    const firstAgain = await read(back.previous ?? '')
    expect(firstAgain).toMatchObject({ names: first.names, previous: undefined })
  })

  it('filters by user, kind and target, and ignores invalid filters', async () => {
    const account = await app.newAccount()
    const owner = await visitor(app, account)
    await writeEntries(account.accountId, ['By the operator'])
    await writeEntries(account.accountId, ['By the Owner'], account.userId)
    await owner.post('/settings', { name: 'Northwind' })
    /** Whether the page shows each of the three entries. */
    const shown = async (query: string) => {
      const { text, status } = await owner.get(`/audit-log?${query}`)
      expect(status, query).toBe(200)
      return ['By the operator', 'By the Owner', '<strong>Northwind</strong>'].map((name) =>
        text.includes(name),
      )
    }
    expect(await shown('')).toEqual([true, true, true])
    expect(await shown(`user=${account.userId}`)).toEqual([false, true, true])
    expect(await shown('user=command-line')).toEqual([true, false, false])
    expect(await shown('kind=api_key')).toEqual([true, true, false])
    expect(await shown('kind=account')).toEqual([false, false, true])
    expect(await shown('kind=webhook')).toEqual([false, false, false])
    expect(await shown(`kind=account&user=command-line`)).toEqual([false, false, false])
    expect(await shown(`target=${account.accountId}`)).toEqual([false, false, true])
    for (const query of [
      'user=x',
      'kind=constructor',
      "target='",
      'before=%00',
      'after=x&before=y',
      'kind=api_key%25',
    ])
      expect(await shown(query), query).toEqual([true, true, true])
    expect((await owner.get('/audit-log?kind=webhook')).text).toContain('No matching entries')
  })

  it('the owner of another account: sees none of the entries', async () => {
    const [account, other] = [await app.newAccount(), await app.newAccount()]
    await writeEntries(account.accountId, ['Secret name'], account.userId)
    const stranger = await visitor(app, other)
    for (const query of ['', `?user=${account.userId}`, `?target=${KEY_ID}`])
      expect((await stranger.get(`/audit-log${query}`)).text, query).not.toContain('Secret name')
  })
})
