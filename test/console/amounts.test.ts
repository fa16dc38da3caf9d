/** Amounts in the forms of the console: typed as people write them, stored in minor units. */
import { describe, expect, it } from 'vitest'
import { expectSuccess, newParticipant, newPayment } from '../handlers/new-records.ts'
import { type Client, sharedApp } from '../helpers.ts'
import { fieldErrors, mainForm, mainText, submitForm, unescapeHtml, withValues } from './forms.ts'
import { newOwner } from './record-forms.ts'

const app = sharedApp()
const NEW = '/records/payments/new'

async function createPayments(client: Client, count: number, fields: object = {}): Promise<void> {
  const { id } = await newParticipant(client)
  const data = { participant_id: id, amount_minor: 12_500, currency: 'EUR', ...fields }
  const items = Array.from({ length: count }, () => ({ action: 'create', data }))
  await expectSuccess(client.post('/payments/batch', { items }))
}

describe('the amount of a new payment', () => {
  it('is read in the digits of its currency, with a comma or a point, and saved after the user has seen it', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newParticipant(client)
    const READINGS = [
      ['50', 'EUR', '€50.00', 5_000],
      ['49.90', 'EUR', '€49.90', 4_990],
      ['49,9', 'EUR', '€49.90', 4_990],
      ['1.234,50', 'EUR', '€1,234.50', 123_450],
      ["1'234.50", 'CHF', 'CHF 1,234.50', 123_450],
      ['1\u00a0234 567,50', 'EUR', '€1,234,567.50', 123_456_750],
      ['1,234', 'EUR', '€1,234.00', 123_400],
      ['12,34,567', 'INR', '₹1,234,567.00', 123_456_700],
      ['1,234', 'BHD', 'BHD 1.234', 1_234],
      ['0.05', 'XCG', 'Cg. 0.05', 5],
      ['1.234', 'JPY', '¥1,234', 1_234],
      ['9,999,999,999.99', 'USD', '$9,999,999,999.99', 999_999_999_999],
    ] as const
    for (const [amount_minor, currency, shown, minor] of READINGS) {
      const values = { participant_id: id, amount_minor, currency }
      const question = await submitForm(visits, NEW, values)
      expect(question.status).toBe(200)
      expect(mainText(question.text)).toContain(`Check the amount, then save: ${shown}`)
      const saved = await visits.post(NEW, withValues(mainForm(question.text), {}))
      expect(saved.status).toBe(303)
      const payment = (await client.get(`/payments/${saved.to?.split('/').at(-1)}`)).body
      expect([amount_minor, payment.amount_minor]).toEqual([amount_minor, minor])
    }
    expect((await client.get('/payments')).body.meta.total).toBe(READINGS.length)
  })

  it('is refused if it can be read in two ways, or is too small or too large', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newParticipant(client)
    const example = 'Amount must be a number such as 1,234.50.'
    const range = 'Amount must be from €0.01 to €9,999,999,999.99.'
    const REFUSED = {
      '': 'Amount is required.',
      ...{ x: example, '-5': example, '1e3': example, '€ 5': example, '49.': example },
      ...{ '0,123': example, '1.5,50': example, '1.234.56': example, '1234.567': example },
      ...{ '0': range, '10,000,000,000': range, '99999999999999999999': range },
    }
    for (const [amount_minor, error] of Object.entries(REFUSED)) {
      const values = { participant_id: id, amount_minor, currency: 'EUR' }
      const answer = await submitForm(visits, NEW, values)
      expect([amount_minor, answer.status]).toEqual([amount_minor, 422])
      expect(fieldErrors(answer.text)).toEqual({ amount_minor: error })
    }
    const yen = { participant_id: id, amount_minor: '49.90', currency: 'JPY' }
    expect(fieldErrors((await submitForm(visits, NEW, yen)).text)).toEqual({
      amount_minor: 'Amount must be a number such as 123,450.',
    })
    expect((await client.get('/payments')).body.meta.total).toBe(0)
  })
})

