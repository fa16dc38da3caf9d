import { describe, expect, test } from 'vitest'
import { CLOCK_DIFFERENCE_MS, sharedApp } from '../helpers.ts'
import { expectMove, expectRead, expectUpdate, pairsOf, statusAndFields } from './checks.ts'
import {
  eventsAbout,
  newParticipant,
  newPayment,
  newTask,
  requestExample,
  UNKNOWN_ID,
  withNulls,
} from './new-records.ts'

const app = sharedApp()

const defaults = { task_id: null, status: 'pending', note: null, paid_at: null }
const times = { created_at: expect.any(String), updated_at: expect.any(String) }

describe('createPayment', () => {
  test('the example of the contract → 201 with every field, as stored', async () => {
    const client = await app.newClient()
    const example = {
      ...requestExample('PaymentCreateBody'),
      participant_id: (await newParticipant(client)).id,
    }
    const answer = await client.post('/payments', example)
    expect(answer.status).toBe(201)
    const stored = { id: expect.any(String), ...defaults, ...example, ...times }
    expect(answer.body).toEqual(withNulls('Payment', stored))
    await expectRead(client, `/payments/${answer.body.id}`, answer)
    expect(await eventsAbout(client, answer.body.id)).toEqual(['payment.created'])
  })

  const given: { name: string; fields: object }[] = [
    { name: 'only the required fields', fields: {} },
    { name: 'null for the nullable fields', fields: { task_id: null, note: null } },
    { name: 'the smallest amount, in yen', fields: { amount_minor: 1, currency: 'JPY' } },
    {
      name: 'the largest amount, beyond 32 bits',
      fields: { amount_minor: 999_999_999_999, currency: 'ALL' },
    },
    { name: 'an empty note', fields: { note: '' } },
    { name: 'the longest note: 2,000 characters', fields: { note: '€'.repeat(2_000) } },
  ]
  test.each(given)('$name → 201, with defaults for the other fields', async ({ fields }) => {
    const client = await app.newClient()
    const body = {
      participant_id: (await newParticipant(client)).id,
      amount_minor: 12500,
      currency: 'EUR',
      ...fields,
    }
    const answer = await client.post('/payments', body)
    expect(answer).toMatchObject({ status: 201 })
    const stored = { id: expect.any(String), ...defaults, ...body, ...times }
    expect(answer.body).toEqual(withNulls('Payment', stored))
    await expectRead(client, `/payments/${answer.body.id}`, answer)
  })

  test('for a task of any participant → 201', async () => {
    const client = await app.newClient()
    const task_id = (await newTask(client, { participant_id: (await newParticipant(client)).id }))
      .id
    const payment = await newPayment(client, { task_id })
    expect((await client.get(`/payments/${payment.id}`)).body).toMatchObject({ task_id })
  })

  const refused: [string, unknown][] = [
    ['participant_id', undefined],
    ['participant_id', null],
    ['participant_id', UNKNOWN_ID],
    ['task_id', UNKNOWN_ID],
    ['task_id', 'none'],
    ['amount_minor', undefined],
    ['amount_minor', null],
    ['amount_minor', 0],
    ['amount_minor', -1],
    ['amount_minor', 1.5],
    ['amount_minor', '12500'],
    ['amount_minor', 1_000_000_000_000],
    ['currency', undefined],
    ['currency', 'eur'],
    ['currency', 'EURO'],
    ['currency', 'XXX'],
    ['note', 'x'.repeat(2_001)],
    ['status', 'paid'],
    ['paid_at', '2026-03-02T09:30:00Z'],
  ]
  test.each(refused)('%s: %j → 422 on the field', async (field, value) => {
    const client = await app.newClient()
    const body = {
      participant_id: (await newParticipant(client)).id,
      amount_minor: 12500,
      currency: 'EUR',
      [field]: value,
    }
    expect(statusAndFields(await client.post('/payments', body))).toEqual([422, [field]])
    expect((await client.get('/payments')).body.meta.total).toBe(0)
  })
})

