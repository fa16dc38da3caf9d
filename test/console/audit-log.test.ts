/** The audit log. */
import { describe, expect, it } from 'vitest'
import { insertAuditEntry } from '../../records/audit-log.ts'
import { writeScope } from '../../records/database/scope.ts'
import { transaction } from '../../records/database/transaction.ts'
import { newCompleteExport } from '../handlers/export-helpers.ts'
import { CSV, importFile } from '../handlers/import-helpers.ts'
import { newParticipant, newPayment } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainText, pathOfLink, submitForm, tableOf } from './forms.ts'
import { newOwner } from './record-forms.ts'
import { newConsoleUser, type Visitor, visitor } from './visitors.ts'

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
    expect(text).toMatch(/Revoked the API key <a [^>]*>CI &#38; &#60;b&#62;<\/a>/)
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

  /** The lines of the export as NDJSON, oldest first. */
  async function readEntries(owner: Visitor, query = ''): Promise<Record<string, unknown>[]> {
    const { text } = await owner.get(`/audit-log.ndjson?${query}`)
    const lines = text.split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line)).toReversed()
  }

  const actionsOf = async (owner: Visitor, query: string): Promise<unknown[]> =>
    (await readEntries(owner, query)).map(({ action }) => action)

  it('records by API and console: who, from where, which fields and which request, but no values', async () => {
    const { account, client, visits } = await newOwner(app)
    const { id } = await newParticipant(client, { full_name: 'Ada Lovelace' })
    const request = { 'X-Request-Id': 'update-ada' }
    const body = { email: 'ada@example.com', tags: ['secret-tag'] }
    await client.patch(`/participants/${id}`, body, request)
    await submitForm(visits, `/records/participants/${id}/edit`, { phone: '+44 20' })
    expect((await visits.post(`/records/participants/${id}/delete`)).status).toBe(303)
    const [{ id: keyId }] = await app.db.read('api_keys').where({ user_id: account.userId })
    const entry = {
      target_type: 'participant',
      target_id: id,
      target_name: null,
      user_id: account.userId,
      ip: '127.0.0.1',
      request_id: expect.stringMatching(/^[\w-]{10,}$/),
      changed_fields: [],
    }
    const entries = await readEntries(visits, `target=${id}`)
    expect(entries).toMatchObject([
      { ...entry, action: 'participant.created', api_key_id: keyId },
      {
        ...entry,
        action: 'participant.updated',
        api_key_id: keyId,
        changed_fields: ['email', 'tags'],
        request_id: 'update-ada',
      },
      { ...entry, action: 'participant.updated', api_key_id: null, changed_fields: ['phone'] },
      { ...entry, action: 'participant.deleted', api_key_id: null },
    ])
    const page = await visits.get(`/audit-log?target=${id}`)
    expect(tableOf(page.text, 'Audit log').map(([what]) => what)).toEqual([
      expect.stringMatching(/^Deleted the participant \w+$/),
      expect.stringMatching(/^Updated the participant \w+ Phone$/),
      expect.stringMatching(/^Updated the participant \w+ Email, Tags$/),
      expect.stringMatching(/^Created the participant \w+$/),
    ])
    expect(page.text).toContain('href="/console/requests?range=30d&#38;request=update-ada&#38;at=')
    for (const { text } of [page, await visits.get(`/audit-log.csv?target=${id}`)]) {
      expect(text).not.toContain('Ada Lovelace')
      expect(text).not.toContain('secret-tag')
    }
  })

  it('the name of a record that exists links to the record, whose page shows its history', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newParticipant(client, { full_name: 'Ada Lovelace' })
    await client.patch(`/participants/${id}`, { full_name: 'Ada King' })
    expect((await visits.get('/audit-log')).text).toContain(
      `Updated the participant <a href="/console/records/participants/${id}">Ada King</a>`,
    )
    const payment = await newPayment(client, { participant_id: id })
    expect((await visits.get('/audit-log')).text).toContain(
      `Created the payment <a href="/console/records/payments/${payment.id}">Ada King, €125.00</a>`,
    )
    const history = tableOf((await visits.get(`/records/participants/${id}`)).text, 'History')
    expect(history.map(([what]) => what)).toEqual([
      'Updated Full name: Ada Lovelace to Ada King',
      'Created',
    ])
  })

  it('downloads of exports and refused rows by API and console, and deleted exports', async () => {
    const { account, client, visits } = await newOwner(app)
    await newParticipant(client)
    const id = await newCompleteExport(app, client, { resource: 'participants' })
    await client.get(`/exports/${id}/file`, { 'X-Request-Id': 'download-1' })
    await visits.get(`/records/exports/${id}/file`)
    await fetch(`${app.url}/public/v1/exports/${id}/file`, {
      method: 'HEAD',
      headers: { Authorization: `Bearer ${account.key}` },
    })
    await client.delete(`/exports/${id}`)
    expect(await readEntries(visits, `target=${id}`)).toMatchObject([
      { action: 'export.created', api_key: expect.any(String) },
      {
        action: 'export.downloaded',
        api_key: expect.any(String),
        request_id: 'download-1',
        ip: '127.0.0.1',
      },
      { action: 'export.downloaded', api_key: null, request_id: expect.any(String) },
      { action: 'export.deleted', api_key: expect.any(String) },
    ])
    const page = mainText((await visits.get('/audit-log?verb=downloaded')).text)
    expect(page).toMatch(/Downloaded 1 participant as participants-\S+\.csv/)
    const { record } = await importFile(app, client, 'mode=create', 'full_name\n \n')
    await client.delete(`/imports/${record.id}`)
    expect(await actionsOf(visits, `target=${record.id}`)).toEqual([
      'import.created',
      'import.downloaded',
      'import.deleted',
    ])
  })

  it('an imported row: the entry names the request of the import', async () => {
    const { client, visits } = await newOwner(app)
    const headers = { ...CSV, 'X-Request-Id': 'import-1' }
    await importFile(app, client, 'mode=create', 'full_name\nAda Lovelace\n', headers)
    const [entry] = await readEntries(visits, 'kind=participant')
    expect(entry).toMatchObject({ request_id: 'import-1', ip: '127.0.0.1' })
    expect(entry?.api_key).toEqual(expect.any(String))
  })

  it('a download whose entry cannot be stored: no file', async () => {
    const { client } = await newOwner(app)
    await newParticipant(client)
    const id = await newCompleteExport(app, client, { resource: 'participants' })
    await app.db.write.raw('alter table audit_log rename column ip to hidden_ip')
    const refused = await client.get(`/exports/${id}/file`)
    await app.db.write.raw('alter table audit_log rename column hidden_ip to ip')
    expect(refused.status).toBe(500)
    expect((await client.get(`/exports/${id}/file`)).status).toBe(200)
  })

  it('filters records by person with their keys, key, kind, change, record and time', async () => {
    const { account, client, visits } = await newOwner(app)
    const other = await newConsoleUser(app, account.accountId, {
      permissions: { participants: 'write' },
    })
    const ada = await newParticipant(client)
    const payment = await newPayment(client, { participant_id: ada.id })
    await client.delete(`/payments/${payment.id}`)
    await submitForm(await visitor(app, other), `/records/participants/${ada.id}/edit`, {
      phone: '+44 20',
    })
    const [{ id: keyId }] = await app.db.read('api_keys').where({ user_id: account.userId })
    const byApi = ['participant.created', 'payment.created', 'payment.deleted']
    const all = [...byApi, 'participant.updated']
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16)
    for (const [query, want] of [
      ['', all],
      [`user=${account.userId}`, byApi],
      [`key=${keyId}`, byApi],
      [`user=${account.userId}&key=${keyId}`, byApi],
      [`user=${other.userId}&key=${keyId}`, []],
      [`user=${other.userId}`, ['participant.updated']],
      ['user=command-line', []],
      ['kind=payment', ['payment.created', 'payment.deleted']],
      ['verb=deleted', ['payment.deleted']],
      [`verb=deleted&user=${other.userId}`, []],
      [`target=${ada.id}`, ['participant.created', 'participant.updated']],
      [`from=${tomorrow}`, []],
      [`until=${tomorrow}`, all],
      [`from=2026-01-01T00:00&until=${tomorrow}`, all],
      ['until=2026-01-01T00:00', []],
    ] as const)
      expect(await actionsOf(visits, query), query).toEqual(want)
    const stranger = await newOwner(app)
    for (const query of ['', `target=${ada.id}`, `user=${account.userId}`, `key=${keyId}`])
      expect(await readEntries(stranger.visits, query), query).toEqual([])
  })

  it('pages of records and other entries: in the order of time, each entry once', async () => {
    const { account, client, visits } = await newOwner(app)
    for (let round = 0; round < 30; round++) {
      await newParticipant(client)
      await writeEntries(account.accountId, [`Key ${round}`], account.userId)
    }
    const ids: string[] = []
    for (let path = '/audit-log'; path; ) {
      const { text } = await visits.get(path)
      ids.push(...[...text.matchAll(/id="entry-([^"]+)"/g)].map(([, id = '']) => id))
      path = pathOfLink(text, 'Next') ?? ''
    }
    expect(ids).toHaveLength(60)
    expect(new Set(ids).size).toBe(60)
    expect(ids).toEqual(ids.toSorted().reverse())
    const exported = (await readEntries(visits)).map(({ id }) => id)
    expect(exported).toEqual(ids.toReversed())
  })

  it('the export as CSV: one line for each entry, formulas escaped', async () => {
    const account = await app.newAccount()
    await writeEntries(account.accountId, ['=1+1'], account.userId)
    const { text, headers } = await (await visitor(app, account)).get('/audit-log.csv')
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const [head, line, ...others] = text.split('\r\n')
    expect(head).toMatch(/^id,time,action,target_type,target_id,target_name,changed_fields,user,/)
    expect(line).toContain(`,api_key.revoked,api_key,${KEY_ID},'=1+1,`)
    expect(others).toEqual([''])
  })
})
