/** Forms that make something: of a form that is sent twice there is one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newParticipant } from '../handlers/new-records.ts'
import { startApp, type TestApp } from '../helpers.ts'
import { errorsIn, filledIn, formOf, newOwner, type Owner, textOf, type Values } from './forms.ts'
import { type ConsoleAnswer, newPerson, type Visitor, visitor } from './visitors.ts'

let app: TestApp
let owner: Owner
beforeAll(async () => {
  app = await startApp()
  owner = await newOwner(app)
})
afterAll(() => app?.[Symbol.asyncDispose]())

const TOKEN = /mst_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}/
const SECRET = /whsec_[\w+/=-]{20,}/

type Sent = Record<string, string | string[]>

interface Making {
  path: string
  table: string
  to: string
  values(): Promise<Values> | Values
  other: Values
  wrong: Values
  /** Shown when the form is sent again. */
  createdBefore?: string
}

const forms: Record<string, Making> = {
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
    createdBefore: 'was already created',
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

async function filledForm(visits: Visitor, { path, values }: Making): Promise<Sent> {
  const page = await visits.get(path)
  return filledIn(formOf(page.text), await values())
}

async function made({ table }: Making): Promise<{ id: string }[]> {
  return app.db.read(table).where({ account_id: owner.account.accountId }).orderBy('id')
}

const audited = async (): Promise<number> =>
  (
    await app.db
      .read('audit_log')
      .where({ account_id: owner.account.accountId })
      .whereLike('action', '%.created')
  ).length

const isMade = ({ status, text }: ConsoleAnswer): boolean =>
  status === 303 || TOKEN.test(text) || SECRET.test(text)

describe.each(Object.entries(forms))('the form of a new %s', (_, making) => {
  it('sent twice: one is made, and the second time leads to it and shows no secret', async () => {
    const before = (await made(making)).length
    const sent = await filledForm(owner.visits, making)
    const first = await owner.visits.post(making.to, sent)
    expect(isMade(first)).toBe(true)
    const entries = await audited()
    const second = await owner.visits.post(making.to, sent)
    const after = await made(making)
    expect(after).toHaveLength(before + 1)
    expect(await audited()).toBe(entries)
    expect(second.status).toBe(303)
    const page = await owner.visits.get(second.to ?? '')
    expect(page.status).toBe(200)
    expect(after.filter(({ id }) => second.to?.includes(id))).toHaveLength(1)
    expect(textOf(page.text) + page.text).toContain(
      making.createdBefore ?? 'created when the form was sent before',
    )
    expect(page.text).not.toMatch(TOKEN)
    expect(page.text).not.toMatch(SECRET)
  })

  it('sent by several at once: one is made', async () => {
    const before = (await made(making)).length
    const sent = await filledForm(owner.visits, making)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => owner.visits.post(making.to, sent)),
    )
    expect(await made(making)).toHaveLength(before + 1)
    expect(answers.every(isMade)).toBe(true)
    expect(
      answers.filter(({ text }) => TOKEN.test(text) || SECRET.test(text)).length,
    ).toBeLessThanOrEqual(1)
  })

  it('that comes back with what is wrong is sent again, and makes one', async () => {
    const before = (await made(making)).length
    const sent = await filledForm(owner.visits, making)
    const refused = await owner.visits.post(making.to, { ...sent, ...(making.wrong as Sent) })
    expect(refused.status).toBe(422)
    expect(errorsIn(refused.text)).not.toEqual({})
    const again = filledIn(formOf(refused.text), { ...sent })
    expect(formOf(refused.text).fields.find(([name]) => name === 'form:key')?.[1]).toBe(
      sent['form:key'],
    )
    expect(isMade(await owner.visits.post(making.to, again))).toBe(true)
    await owner.visits.post(making.to, again)
    expect(await made(making)).toHaveLength(before + 1)
  })

  it('sent again with something else in it comes back with what was typed, and makes another when it is sent', async () => {
    const before = (await made(making)).length
    const sent = await filledForm(owner.visits, making)
    await owner.visits.post(making.to, sent)
    const changed = { ...sent, ...(making.other as Sent) }
    const asked = await owner.visits.post(making.to, changed)
    expect(asked.status).toBe(422)
    expect(await made(making)).toHaveLength(before + 1)
    expect(textOf(asked.text)).toContain('This form was sent before with something else in it')
    const form = formOf(asked.text)
    const isTyped = ([name]: [string, unknown]): boolean => name !== 'form:key'
    expect(form.fields.filter(isTyped)).toEqual(
      expect.arrayContaining(Object.entries(making.other)),
    )
    expect(isMade(await owner.visits.post(making.to, filledIn(form, {})))).toBe(true)
    expect(await made(making)).toHaveLength(before + 2)
  })

  it('of one person keeps nobody else from making one with the same key', async () => {
    const before = (await made(making)).length
    const sent = await filledForm(owner.visits, making)
    const person = await newPerson(app, owner.account.accountId, {
      grants: ['webhooks', 'api_keys'],
      permissions: { finance: 'write' },
    })
    const theirs = await visitor(app, person)
    for (const one of [owner.visits, theirs])
      expect(isMade(await one.post(making.to, sent))).toBe(true)
    expect(await made(making)).toHaveLength(before + 2)
  })
})
