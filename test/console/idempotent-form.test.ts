/** A form that is sent twice creates one record. */
import { beforeAll, describe, expect, it } from 'vitest'
import { newParticipant } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, mainText, type Values, withValues } from './forms.ts'
import { newOwner, type Owner } from './record-forms.ts'
import { type ConsoleAnswer, newConsoleUser, type Visitor, visitor } from './visitors.ts'

let owner: Owner
const app = sharedApp()
beforeAll(async () => {
  owner = await newOwner(app)
})

const TOKEN = /mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}/
const SECRET = /whsec_[\w+/=-]{20,}/

type Sent = Record<string, string | string[]>

interface CreateForm {
  path: string
  table: string
  to: string
  values(): Promise<Values> | Values
  other: Values
  wrong: Values
}

const forms: Record<string, CreateForm> = {
  payment: {
    path: '/records/payments/new',
    table: 'payments',
    to: '/records/payments/new',
    values: async () => ({
      participant_id: (await newParticipant(owner.client)).id,
      amount_minor: '1250',
      currency: 'EUR',
    }),
    other: { amount_minor: '99' },
    wrong: { amount_minor: 'many' },
  },
  webhook: {
    path: '/webhooks/new',
    table: 'webhooks',
    to: '/webhooks',
    values: () => ({
      url: 'https://example.com/hooks',
      description: 'Shop',
      event_types: '*',
      ordering: 'none',
    }),
    other: { url: 'https://example.com/other' },
    wrong: { url: 'no address' },
  },
  'API key': {
    path: '/api-keys/new',
    table: 'api_keys',
    to: '/api-keys',
    values: () => ({ name: 'Import', access_level: 'read_only' }),
    other: { name: 'Export' },
    wrong: { name: ' ' },
  },
}

async function filledForm(visits: Visitor, { path, values }: CreateForm): Promise<Sent> {
  const page = await visits.get(path)
  return withValues(mainForm(page.text), await values())
}

async function listCreated({ table }: CreateForm): Promise<{ id: string }[]> {
  return app.db.read(table).where({ account_id: owner.account.accountId }).orderBy('id')
}

const audited = async (): Promise<number> =>
  (
    await app.db
      .read('audit_log')
      .where({ account_id: owner.account.accountId })
      .whereLike('action', '%.created')
  ).length

const isCreated = ({ status, text }: ConsoleAnswer): boolean =>
  status === 303 || TOKEN.test(text) || SECRET.test(text)

describe.each(Object.entries(forms))('the form of a new %s', (_, createForm) => {
  it('sent twice: creates one record, then leads to it and shows no secret', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await filledForm(owner.visits, createForm)
    const first = await owner.visits.post(createForm.to, sent)
    expect(isCreated(first)).toBe(true)
    const entries = await audited()
    const second = await owner.visits.post(createForm.to, sent)
    const after = await listCreated(createForm)
    expect(after).toHaveLength(before + 1)
    expect(await audited()).toBe(entries)
    expect(second.status).toBe(303)
    const page = await owner.visits.get(second.to ?? '')
    expect(page.status).toBe(200)
    expect(after.filter(({ id }) => second.to?.includes(id))).toHaveLength(1)
    expect(mainText(page.text) + page.text).toContain('already created')
    expect(page.text).not.toMatch(TOKEN)
    expect(page.text).not.toMatch(SECRET)
  })

  it('sent five times at once: creates one record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await filledForm(owner.visits, createForm)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => owner.visits.post(createForm.to, sent)),
    )
    expect(await listCreated(createForm)).toHaveLength(before + 1)
    expect(answers.every(isCreated)).toBe(true)
    expect(
      answers.filter(({ text }) => TOKEN.test(text) || SECRET.test(text)).length,
    ).toBeLessThanOrEqual(1)
  })

  it('sent again after a field error: creates one record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await filledForm(owner.visits, createForm)
    const refused = await owner.visits.post(createForm.to, {
      ...sent,
      ...(createForm.wrong as Sent),
    })
    expect(refused.status).toBe(422)
    expect(fieldErrors(refused.text)).not.toEqual({})
    const again = withValues(mainForm(refused.text), { ...sent })
    expect(mainForm(refused.text).fields.find(([name]) => name === 'form:key')?.[1]).toBe(
      sent['form:key'],
    )
    expect(isCreated(await owner.visits.post(createForm.to, again))).toBe(true)
    await owner.visits.post(createForm.to, again)
    expect(await listCreated(createForm)).toHaveLength(before + 1)
  })

  it('sent again with other values: asks first, then creates another record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await filledForm(owner.visits, createForm)
    await owner.visits.post(createForm.to, sent)
    const changed = { ...sent, ...(createForm.other as Sent) }
    const asked = await owner.visits.post(createForm.to, changed)
    expect(asked.status).toBe(422)
    expect(await listCreated(createForm)).toHaveLength(before + 1)
    expect(mainText(asked.text)).toContain('This form has already been sent with different values')
    const form = mainForm(asked.text)
    const isTyped = ([name]: [string, unknown]): boolean => name !== 'form:key'
    expect(form.fields.filter(isTyped)).toEqual(
      expect.arrayContaining(Object.entries(createForm.other)),
    )
    expect(isCreated(await owner.visits.post(createForm.to, withValues(form, {})))).toBe(true)
    expect(await listCreated(createForm)).toHaveLength(before + 2)
  })

  it('sent by two users with the same key: creates a record for each', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await filledForm(owner.visits, createForm)
    const person = await newConsoleUser(app, owner.account.accountId, {
      grants: ['webhooks', 'api_keys'],
      permissions: { finance: 'write' },
    })
    const theirs = await visitor(app, person)
    for (const one of [owner.visits, theirs])
      expect(isCreated(await one.post(createForm.to, sent))).toBe(true)
    expect(await listCreated(createForm)).toHaveLength(before + 2)
  })
})
