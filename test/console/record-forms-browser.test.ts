/** The forms of records in a browser: what changes in place, and what stays. */
import { describe, expect, it } from 'vitest'
import { newJob, newParticipant } from '../handlers/new-records.ts'
import { newSite } from './site.ts'

describe('the form of a record in a browser', () => {
  const site = newSite()

  it('adds and removes groups in place, and keeps the typed text', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await using visited = await site.visit('/records/jobs/new', { person: account })
    const { page, troubles } = visited
    await page.getByLabel('Title').fill('Driver')
    await page.getByText('Key for the API').click()
    await page.getByLabel('Key').fill('first')
    await page.getByRole('button', { name: 'Add another' }).click()
    const second = page.getByRole('group', { name: 'Screening question 2' })
    await second.waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe(
      await second.getByLabel('Question').getAttribute('id'),
    )
    await second.getByText('Key for the API').click()
    await second.getByLabel('Key').fill('second')
    await page.getByRole('button', { name: 'Remove screening question 1' }).click()
    await second.waitFor({ state: 'detached' })
    expect(await page.getByLabel('Key').inputValue()).toBe('second')
    expect(await page.getByLabel('Title').inputValue()).toBe('Driver')
    expect(page.url()).toBe(`${site.app.url}/console/records/jobs/new`)
    await page.getByRole('button', { name: 'Remove screening question 1' }).click()
    await page
      .locator('[name="screening_questions.0.key"][value=""]')
      .waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Create job' }).last().click()
    await page.getByRole('heading', { name: 'Driver' }).waitFor()
    expect((await client.get('/jobs')).body.data[0]).toMatchObject({
      title: 'Driver',
      screening_questions: [],
    })
    expect(troubles).toEqual([])
  })

  it('keeps what the user types and chooses while other choices load', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await newParticipant(client, { full_name: 'Grace Hopper' })
    const job = await newJob(client, { title: 'Driver' })
    await using visited = await site.visit('/records/job-applications/new', { person: account })
    const { page, troubles } = visited
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    // Searches have a query.
    await page.route('**/job-applications/new', async (route) => {
      await released
      await route.continue()
    })
    for (const [field, name] of Object.entries({ Participant: 'Grace Hopper', Job: 'Driver' })) {
      await page.getByRole('combobox', { name: field }).fill(name)
      await page.getByRole('option', { name, selected: true }).waitFor()
      await page.getByRole('combobox', { name: field }).press('Enter')
    }
    await page.getByText('ID in your own system', { exact: true }).click()
    const text = page.getByLabel('External ID')
    await text.pressSequentially('crm-')
    release()
    for (const choice of ['Participant: Grace Hopper', 'Job: Driver'])
      await page.getByRole('button', { name: `Change ${choice}` }).waitFor()
    await page.keyboard.type('47')
    expect(await text.inputValue()).toBe('crm-47')
    await page.unroute('**/job-applications/new')
    await text.press('Enter')
    await page.getByRole('heading', { name: 'Driver, Grace Hopper' }).waitFor()
    expect((await client.get('/job-applications')).body.data[0]).toMatchObject({
      job_id: job.id,
      external_id: 'crm-47',
    })
    expect(troubles).toEqual([])
  })

  it('keeps what the user types into a field while the choice that it depends on loads', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/records/jobs/new', { person: account })
    const { page, troubles } = visited
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route(/ask:refresh/, async (route) => {
      await released
      await route.continue()
    })
    await page.getByLabel('Comparison').selectOption('At least')
    const expected = page.getByLabel('Expected answer', { exact: true })
    await expected.pressSequentially('1')
    release()
    await page.getByLabel('Kind of Expected answer').waitFor({ state: 'detached' })
    await page.keyboard.type('5')
    expect(await expected.inputValue()).toBe('15')
    expect(troubles).toEqual([])
  })

  it('changes no other question while one before it is removed, and keeps a choice made meanwhile', async () => {
    const account = await site.app.newAccount()
    await using visited = await site.visit('/records/jobs/new', { person: account })
    const { page, troubles } = visited
    const question = (number: number) =>
      page.getByRole('group', { name: `Screening question ${number}` })
    const text = (number: number) => question(number).getByLabel('Question')
    const addAnother = page.getByRole('button', { name: 'Add another' })
    await text(1).fill('First?')
    for (const number of [2, 3]) {
      await addAnother.click()
      await text(number).fill(`Number ${number}?`)
    }
    let { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/jobs/new', async (route) => {
      await released
      await route.continue()
    })
    await page.getByRole('button', { name: 'Remove screening question 1' }).click()
    await text(2).fill('Typed meanwhile?')
    release()
    await question(3).waitFor({ state: 'detached' })
    expect(await text(2).inputValue()).toBe('Number 3?')

    ;({ promise: released, resolve: release } = Promise.withResolvers<void>())
    await addAnother.click()
    const importance = question(1).getByLabel('Importance')
    await importance.selectOption('Must have')
    release()
    await question(3).waitFor()
    expect(await importance.inputValue()).toBe('must_have')
    expect(troubles).toEqual([])
  })

  it('shows the inputs of the selected operator in place, and keeps the typed text', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await using visited = await site.visit('/records/jobs/new', { person: account })
    const { page, troubles } = visited
    await page.getByLabel('Title').fill('Driver')
    await page.getByLabel('Question').fill('Years?')
    await page.getByLabel('Importance').selectOption('Must have')
    const kind = page.getByLabel('Kind of Expected answer')
    const expected = page.getByLabel('Expected answer', { exact: true })
    await expected.fill('5')
    await page.getByLabel('Comparison').selectOption('At least')
    await kind.waitFor({ state: 'detached' })
    expect(await expected.inputValue()).toBe('5')
    await page.getByLabel('Comparison').selectOption('One of')
    await kind.waitFor()
    expect(await kind.inputValue()).toBe('number')
    expect(await expected.inputValue()).toBe('5')
    await expected.fill('5\n6')
    await page.getByRole('button', { name: 'Create job' }).last().click()
    await page.getByRole('heading', { name: 'Driver' }).waitFor()
    expect((await client.get('/jobs')).body.data[0].screening_questions).toMatchObject([
      { key: 'years', operator: 'one_of', expected: [5, 6] },
    ])
    expect(troubles).toEqual([])
  })
})