describe('updatePayment', () => {
  const changes: { given: object; wanted?: object }[] = [
    {
      given: requestExample('PaymentUpdateBody'),
      wanted: { status: 'paid', paid_at: expect.any(String) },
    },
    { given: { status: 'cancelled' } },
    { given: { task_id: null } },
    { given: { amount_minor: 999_999_999_999 } },
    { given: { currency: 'CHF' } },
    { given: { note: 'Another' } },
    { given: { note: '' } },
    { given: { note: null } },
    {
      given: { status: 'paid', amount_minor: 1, currency: 'CHF', note: null, task_id: null },
      wanted: {
        status: 'paid',
        amount_minor: 1,
        currency: 'CHF',
        note: null,
        task_id: null,
        paid_at: expect.any(String),
      },
    },
  ]
  test.each(changes)(
    '$given of a pending payment → 200 and stored, the other fields unchanged',
    async ({ given, wanted }) => {
      const client = await app.newClient()
      const { id } = await newPayment(client, {
        note: 'Travel costs',
        task_id: (await newTask(client)).id,
      })
      await expectUpdate(client, `/payments/${id}`, given, wanted)
    },
  )

  test('a task in place of null → 200', async () => {
    const client = await app.newClient()
    const { id } = await newPayment(client)
    await expectUpdate(client, `/payments/${id}`, { task_id: (await newTask(client)).id })
  })

  test.each([
    ['participant_id', UNKNOWN_ID],
    ['task_id', UNKNOWN_ID],
    ['amount_minor', null],
    ['amount_minor', 0],
    ['currency', 'EURO'],
    ['status', 'refunded'],
    ['paid_at', null],
  ])('%s: %j → 422 on the field, and no change', async (field, value) => {
    const client = await app.newClient()
    const before = await newPayment(client)
    expect(
      statusAndFields(
        await client.patch(`/payments/${before.id}`, { note: 'New', [field]: value }),
      ),
    ).toEqual([422, [field]])
    expect((await client.get(`/payments/${before.id}`)).body).toEqual(before)
  })

  const finished = ['paid', 'cancelled'].flatMap((status) => [
    { status, given: { amount_minor: 1 }, want: [422, ['amount_minor']] },
    { status, given: { currency: 'CHF' }, want: [422, ['currency']] },
    { status, given: { amount_minor: 1, note: 'New' }, want: [422, ['amount_minor']] },
    { status, given: { amount_minor: 12500, currency: 'EUR' }, want: [200, []] },
    { status, given: { amount_minor: 12500, note: 'New' }, want: [200, []] },
    { status, given: { note: 'New' }, want: [200, []] },
    { status, given: { task_id: null }, want: [200, []] },
  ])
  test.each(finished)('$given of a $status payment → $want', async ({ status, given, want }) => {
    const client = await app.newClient()
    const { id } = await newPayment(client, { task_id: (await newTask(client)).id })
    const before = (await client.patch(`/payments/${id}`, { status })).body
    expect(statusAndFields(await client.patch(`/payments/${id}`, given))).toEqual(want)
    const { amount_minor, currency, paid_at } = before
    const after = (await client.get(`/payments/${id}`)).body
    expect(after).toMatchObject({ status, amount_minor, currency, paid_at })
    if (want[0] === 422) expect(after).toEqual(before)
  })
})

describe('updatePayment: moves', () => {
  const MOVES = { pending: ['paid', 'cancelled'], paid: [], cancelled: [] }
  test.each(pairsOf(MOVES))(
    '$from → $to is possible: $isPossible',
    async ({ from, to, isPossible }) => {
      const client = await app.newClient()
      const { id } = await newPayment(client)
      if (from !== 'pending') await client.patch(`/payments/${id}`, { status: from })
      const after = await expectMove(client, `/payments/${id}`, { from, to, isPossible })
      expect(after.paid_at === null).toBe(after.status !== 'paid')
      const types = await eventsAbout(client, id)
      expect(types.filter((type) => type === 'payment.paid')).toHaveLength(
        after.status === 'paid' ? 1 : 0,
      )
    },
  )

  test('a change to paid → sets paid_at', async () => {
    const client = await app.newClient()
    const { id } = await newPayment(client)
    const before = Date.now()
    const { paid_at } = (await client.patch(`/payments/${id}`, { status: 'paid' })).body
    expect(Date.parse(paid_at)).toBeGreaterThanOrEqual(before - CLOCK_DIFFERENCE_MS)
    expect(Date.parse(paid_at)).toBeLessThanOrEqual(Date.now() + CLOCK_DIFFERENCE_MS)
  })

  test('paid and another amount in concurrent requests → the amount changes before the status does, or not at all', async () => {
    const client = await app.newClient()
    const rounds = Array.from({ length: 5 }, async () => {
      const { id } = await newPayment(client)
      const [paid, changed] = await Promise.all(
        [{ status: 'paid' }, { amount_minor: 1 }].map((body) =>
          client.patch(`/payments/${id}`, body),
        ),
      )
      expect(paid?.status).toBe(200)
      expect([200, 422]).toContain(changed?.status)
      const after = (await client.get(`/payments/${id}`)).body
      expect(after).toMatchObject({
        status: 'paid',
        amount_minor: changed?.status === 200 ? 1 : 12500,
      })
      if (changed?.status === 200) expect(changed.body.status).toBe('pending')
    })
    await Promise.all(rounds)
  })
})

describe('deletePayment', () => {
  test('a paid payment → 204; its participant and task stay, and the participant can then be deleted', async () => {
    const client = await app.newClient()
    const { id: task_id } = await newTask(client)
    const { id, participant_id } = await newPayment(client, { task_id })
    await client.patch(`/payments/${id}`, { status: 'paid' })
    expect((await client.delete(`/payments/${id}`)).status).toBe(204)
    for (const path of [`/tasks/${task_id}`, `/participants/${participant_id}`])
      expect((await client.get(path)).status).toBe(200)
    expect((await eventsAbout(client, id)).at(-1)).toBe('payment.deleted')
    expect((await client.delete(`/participants/${participant_id}`)).status).toBe(204)
  })
})
