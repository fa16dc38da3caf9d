/** The records of the console in a browser, with and without JavaScript. */
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { type Body, eventsAbout, newParticipant, newPayment } from '../handlers/new-records.ts'
import type { Client } from '../helpers.ts'
import { countClicks } from './clicks.ts'
import { newSite, openFilters, SCREENS } from './site.ts'
import type { BrowserVisit } from './visitors.ts'

describe('records in a browser', () => {
  // The engine writes exports.
  const site = newSite({ role: 'all' })

  /** The only record of a list. */
  async function onlyRecord(client: Client, path: string): Promise<Body> {
    const { body } = await client.get(path)
    expect(body.meta.total).toBe(1)
    return body.data[0]
  }

  async function downloadExport({ page }: BrowserVisit): Promise<Buffer> {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download' }).click(),
    ])
    expect(download.suggestedFilename()).toMatch(/^participants-.*\.csv$/)
    return readFile(await download.path())
  }

  it('creates records and downloads an export', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await newParticipant(client, { full_name: 'Ada Byron', email: 'byron@example.com' })
    await using visited = await site.visit('/records/participants', {
      person: account,
      acceptDownloads: true,
    })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'New participant' }).first().click()
    await page.getByLabel('Full name').fill('Ada Lovelace')
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByLabel('Tags').fill('vip\nfrench')
    await page.getByRole('button', { name: 'Create participant' }).click()
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()

    // The search updates during typing, and selects no result by itself.
    await page.getByRole('link', { name: 'Tasks' }).click()
    await page.getByRole('link', { name: 'New task' }).first().click()
    await page.getByLabel('Title').fill('Send the welcome letter')
    await page.getByRole('combobox', { name: 'Participant' }).pressSequentially('ADA L')
    await page.getByRole('option', { name: 'Ada Lovelace' }).waitFor()
    await page.getByRole('option', { name: 'Ada Byron' }).waitFor({ state: 'detached' })
    await page.getByRole('option', { name: 'Ada Lovelace' }).click()
    await page.getByRole('button', { name: 'Change Participant: Ada Lovelace' }).waitFor()
    expect(await page.getByLabel('Title').inputValue()).toBe('Send the welcome letter')
    await page.getByLabel('Due').fill('2027-03-02T09:30')
    await page.getByText('2027-03-02 09:30').waitFor()
    await page.getByLabel('Title').press('Enter')
    await page.getByRole('heading', { name: 'Send the welcome letter' }).waitFor()
    const task = await onlyRecord(client, '/tasks')
    const ada = await onlyRecord(client, '/participants?filter[email]=ada@example.com')
    expect(task).toMatchObject({
      title: 'Send the welcome letter',
      participant_id: ada.id,
      due_at: '2027-03-02T09:30:00.000Z',
    })
    expect(ada.tags).toEqual(['vip', 'french'])
    expect(await eventsAbout(client, task.id)).toEqual(['task.created'])

    await page.getByRole('link', { name: 'Exports' }).click()
    await page.getByRole('link', { name: 'New export' }).first().click()
    await page.getByRole('radio', { name: 'Excel A workbook' }).check()
    await page.getByLabel('Records', { exact: true }).selectOption('Participants')
    await page.locator('summary', { hasText: 'Filters' }).click()
    await page.getByLabel('Tag', { exact: true }).fill('vip')
    expect(await page.getByRole('radio', { name: 'Excel A workbook' }).isChecked()).toBe(true)
    await page.locator('summary', { hasText: 'Columns' }).click()
    await page.getByLabel('JSON').check()
    await page.getByLabel('Phone').waitFor({ state: 'hidden' })
    await page.getByLabel('CSV for spreadsheets').check()
    await page.getByLabel('Phone').uncheck()
    await page.getByRole('button', { name: 'Create export' }).click()
    const file = await downloadExport(visited)
    expect((await page.locator('.page-head .lead').textContent())?.trim()).toBe('Completed')
    const record = await onlyRecord(client, '/exports')
    expect(record).toMatchObject({ status: 'completed', row_count: 1, filters: { tag: 'vip' } })
    expect(record.columns).toContain('email')
    expect(record.columns).not.toContain('phone')
    const api = await fetch(`${site.app.url}/public/v1/exports/${record.id}/file`, {
      headers: { Authorization: `Bearer ${account.key}` },
    })
    expect(file.equals(Buffer.from(await api.arrayBuffer()))).toBe(true)
    expect(file.toString()).toContain('Ada Lovelace')
    expect(troubles).toEqual([])
  })

  it.each(SCREENS)('creates a payment by keyboard at $viewport.width', async (screen) => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await newPayment(client, { currency: 'EUR' })
    const { id } = await newParticipant(client, { full_name: 'Grace Hopper' })
    await newParticipant(client, { full_name: 'Grace Kelly' })
    const path = '/records/payments'
    await using visited = await site.visit(path, { person: account, ...screen })
    const { page, troubles } = visited
    const clicks = await countClicks(page)
    await page.getByRole('link', { name: 'New payment' }).press('Enter')
    const participant = page.getByRole('combobox', { name: 'Participant' })
    await participant.press('Enter')
    await participant.pressSequentially('grace')
    await page.getByRole('option', { name: 'Grace Kelly', selected: true }).waitFor()
    // The form of a new participant begins with the typed name.
    await page.locator('a[href$="/participants/new?full_name=grace"]').waitFor()
    await participant.press('ArrowDown')
    await page.getByRole('option', { name: 'Grace Hopper', selected: true }).waitFor()
    await participant.press('Enter')
    const change = page.getByRole('button', { name: 'Change Participant: Grace Hopper' })
    await change.waitFor()
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe(
      'Change Participant: Grace Hopper',
    )
    expect(await page.locator('main').innerText()).not.toContain(id)
    await page.getByLabel('Amount').fill('1.049,90')
    await page.getByText('€1,049.90').waitFor()
    await page.getByLabel('Currency').selectOption('Bahraini Dinar (BHD)')
    await page.getByText('BHD 1,049.900').waitFor()
    await page.getByLabel('Amount').press('Enter')
    await page.getByRole('heading', { name: 'Grace Hopper, BHD 1,049.900' }).waitFor()
    expect(clicks()).toBe(4)
    const { body } = await client.get('/payments?filter[currency]=BHD')
    expect(body.data).toMatchObject([{ amount_minor: 1_049_900, participant_id: id }])
    expect(troubles).toEqual([])
  })

  it('chooses no result of an earlier text, and opens no list over the errors', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await newParticipant(client, { full_name: 'Grace Hopper' })
    await newParticipant(client, { full_name: 'Grace Kelly' })
    await using visited = await site.visit('/records/payments/new', { person: account })
    const { page, troubles } = visited
    await page.getByRole('button', { name: 'Create payment' }).last().click()
    await page.getByText('Participant is required.').waitFor()
    const participant = page.getByRole('combobox', { name: 'Participant' })
    expect(await participant.evaluate('document.activeElement.name')).toBe('participant_id')
    const list = page.getByRole('listbox', { name: 'Participants' })
    const options = list.getByRole('option')
    await participant.press('ArrowDown')
    await options.nth(1).waitFor()
    expect(await list.getByRole('option', { selected: true }).count()).toBe(0)

    // The first search ends after the user has typed on, and before the next search begins.
    await page.route(/ask:find/, async (route) => {
      await page.evaluate("document.activeElement.value = 'grace h'")
      await route.continue()
    })
    const response = page.waitForResponse(/ask:find/)
    await participant.fill('grace')
    await (await response).finished()
    await options.nth(1).waitFor()
    expect(await list.getByRole('option', { selected: true }).count()).toBe(0)
    await participant.press('Enter')
    expect(await participant.inputValue()).toBe('grace h')
    await page.unroute(/ask:find/)
    await participant.press('End')
    await participant.pressSequentially('o')
    await page.getByRole('option', { name: 'Grace Hopper', selected: true }).waitFor()
    await participant.press('Enter')
    await page.getByRole('button', { name: 'Change Participant: Grace Hopper' }).waitFor()
    // The 422 above is intended.
    expect(troubles).toEqual([expect.stringContaining('422')])
  })

  it('Enter in a filter chooses no record from the list of another filter', async () => {
    const account = await site.app.newAccount()
    await newParticipant(site.app.as(account))
    await using visited = await site.visit('/records/payments', { person: account })
    const { page, troubles } = visited
    await page.getByRole('combobox', { name: 'Participant' }).click()
    const participants = page.getByRole('listbox', { name: 'Participants' })
    await participants.getByRole('option').waitFor()
    await page.getByText('More filters').click()
    await page.getByLabel('External ID').fill('crm-1')
    await page.getByLabel('External ID').press('Enter')
    await page.getByRole('link', { name: 'Remove the filter External ID: crm-1' }).waitFor()
    expect(await page.locator('.filter-chips li').count()).toBe(1)
    expect(troubles).toEqual([])
  })

  it('sets a filter without moving the filter bar, and offers once to clear the filters', async () => {
    const person = await site.app.newAccount()
    const [{ viewport }] = SCREENS
    await using visited = await site.visit('/records/payments', { person, viewport })
    const { page, troubles } = visited
    const button = page.locator('.filters').getByRole('button', { name: 'Filter' })
    const before = await button.boundingBox()
    await page.getByLabel('Paid').check()
    await button.click()
    await page.getByText('Nothing matches').waitFor()
    expect(await button.boundingBox()).toEqual(before)
    await page.getByRole('link', { name: 'Clear filters' }).click()
    await page.getByText('No payments yet').waitFor()
    expect(await page.getByRole('link', { name: 'Clear filters' }).count()).toBe(0)
    expect(troubles).toEqual([])
  })

  it.each(SCREENS)(
    'filters, changes and exports payments by keyboard at $viewport.width',
    async (screen) => {
      const account = await site.app.newAccount()
      const client = site.app.as(account)
      const grace = await newParticipant(client, { full_name: 'Grace Hopper' })
      for (let i = 0; i < 2; i++) await newPayment(client, { participant_id: grace.id })
      await newPayment(client)
      await using visited = await site.visit('/records/payments', { person: account, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      const participant = page.getByRole('combobox', { name: 'Participant' })
      expect(await participant.isVisible()).toBe(screen.viewport.width > 640)
      await openFilters(page)
      await participant.pressSequentially('grace')
      await page.getByRole('option', { name: 'Grace Hopper', selected: true }).waitFor()
      await participant.press('Enter')
      await page.getByText('2 payments').waitFor()
      await page.getByRole('link', { name: 'Remove the filter Participant: Grace' }).waitFor()
      expect(await page.locator('.fold > summary').textContent()).toBe('Filters 1')

      const rows = page.getByRole('checkbox', { name: 'Select Grace Hopper' })
      await rows.first().press('Space')
      await page.getByText('1 selected').waitFor()
      await page.locator('[data-select-all]').press('Space')
      await page.getByText('2 selected').waitFor()
      await assertReadable(page, 'a list with selected rows')
      await page.getByRole('button', { name: 'Set status' }).press('Enter')
      await page.getByRole('heading', { name: 'Set the status of 2 payments' }).waitFor()
      await assertReadable(page, 'the status of selected rows')
      await page.getByRole('radio', { name: 'Paid Paid.' }).press('Space')
      await page.getByRole('button', { name: 'Set status of 2 payments' }).press('Enter')
      await page.getByText('2 payments set to Paid.').waitFor()
      await page.getByRole('link', { name: 'Remove the filter Participant: Grace' }).waitFor()
      const { data } = (await client.get('/payments?sort=created_at')).body
      expect(data.map(({ status }: Body) => status)).toEqual(['paid', 'paid', 'pending'])

      const before = clicks()
      await page.getByRole('link', { name: 'Export these' }).press('Enter')
      await page.getByRole('heading', { name: 'Export 2 payments' }).waitFor()
      await assertReadable(page, 'the formats of an export')
      await page.getByRole('button', { name: 'Export as JSON' }).press('Enter')
      await page.getByRole('heading', { name: 'Payments, JSON' }).waitFor()
      expect(clicks() - before).toBe(2)
      expect(await onlyRecord(client, '/exports')).toMatchObject({
        filters: { participant_id: grace.id },
      })
      expect(troubles).toEqual([])
    },
  )

  it('creates records and downloads an export without JavaScript', async () => {
    const account = await site.app.newAccount()
    const client = site.app.as(account)
    await newParticipant(client, { full_name: 'Ada Byron' })
    await using visited = await site.visit('/records/participants', {
      person: account,
      javaScriptEnabled: false,
      acceptDownloads: true,
    })
    const { page, troubles } = visited
    await page.getByRole('link', { name: 'New participant' }).first().click()
    await page.getByRole('button', { name: 'Create participant' }).last().click()
    await page.getByText('Full name is required.').waitFor()
    await page.getByLabel('Full name').fill('Ada Lovelace')
    await page.getByLabel('Full name').press('Enter')
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()

    await page.getByRole('link', { name: 'Jobs', exact: true }).click()
    await page.getByRole('link', { name: 'New job' }).first().click()
    await page.getByLabel('Title').fill('Interpreter')
    await page.getByLabel('Status').selectOption('Open')
    await page.getByRole('button', { name: 'Add another' }).click()
    for (const [index, key] of ['french', 'years'].entries()) {
      const group = page.getByRole('group', { name: `Screening question ${index + 1}` })
      await group.getByLabel('Question').fill(`${key}?`)
      await group.getByLabel('Importance').selectOption('Must have')
      await group.getByLabel('Kind of Expected').selectOption(index === 0 ? 'Yes' : 'Number')
      if (index === 1) await group.getByLabel('Expected answer', { exact: true }).fill('5')
    }
    await page.getByRole('button', { name: 'Create job' }).last().click()
    await page.getByRole('heading', { name: 'Interpreter' }).waitFor()
    expect((await onlyRecord(client, '/jobs')).screening_questions).toMatchObject([
      { key: 'french', expected: true },
      { key: 'years', expected: 5 },
    ])

    await page.getByRole('link', { name: 'New job application' }).click()
    await page.getByRole('combobox', { name: 'Participant' }).fill('lovelace')
    await page.getByRole('button', { name: 'Find the participant' }).click()
    await page.getByRole('option', { name: 'Ada Lovelace' }).click()
    await page.getByLabel('french?').selectOption('Yes')
    await page.getByLabel('years?').fill('5')
    await page.getByRole('button', { name: 'Create job application' }).last().click()
    await page.getByRole('heading', { name: 'Interpreter, Ada Lovelace' }).waitFor()
    const application = await onlyRecord(client, '/job-applications')
    expect(application).toMatchObject({
      answers: { french: true, years: 5 },
      screening_outcome: 'meets_all',
    })

    await page.getByRole('link', { name: 'Exports' }).click()
    await page.getByRole('link', { name: 'New export' }).first().click()
    await page.getByLabel('Records', { exact: true }).selectOption('Participants')
    await page.getByRole('button', { name: 'Update form' }).click()
    await page.locator('summary', { hasText: 'Filters' }).click()
    await page.locator('main').getByLabel('Search').fill('byron')
    await page.getByLabel('CSV for spreadsheets').check()
    await page.getByRole('button', { name: 'Create export' }).last().click()
    await page.getByRole('heading', { name: 'Participants, CSV' }).waitFor()
    while ((await page.getByRole('link', { name: 'Download' }).count()) === 0) await page.reload()
    const file = (await downloadExport(visited)).toString()
    expect(file).toContain('Ada Byron')
    expect(file).not.toContain('Lovelace')
    // The 422 above is intended.
    expect(troubles).toEqual([expect.stringContaining('422')])
  })
})
