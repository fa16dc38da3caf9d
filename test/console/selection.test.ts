/** Actions on the selected rows of a list, and exports of a filtered list. */
import { describe, expect, it } from 'vitest'
import { type Body, newApplication, newParticipant, newPayment } from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainForm, mainText, pathOfLink, unescapeHtml, withValues } from './forms.ts'
import { newOwner, type Owner, writeExportFile } from './record-forms.ts'
import { memberWith } from './visitors.ts'

const app = sharedApp()

const idsOf = (records: Body[]): string => records.map(({ id }) => id).join(',')

async function newPayments(owner: Owner, count: number): Promise<Body[]> {
  const payments: Body[] = []
  for (let i = 0; i < count; i++) payments.push(await newPayment(owner.client))
  return payments
}

/** Opens the page of the action for the selected rows, and sends its form. */
async function act({ visits }: Owner, action: string, records: Body[], values = {}) {
  const slug = action.split('/')[0]
  const path = `/records/${action}?filter[id]=${idsOf(records)}`
  const list = `${app.config.baseUrl}/console/records/${slug}?sort=created_at`
  const page = await visits.get(path, { Referer: list })
  expect(page.status).toBe(200)
  const form = mainForm(page.text)
  return { page, answer: await visits.submit(form.to, withValues(form, values)) }
}

describe('set the status of selected rows', () => {
  it('names the records before, updates all, and returns to the list', async () => {
    const owner = await newOwner(app)
    const payments = await newPayments(owner, 3)
    const other = await newPayment(owner.client)
    const { page, answer } = await act(owner, 'payments/set-status', payments, { status: 'paid' })
    expect(mainText(page.text)).toContain('Set the status of 3 payments')
    for (const { id } of payments) expect(page.text).toContain(`/console/records/payments/${id}"`)
    expect(mainText(answer.text)).toContain('3 payments set to Paid.')
    expect(answer.text).toContain('aria-sort="ascending"><a class="sort"')
    const { data } = (await owner.client.get('/payments?filter[status]=paid')).body
    expect(data.map(({ id }: Body) => id)).toEqual(payments.map(({ id }) => id))
    const events = (await owner.client.get('/events?filter[event_type]=payment.paid')).body
    expect(events.meta.total).toBe(3)
    expect((await owner.client.get(`/payments/${other.id}`)).body.status).toBe('pending')
  })

  it('a record that refuses: the others are updated, and the result says which and why', async () => {
    const owner = await newOwner(app)
    const [paid, cancelled, deleted] = (await newPayments(owner, 3)) as [Body, Body, Body]
    await owner.client.patch(`/payments/${cancelled.id}`, { status: 'cancelled' })
    const path = `/records/payments/set-status?filter[id]=${idsOf([paid, cancelled, deleted])}`
    const form = mainForm((await owner.visits.get(path)).text)
    await owner.client.delete(`/payments/${deleted.id}`)
    const answer = await owner.visits.post(form.to, withValues(form, { status: 'paid' }))
    const api = await owner.client.patch(`/payments/${cancelled.id}`, { status: 'paid' })
    expect([answer.status, api.status]).toEqual([200, 422])
    const text = mainText(answer.text)
    expect(text).toContain('1 of 3 payments set to Paid')
    expect(text).toContain(`Ada Lovelace, €125.00 Status ${api.body.errors.status[0]}`)
    expect(text).toContain(`${deleted.id.slice(-12)} There is no such payment.`)
    expect((await owner.client.get(`/payments/${paid.id}`)).body.status).toBe('paid')
  })

  it('offers only statuses that can follow that of a selected record', async () => {
    const owner = await newOwner(app)
    const [paid, pending] = (await newPayments(owner, 2)) as [Body, Body]
    await owner.client.patch(`/payments/${paid.id}`, { status: 'paid' })
    const offered = async (records: Body[]): Promise<string[]> => {
      const path = `/records/payments/set-status?filter[id]=${idsOf(records)}`
      const { text } = await owner.visits.get(path)
      if (records.length === 1) expect(mainText(text)).toContain('selected records is final.')
      return [...text.matchAll(/name="status" value="(\w+)"/g)].map(([, value = '']) => value)
    }
    expect(await offered([paid, pending])).toEqual(['paid', 'cancelled'])
    expect(await offered([paid])).toEqual([])
  })

  it('without a status, or without rows: changes nothing, and says what to do', async () => {
    const owner = await newOwner(app)
    const payments = await newPayments(owner, 1)
    const { answer } = await act(owner, 'payments/set-status', payments)
    expect([answer.status, mainText(answer.text).includes('Choose a status.')]).toEqual([422, true])
    for (const action of ['set-status', 'delete'])
      expect(mainText((await owner.visits.get(`/records/payments/${action}`)).text)).toContain(
        'Select payments in the list first.',
      )
  })

  it('the records of another account: are neither named nor changed', async () => {
    const [owner, stranger] = [await newOwner(app), await newOwner(app)]
    const [foreign, own] = [await newPayments(owner, 1), await newPayments(stranger, 1)]
    const all = [...foreign, ...own]
    const path = `/records/payments/delete?filter[id]=${idsOf(all)}`
    expect(mainText((await stranger.visits.get(path)).text)).toContain('Delete 1 payment?')
    const sent = { 'filter[id]': idsOf(all), status: 'paid' }
    for (const [action, reason] of [
      ['set-status', 'There is no such payment.'],
      ['delete', 'Already deleted.'],
    ]) {
      const answer = await stranger.visits.post(`/records/payments/${action}`, sent)
      expect(mainText(answer.text)).toMatch(/1 of 2 payments /)
      expect(mainText(answer.text)).toContain(`${foreign[0]?.id.slice(-12)} ${reason}`)
    }
    expect((await owner.client.get(`/payments/${foreign[0]?.id}`)).body.status).toBe('pending')
  })
})

