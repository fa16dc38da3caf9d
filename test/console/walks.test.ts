/** Tasks of a user by keyboard, and the clicks that they cost: see clicks.ts. */
import type { Page } from 'playwright-core'
import { describe, expect, inject, it } from 'vitest'
import { newApplication, newJob, newParticipant, newPayment } from '../handlers/new-records.ts'
import { until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { NEVER } from '../webhooks/harness.ts'
import { countClicks } from './clicks.ts'
import { newWebhookAdmin } from './hooks.ts'
import { follow, newSite, SCREENS } from './site.ts'
import { storeDeliveries } from './stored-deliveries.ts'
import { newAccountWithPassword, newConsoleUser, PASSWORD, TOKEN_PATTERN } from './visitors.ts'

const site = newSite({ role: 'all', environment: { WEBHOOK_RETRY_DELAYS: NEVER } })
const { app } = site

/** Chooses the option of a combobox that the text finds. */
async function choose(page: Page, label: string, text: string, found: string): Promise<void> {
  const input = page.getByRole('combobox', { name: label })
  await input.pressSequentially(text)
  await page.getByRole('option', { name: found, selected: true }).waitFor()
  await input.press('Enter')
  await page.getByRole('button', { name: `Change ${label}: ${found}` }).waitFor()
}

// The browser is the subject, not the database.
describe.runIf(inject('database') === 'sqlite').each(SCREENS)(
  'by keyboard at $viewport.width px',
  (screen) => {
    it('sees an outage on the overview, its cause, and retries one delivery and all', async () => {
      await using receiver = await startReceiver({
        answers: [{ status: 500, body: 'disk full' }],
        // The body of the stored delivery is no event.
        validate: false,
      })
      const admin = await newWebhookAdmin(app)
      const id = await admin.subscribe(receiver.url)
      await storeDeliveries(admin, id, [{ hoursAgo: 1, state: 'failed' }])
      await admin.emit(3)
      await until('the attempts are counted', async () =>
        (await admin.visitor.get('')).text.includes('Failing'),
      )
      await using visited = await site.visit('', { person: admin.manager, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.locator('#last-day').getByText('Failing').first().waitFor()
      expect(clicks()).toBe(0)
      await page.locator('#last-day').getByRole('link', { name: '127.0.0.1' }).press('Enter')
      const row = page.locator('.log tbody').first()
      await row.getByRole('link').press('Enter')
      await page.getByText('disk full').waitFor()
      expect(clicks()).toBe(2)
      await row.getByRole('button', { name: 'Retry now' }).press('Enter')
      await page.getByText('Retrying now.').waitFor()
      expect(clicks()).toBe(3)
      await page.getByRole('link', { name: 'Retry failed deliveries' }).press('Enter')
      await page.getByText('1 delivery').waitFor()
      await page.getByRole('button', { name: 'Retry failed deliveries' }).press('Enter')
      await page.getByRole('progressbar').waitFor()
      expect(clicks()).toBe(5)
      expect(troubles).toEqual([])
    })

    it('rotates a secret', async () => {
      const admin = await newWebhookAdmin(app)
      const id = await admin.subscribe('https://example.com/')
      const path = `/webhooks/${id}/settings`
      await using visited = await site.visit(path, { person: admin.manager, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.getByRole('link', { name: 'View or rotate' }).press('Enter')
      await page.getByRole('button', { name: 'Prepare new secret' }).press('Enter')
      await page.getByRole('link', { name: 'Done' }).press('Enter')
      await page.getByRole('button', { name: 'Activate' }).press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).press('Enter')
      await page.getByText('New secret activated.').waitFor()
      expect(clicks()).toBe(5)
      expect(troubles).toEqual([])
    })

    it('creates a key, invites an Admin for webhooks only, and transfers the ownership', async () => {
      const owner = await newAccountWithPassword(app)
      const jonas = await newConsoleUser(app, owner.accountId, { fullName: 'Jonas Weber' })
      await using visited = await site.visit('', { person: owner, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await follow(page, 'API keys')
      await page.getByRole('link', { name: 'Create API key' }).press('Enter')
      await page.getByLabel('Name').fill('Storefront')
      await page.getByLabel('Name').press('Enter')
      await page.getByText(TOKEN_PATTERN).first().waitFor()
      expect(clicks()).toBe(3)

      await follow(page, 'People')
      await page.getByRole('link', { name: 'Invite a teammate' }).first().press('Enter')
      await page.getByLabel('Name').fill('Aiko Tanaka')
      await page.getByLabel('Email').fill(`aiko.${owner.userId}@northwind.example`)
      await page.getByLabel('Admin').press('Space')
      await page.getByRole('group', { name: 'Can manage' }).getByLabel('Webhooks').press('Space')
      await page.getByRole('button', { name: 'Create invite link' }).press('Enter')
      await page.getByRole('group', { name: 'link' }).waitFor()
      expect(clicks()).toBe(3 + 5)

      await follow(page, 'Settings')
      await page.getByLabel('New Owner').selectOption(jonas.userId)
      await page.getByLabel('Your password').fill(PASSWORD)
      await page.getByLabel('Your password').press('Enter')
      await page.getByText('Jonas Weber is now the Account Owner').waitFor()
      expect(clicks()).toBe(3 + 5 + 3)
      expect(troubles).toEqual([])
    })

    it('creates a job with two questions', async () => {
      const account = await app.newAccount()
      await using visited = await site.visit('/records/jobs', { person: account, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.getByRole('link', { name: 'New job' }).first().press('Enter')
      await page.getByLabel('Title').fill('Interpreter')
      await page.getByRole('button', { name: 'Add another' }).press('Enter')
      await page.getByRole('group', { name: 'Screening question 2' }).waitFor()
      for (const [index, question] of ['Do you speak French?', 'Do you travel?'].entries()) {
        const group = page.getByRole('group', { name: `Screening question ${index + 1}` })
        await group.getByLabel('Question').fill(question)
        await group.getByLabel('Kind of Expected answer').selectOption('Yes')
        await group.getByLabel('Importance').selectOption('Must have')
      }
      await page.getByRole('button', { name: 'Create job' }).last().press('Enter')
      await page.getByRole('heading', { name: 'Interpreter' }).waitFor()
      expect(clicks()).toBe(7)
      const { data } = (await app.as(account).get('/jobs')).body
      expect(data[0].screening_questions).toMatchObject([
        { key: 'do_you_speak_french', expected: true },
        { key: 'do_you_travel', expected: true },
      ])
      expect(troubles).toEqual([])
    })

    it('shortlists an application, accepts it, and marks a payment as paid', async () => {
      const account = await app.newAccount()
      const client = app.as(account)
      const application = await newApplication(client)
      const payment = await newPayment(client)
      const path = `/records/job-applications/${application.id}`
      await using visited = await site.visit(path, { person: account, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.getByRole('button', { name: 'Shortlist' }).press('Enter')
      await page.getByText('Status set to Shortlisted.').waitFor()
      expect(clicks()).toBe(1)
      const confirm = async (name: string): Promise<void> => {
        await page.getByRole('button', { name }).press('Enter')
        await page.getByRole('dialog').getByRole('button', { name }).press('Enter')
      }
      await confirm('Accept')
      await page.getByText('Status set to Accepted.').waitFor()
      expect(clicks()).toBe(1 + 2)

      await follow(page, 'Payments')
      await page.getByRole('link', { name: 'Ada Lovelace', exact: true }).first().press('Enter')
      await confirm('Mark as paid')
      await page.getByText('Status set to Paid.').waitFor()
      expect(clicks()).toBe(1 + 2 + 4)
      expect((await client.get(`/payments/${payment.id}`)).body.status).toBe('paid')
      expect(troubles).toEqual([])
    })

    it('creates an application, finds a record, and edits it although a colleague did', async () => {
      const account = await app.newAccount()
      const client = app.as(account)
      const { id } = await newParticipant(client, { full_name: 'Grace Hopper' })
      await newJob(client, { title: 'Interpreter' })
      const path = '/records/job-applications'
      await using visited = await site.visit(path, { person: account, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.getByRole('link', { name: 'New job application' }).first().press('Enter')
      await choose(page, 'Job', 'inter', 'Interpreter')
      await choose(page, 'Participant', 'grace', 'Grace Hopper')
      await page.getByRole('button', { name: 'Create job application' }).last().press('Enter')
      await page.getByRole('heading', { name: 'Interpreter, Grace Hopper' }).waitFor()
      expect(clicks()).toBe(4)

      await follow(page, 'Participants')
      await page.getByRole('heading', { name: 'Participants' }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('hopper')
      await page.keyboard.press('Enter')
      await page.getByRole('link', { name: 'Remove the filter Search: hopper' }).waitFor()
      expect(clicks()).toBe(4 + 2)

      await page.getByRole('link', { name: 'Grace Hopper', exact: true }).press('Enter')
      await page.getByRole('link', { name: 'Edit' }).press('Enter')
      await page.getByLabel('Full name').fill('Rear Admiral Grace Hopper')
      await client.patch(`/participants/${id}`, { full_name: 'Grace M. Hopper' })
      await page.getByLabel('Full name').press('Enter')
      await page.getByText('Grace M. Hopper').first().waitFor()
      await page.getByLabel('Full name').press('Enter')
      await page.getByRole('heading', { name: 'Rear Admiral Grace Hopper' }).waitFor()
      expect(clicks()).toBe(4 + 2 + 4)
      // The page of the conflict has the status 409.
      expect(troubles).toEqual([expect.stringContaining('409')])
    })
  },
)
