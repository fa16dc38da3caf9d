/** A form that is sent twice creates one record. */
import { beforeAll, describe, expect, it } from 'vitest'
import { newParticipant } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, mainText, type Values, withValues } from './forms.ts'
import { SECRET_PATTERN } from './hooks.ts'
import { newOwner, type Owner } from './record-forms.ts'
import {
  type ConsoleAnswer,
  listActions,
  newConsoleUser,
  TOKEN_PATTERN,
  type Visitor,
  visitor,
} from './visitors.ts'

let owner: Owner
const app = sharedApp()
beforeAll(async () => {
  owner = await newOwner(app)
})

interface CreateForm {
  /** The path of the page with the form. */
  path: string
  /** The path that the form posts to. */
  to: string
  table: string
  values(): Promise<Values> | Values
  /** Other valid values for some fields. */
  other: Record<string, string>
  /** Values that get 422. */
  invalid: Record<string, string>
}

const forms: Record<string, CreateForm> = {
  payment: {
    path: '/records/payments/new',
    to: '/records/payments/new',
    table: 'payments',
    values: async () => ({
      participant_id: (await newParticipant(owner.client)).id,
      amount_minor: '12.50',
      'amount_minor:seen': '€12.50',
      currency: 'EUR',
    }),
    other: { amount_minor: '0.99', 'amount_minor:seen': '€0.99' },
    invalid: { amount_minor: 'many' },
  },
  webhook: {
    path: '/webhooks/new',
    to: '/webhooks',
    table: 'webhooks',
    values: () => ({
      url: 'https://example.com/hooks',
      description: 'Shop',
      event_types: '*',
      ordering: 'none',
    }),
    other: { url: 'https://example.com/other' },
    invalid: { url: 'no URL' },
  },
  'API key': {
    path: '/api-keys/new',
    to: '/api-keys',
    table: 'api_keys',
    values: () => ({ name: 'Import', access_level: 'read_only' }),
    other: { name: 'Export' },
    invalid: { name: ' ' },
  },
}

/** Opens the page with the form. Returns the fields to send. */
async function fillForm(
  user: Visitor,
  { path, values }: CreateForm,
): Promise<Record<string, string | string[]>> {
  const page = await user.get(path)
  return withValues(mainForm(page.text), await values())
}

async function listCreated({ table }: CreateForm): Promise<{ id: string }[]> {
  return app.db.read(table).where({ account_id: owner.account.accountId }).orderBy('id')
}

async function countAuditedCreations(): Promise<number> {
  const actions = await listActions(app, owner.account.accountId)
  return actions.filter((action) => action.endsWith('.created')).length
}

const hasSecret = ({ text }: ConsoleAnswer): boolean =>
  TOKEN_PATTERN.test(text) || SECRET_PATTERN.test(text)

/** Whether the response redirects to the new record or shows its secret. */
const isCreated = (answer: ConsoleAnswer): boolean => answer.status === 303 || hasSecret(answer)

describe.each(Object.entries(forms))('the form of a new %s', (_, createForm) => {
  it('sent twice: creates one record, then redirects to it without its secret', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await fillForm(owner.visits, createForm)
    const first = await owner.visits.post(createForm.to, sent)
    expect(isCreated(first)).toBe(true)
    const auditedOnce = await countAuditedCreations()
    const second = await owner.visits.post(createForm.to, sent)
    const after = await listCreated(createForm)
    expect(after).toHaveLength(before + 1)
    expect(await countAuditedCreations()).toBe(auditedOnce)
    expect(second.status).toBe(303)
    const page = await owner.visits.get(second.to ?? '')
    expect(page.status).toBe(200)
    expect(after.filter(({ id }) => second.to?.includes(id))).toHaveLength(1)
    expect(page.text).toContain('already created')
    expect(hasSecret(page)).toBe(false)
  })

  it('sent five times at once: creates one record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await fillForm(owner.visits, createForm)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => owner.visits.post(createForm.to, sent)),
    )
    expect(await listCreated(createForm)).toHaveLength(before + 1)
    expect(answers.every(isCreated)).toBe(true)
    expect(answers.filter(hasSecret).length).toBeLessThanOrEqual(1)
  })

  it('sent again after a field error: creates one record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await fillForm(owner.visits, createForm)
    const refused = await owner.visits.post(createForm.to, { ...sent, ...createForm.invalid })
    expect(refused.status).toBe(422)
    expect(fieldErrors(refused.text)).not.toEqual({})
    const form = mainForm(refused.text)
    expect(withValues(form, {})['form:key']).toBe(sent['form:key'])
    const again = withValues(form, sent)
    expect(isCreated(await owner.visits.post(createForm.to, again))).toBe(true)
    await owner.visits.post(createForm.to, again)
    expect(await listCreated(createForm)).toHaveLength(before + 1)
  })

  it('sent again with other values: asks first, then creates another record', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await fillForm(owner.visits, createForm)
    await owner.visits.post(createForm.to, sent)
    const changed = { ...sent, ...createForm.other }
    const question = await owner.visits.post(createForm.to, changed)
    expect(question.status).toBe(422)
    expect(await listCreated(createForm)).toHaveLength(before + 1)
    expect(mainText(question.text)).toContain(
      'This form has already been sent with different values',
    )
    const form = mainForm(question.text)
    expect(withValues(form, {})).toMatchObject(createForm.other)
    expect(isCreated(await owner.visits.post(createForm.to, withValues(form, {})))).toBe(true)
    expect(await listCreated(createForm)).toHaveLength(before + 2)
  })

  it('sent by two users with the same key: creates a record for each', async () => {
    const before = (await listCreated(createForm)).length
    const sent = await fillForm(owner.visits, createForm)
    const person = await newConsoleUser(app, owner.account.accountId, {
      grants: ['webhooks', 'api_keys'],
      permissions: { finance: 'write' },
    })
    const otherUser = await visitor(app, person)
    for (const user of [owner.visits, otherUser])
      expect(isCreated(await user.post(createForm.to, sent))).toBe(true)
    expect(await listCreated(createForm)).toHaveLength(before + 2)
  })
})
