/** The page of a record. */
import { describe, expect, it } from 'vitest'
import {
  type Body,
  expectSuccess,
  newApplication,
  newJob,
  newParticipant,
  newPayment,
  newTask,
} from '../handlers/new-records.ts'
import { sharedApp } from '../helpers.ts'
import { mainText, submitForm } from './forms.ts'
import { newOwner, QUESTIONS } from './record-forms.ts'

const app = sharedApp()

describe('the page of a record', () => {
  it('shows its fields and events, the records that refer to it, and the names of those that it refers to', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client, { tags: ['vip'], email: 'ada@example.com' })
    const job = await newJob(client, { screening_questions: QUESTIONS, description: 'Two\nlines' })
    const application = await newApplication(client, {
      job_id: job.id,
      participant_id: ada.id,
      answers: { french: false, extra: 'x' },
    })
    const tasks: Body[] = []
    for (let i = 0; i < 7; i++)
      tasks.push(await newTask(client, { title: `Task ${i}`, participant_id: ada.id }))
    const payment = await newPayment(client, { participant_id: ada.id, task_id: tasks[0].id })

    const person = await visits.get(`/records/participants/${ada.id}`)
    const text = mainText(person.text)
    for (const part of [ada.id, 'ada@example.com', 'vip', 'Active', 'participant.created'])
      expect(text).toContain(part)
    expect(text).toMatch(/Tasks 7 See all New task Task .* Task 6 /)
    expect(text).not.toContain('Task 1')
    expect(person.text).toContain(`href="/console/records/tasks?filter[participant_id]=${ada.id}"`)
    expect(person.text).toContain(
      `href="/console/records/job-applications/${application.id}">Interpreter</a>`,
    )
    expect(person.text).toContain(`href="/console/records/payments/${payment.id}">€125.00</a>`)
    expect(text).toMatch(/Payments 1 New payment Amount Task Status Created €125\.00 Task 0 /)
    expect(person.text).toContain(`href="/console/records/tasks/new?participant_id=${ada.id}"`)

    const applied = await visits.get(`/records/job-applications/${application.id}`)
    expect(applied.text).toContain(`<a href="/console/records/jobs/${job.id}">Interpreter</a>`)
    expect(mainText(applied.text)).toMatch(/French\? No extra x/)
    expect(mainText((await visits.get(`/records/jobs/${job.id}`)).text)).toMatch(
      /Screening questions 2 .*Years\? Nice to have Equals 5 years/,
    )
    const paid = await visits.get(`/records/payments/${payment.id}`)
    expect(paid.text).toContain(`<a href="/console/records/tasks/${tasks[0].id}">Task 0</a>`)
    const list = await visits.get('/records/payments')
    expect(list.text).toContain(`href="/console/records/payments/${payment.id}">Ada Lovelace</a>`)
    expect(list.text).toContain(`<a href="/console/records/tasks/${tasks[0].id}">Task 0</a>`)
    const applications = await visits.get('/records/job-applications')
    expect(mainText(applications.text)).toMatch(/Ada Lovelace Submitted Interpreter /)
    expect(mainText(paid.text)).toMatch(/Amount €125\.00 /)
    expect(mainText(paid.text)).not.toContain('minor')
  })

  it('its history says what each field was before and after', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client)
    const task = await newTask(client, { title: 'Call', description: 'x'.repeat(3_000) })
    const changes = { title: 'Call back', participant_id: ada.id, description: 'Short' }
    await expectSuccess(client.patch(`/tasks/${task.id}`, { status: 'in_progress' }))
    await expectSuccess(client.patch(`/tasks/${task.id}`, changes))
    const { text } = await visits.get(`/records/tasks/${task.id}`)
    const [, history = ''] = mainText(text).split('History')
    expect(history).toContain('Updated Status: Open to In progress')
    expect(history).toContain('Title: Call to Call back')
    expect(history).toContain('Participant: – to Ada Lovelace')
    // One of its values was too large to be stored.
    expect(history).toMatch(/Description (?!:)/)

    const note = await newTask(client, { description: 'Call' })
    for (const description of ['Call back', 'x'.repeat(3_000)])
      await expectSuccess(client.patch(`/tasks/${note.id}`, { description }))
    const noted = mainText((await visits.get(`/records/tasks/${note.id}`)).text)
    expect(noted).toContain('Description: Call to Call back')

    for (const tags of [
      ['a', 'b', 'c'],
      ['a', 'b', 'd'],
    ])
      await expectSuccess(client.patch(`/participants/${ada.id}`, { tags }))
    const tagged = mainText((await visits.get(`/records/participants/${ada.id}`)).text)
    expect(tagged).toContain('Tags: a b c to a b d')

    const payment = await newPayment(client, { amount_minor: 12500, currency: 'EUR' })
    for (const change of [{ amount_minor: 13000 }, { currency: 'JPY' }])
      await expectSuccess(client.patch(`/payments/${payment.id}`, change))
    const paid = mainText((await visits.get(`/records/payments/${payment.id}`)).text)
    expect(paid).toContain('Amount: €125.00 to €130.00')
    expect(paid).toContain('Currency: EUR to JPY')
  })

  it('marks an unfinished task after it was due, in the list too', async () => {
    const { client, visits } = await newOwner(app)
    const late = await newTask(client, { due_at: '2020-01-31T12:00:00Z' })
    const isMarked = async (): Promise<boolean[]> => {
      const pages = ['/records/tasks', `/records/tasks/${late.id}`].map((path) => visits.get(path))
      return (await Promise.all(pages)).map(({ text }) => mainText(text).includes('Overdue'))
    }
    expect(await isMarked()).toEqual([true, true])
    for (const change of [{ due_at: '2999-01-31T12:00:00Z' }, { status: 'in_progress' }]) {
      await expectSuccess(client.patch(`/tasks/${late.id}`, change))
      expect(await isMarked()).toEqual([false, false])
    }
    await expectSuccess(client.patch(`/tasks/${late.id}`, { due_at: late.due_at }))
    expect(await isMarked()).toEqual([true, true])
    await expectSuccess(client.patch(`/tasks/${late.id}`, { status: 'completed' }))
    expect(await isMarked()).toEqual([false, false])
  })

  it.each([
    { amount_minor: 12500, currency: 'JPY', shown: '¥12,500' },
    { amount_minor: 12500, currency: 'HUF', shown: 'HUF\u00a0125.00' },
    { amount_minor: 1, currency: 'BHD', shown: 'BHD\u00a00.001' },
    { amount_minor: 999_999_999_999, currency: 'USD', shown: '$9,999,999,999.99' },
    { amount_minor: 5, currency: 'XCG', shown: '0.05' },
  ])(
    'shows $amount_minor of $currency as an amount, in the list too',
    async ({ shown, ...fields }) => {
      const { client, visits } = await newOwner(app)
      const payment = await newPayment(client, fields)
      for (const path of ['/records/payments', `/records/payments/${payment.id}`])
        expect((await visits.get(path)).text).toContain(shown)
    },
  )

  it('the deletion of a record with references: shows the error of the API, and changes nothing', async () => {
    const { client, visits } = await newOwner(app)
    const ada = await newParticipant(client)
    await newApplication(client, { participant_id: ada.id })
    const answer = await submitForm(visits, `/records/participants/${ada.id}/delete`, {})
    const api = await client.delete(`/participants/${ada.id}`)
    expect([answer.status, api.status]).toEqual([422, 422])
    expect(mainText(answer.text)).toContain(`Participant ${api.body.errors.participant[0]}`)
    expect((await client.get(`/participants/${ada.id}`)).status).toBe(200)
  })
})