describe('an updated payment', () => {
  it('gets the same number in a new currency, not the same minor units', async () => {
    const { client, visits } = await newOwner(app)
    const payment = await newPayment(client, { amount_minor: 10_000, currency: 'EUR' })
    const edit = `/records/payments/${payment.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    expect(withValues(form, {})).toMatchObject({ amount_minor: '100.00', currency: 'EUR' })

    const refused = await visits.post(edit, withValues(form, { currency: 'JPY' }))
    expect(Object.keys(fieldErrors(refused.text))).toEqual(['amount_minor'])
    const values = { currency: 'JPY', amount_minor: '100' }
    const question = await visits.post(edit, withValues(form, values))
    expect(mainText(question.text)).toContain('Check the amount, then save: ¥100')
    const saved = await visits.post(edit, withValues(mainForm(question.text), {}))
    expect(saved.status).toBe(303)
    expect((await client.get(`/payments/${payment.id}`)).body).toMatchObject({
      amount_minor: 100,
      currency: 'JPY',
    })
  })

  it('keeps its amount when another field changes, without a question', async () => {
    const { client, visits } = await newOwner(app)
    const payment = await newPayment(client, { amount_minor: 4_990, currency: 'EUR' })
    const edit = `/records/payments/${payment.id}/edit`
    expect((await submitForm(visits, edit, { note: 'Travel' })).status).toBe(303)
    const [{ id }] = (
      await client.get(`/events?filter[resource_id]=${payment.id}&sort=-created_at`)
    ).body.data
    const { changes } = (await client.get(`/events/${id}`)).body
    expect(changes.map(({ field }: { field: string }) => field)).toEqual(['note'])
    expect((await client.get(`/payments/${payment.id}`)).body.amount_minor).toBe(4_990)
  })

  it('shows the amount of another user as an amount', async () => {
    const { client, visits } = await newOwner(app)
    const payment = await newPayment(client, { amount_minor: 5_000, currency: 'EUR' })
    const edit = `/records/payments/${payment.id}/edit`
    const form = mainForm((await visits.get(edit)).text)
    await client.patch(`/payments/${payment.id}`, { amount_minor: 6_000 })
    const ours = { amount_minor: '70', 'amount_minor:seen': '€70.00' }
    const conflict = await visits.post(edit, withValues(form, ours))
    expect(conflict.status).toBe(409)
    expect(mainText(conflict.text)).toContain('Now stored: €60.00')
  })
})

describe('currencies', () => {
  const options = (page: string): string[] =>
    [...page.matchAll(/<option value="[A-Z]{3}"[^>]*>([^<]*)</g)].map(([, text = '']) => text)

  it('have names, and the most used ones of the account come first', async () => {
    const { client, visits } = await newOwner(app)
    const unused = await visits.get(NEW)
    expect(options(unused.text).slice(0, 2)).toEqual(['Afghan Afghani (AFN)', 'Albanian Lek (ALL)'])
    expect(withValues(mainForm(unused.text), {})).toMatchObject({ currency: '' })

    for (const currency of ['USD', 'EUR', 'EUR']) await newPayment(client, { currency })
    const first = ['Euro (EUR)', 'US Dollar (USD)', 'Afghan Afghani (AFN)']
    const page = await visits.get(NEW)
    expect(options(page.text).slice(0, 3)).toEqual(first)
    expect(withValues(mainForm(page.text), {})).toMatchObject({ currency: 'EUR' })
    const exported = await visits.post('/records/exports/new?ask:refresh=1', {
      ...withValues(mainForm((await visits.get('/records/exports/new')).text), {}),
      resource: 'payments',
    })
    const filtered = await visits.get('/records/payments?filter[currency]=GBP')
    // A filter offers the used currencies, and a chosen one.
    expect(mainText(filtered.text)).toMatch(/Currency Euro US Dollar GBP /)
    expect(mainText(filtered.text)).toContain('Currency: British Pound (GBP)')
    expect(mainText(exported.text)).toMatch(/Currency Euro \(EUR\) US Dollar \(USD\) /)
    for (const { text } of [page, filtered, exported])
      expect(mainText(text)).not.toMatch(/minor|Afghani.*Afghani/i)
  })

  it('are used ones of filters even if only old payments have them', async () => {
    const { client, visits } = await newOwner(app)
    await newPayment(client, { currency: 'BHD' })
    await createPayments(client, 100)
    expect(mainText((await visits.get('/records/payments')).text)).toMatch(
      /Currency Euro Bahraini Dinar /,
    )
  })
})

describe('the sum of a list of payments', () => {
  const sumsIn = (page: string): string[] =>
    [...page.matchAll(/<span class="sum">([^<]*)</g)].map(([, text = '']) => unescapeHtml(text))

  it('is that of the listed payments on all pages, exact, for each currency', async () => {
    const { client, visits } = await newOwner(app)
    await createPayments(client, 30, { amount_minor: 999_999_999_999 })
    await newPayment(client, { currency: 'JPY', amount_minor: 12_500 })
    const paid = await newPayment(client, { currency: 'BHD', amount_minor: 1 })
    await client.patch(`/payments/${paid.id}`, { status: 'paid' })
    const list = await visits.get('/records/payments')
    expect(sumsIn(list.text)).toEqual(['€299,999,999,999.70', 'BHD\u00a00.001', '¥12,500'])
    expect(mainText(list.text)).toMatch(/32 payments €299,/)
    const filtered = await visits.get('/records/payments?filter[status]=paid')
    expect(sumsIn(filtered.text)).toEqual(['BHD\u00a00.001'])
    const of = await visits.get(`/records/payments?filter[participant_id]=${paid.participant_id}`)
    expect(sumsIn(of.text)).toEqual(['BHD\u00a00.001'])
    const none = await visits.get('/records/payments?filter[status]=cancelled')
    expect(sumsIn(none.text)).toEqual([])
  })

  it('of more than 50,000 payments asks for a filter', async () => {
    const { client, visits } = await newOwner(app)
    const { id } = await newPayment(client, { currency: 'EUR', amount_minor: 1 })
    const { id: _, ...stored } = await app.db.read('payments').where({ id }).first()
    const columns = Object.keys(stored).join(', ')
    const isPostgres = app.db.dialect === 'postgres'
    const newId = isPostgres ? 'gen_random_uuid()' : "printf('%08x-0000-4000-8000-000000000000', n)"
    await app.db.write.raw(
      `insert into payments (id, ${columns})
       with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 50000)
       select ${newId}, ${columns} from payments, numbers where payments.id = ?`,
      [id],
    )
    const list = await visits.get('/records/payments')
    expect(mainText(list.text)).toContain(
      '50,001 payments · Filter to 50,000 or fewer to see their sum.',
    )
    await client.delete(`/payments/${id}`)
    expect(sumsIn((await visits.get('/records/payments')).text)).toEqual(['€500.00'])
  })
})