it('delete selected rows: deletes the others of a record that refuses, and says why', async () => {
  const owner = await newOwner(app)
  const people: Body[] = []
  for (const name of ['Ada', 'Grace', 'Alan'])
    people.push(await newParticipant(owner.client, { full_name: name }))
  await newApplication(owner.client, { participant_id: people[1]?.id })
  const { page, answer } = await act(owner, 'participants/delete', people)
  expect(mainText(page.text)).toMatch(/Delete 3 participants\? .*This cannot be undone\./)
  const api = await owner.client.delete(`/participants/${people[1]?.id}`)
  expect(mainText(answer.text)).toContain('2 of 3 participants deleted')
  expect(mainText(answer.text)).toContain(`Grace Participant ${api.body.errors.participant[0]}`)
  expect((await owner.client.get('/participants?sort=created_at')).body.data).toMatchObject([
    { full_name: 'Grace' },
  ])
  const events = (await owner.client.get('/events?filter[event_type]=participant.deleted')).body
  expect(events.meta.total).toBe(2)
})

it('delete selected exports: not those of records that the user cannot view', async () => {
  const owner = await newOwner(app)
  const create = async (resource: string): Promise<Body> =>
    (await owner.client.post('/exports', { resource, format: 'csv' })).body
  const exports = [await create('tasks'), await create('payments')]
  const visits = await memberWith(app, owner.account, { exports: 'write', tasks: 'read' })
  const { answer } = await act({ ...owner, visits }, 'exports/delete', exports)
  expect(mainText(answer.text)).toMatch(/1 of 2 exports deleted .* You do not have access/)
  expect((await owner.client.get('/exports')).body.data).toMatchObject([{ resource: 'payments' }])
})

describe('export what a list shows', () => {
  it('a filtered list: the formats with their explanations, and a file with these records', async () => {
    const owner = await newOwner(app)
    const people: Body[] = []
    for (const status of ['active', 'inactive', 'archived', 'active'])
      people.push(await newParticipant(owner.client, { full_name: status, status }))
    const list = '/records/participants?filter[status]=inactive,archived'
    const path = pathOfLink((await owner.visits.get(`${list}&sort=email`)).text, 'Export these')
    expect(path).toBe('/records/participants/export?filter[status]=inactive,archived')
    const page = await owner.visits.get(path ?? '')
    const text = mainText(page.text)
    expect(text).toContain('Export 2 participants')
    for (const format of ['CSV for spreadsheets', 'CSV unchanged', 'JSON', 'Excel'])
      expect(text).toContain(format)
    const answer = await owner.visits.post('/records/exports/new', fieldsOf(page.text, 'json'))
    const id = answer.to?.split('/').at(-1) ?? ''
    await writeExportFile(app, id)
    const file = await owner.visits.get(`/records/exports/${id}/file`)
    expect(JSON.parse(file.text).map(({ full_name }: Body) => full_name)).toEqual([
      'inactive',
      'archived',
    ])
  })

  it('100 selected rows: a file with these records', async () => {
    const owner = await newOwner(app)
    const items = Array.from({ length: 101 }, (_, index) => ({
      action: 'create',
      data: { full_name: `Person ${index}` },
    }))
    const results = [items.slice(0, 100), items.slice(100)].map(
      async (part) =>
        (await owner.client.post('/participants/batch', { items: part })).body.results,
    )
    const people = (await Promise.all(results)).flat().map(({ record }) => record)
    const selected = people.slice(0, 100)
    const boxes = selected.map(({ id }): [string, string] => ['filter[id]', id])
    const page = await owner.visits.get(
      `/records/participants/export?${new URLSearchParams(boxes)}`,
    )
    expect(mainText(page.text)).toMatch(/Export 100 participants .*ID: 100 selected/)
    const answer = await owner.visits.post('/records/exports/new', fieldsOf(page.text, 'csv'))
    const id = answer.to?.split('/').at(-1) ?? ''
    await writeExportFile(app, id)
    expect((await owner.client.get(`/exports/${id}`)).body).toMatchObject({ row_count: 100 })
  })

  /** The fields of the form with this format. */
  function fieldsOf(page: string, format: string): Record<string, string> {
    const forms = [...page.matchAll(/<form[^>]*>[\s\S]*?<\/form>/g)].map(([form]) => form)
    const form = forms.find((one) => one.includes(`name="format" value="${format}"`)) ?? ''
    const fields = form.matchAll(/name="([^"]+)" value="([^"]*)"/g)
    return Object.fromEntries(
      [...fields].map(([, name, value = '']) => [name, unescapeHtml(value)]),
    )
  }
})
