/** The overview: requests and deliveries of the last day, and the first steps of a new account. */
import { randomUUID } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { describe, expect, it } from 'vitest'
import { type CountedAttempt, countAttempts } from '../../records/attempt-counts.ts'
import { transaction } from '../../records/database/transaction.ts'
import type { DeliveryState } from '../../records/deliveries.ts'
import { newSecret, sealSecret } from '../../webhooks/transport/secret.ts'
import { assertReadable } from '../browser.ts'
import { type TestAccount, until } from '../helpers.ts'
import { figuresOf, pathOfLink, plainText, tableOf } from './forms.ts'
import { DAY, HOUR, logRequests, MINUTE, NOW } from './logged-requests.ts'
import { newSite, SCREENS } from './site.ts'
import { inEveryModule, memberWith, newConsoleUser, visitor } from './visitors.ts'

const RATE_LIMIT = 10

describe('the overview', () => {
  const site = newSite({
    now: () => new Date(NOW),
    environment: { RATE_LIMIT_PER_MINUTE: String(RATE_LIMIT) },
    config: { baseUrl: 'http://api.example.com' },
  })
  const { app } = site

  async function newWebhook({ accountId }: TestAccount, description: string): Promise<string> {
    const id = uuidv7()
    const sealed = sealSecret(app.config.secretKeys.newest(), id, newSecret())
    await app.db.write('webhooks').insert({
      id,
      account_id: accountId,
      url: 'https://example.com/in',
      description,
      event_types: '["*"]',
      enabled: true,
      ordering: 'none',
      secret_encrypted: sealed,
      created_at: NOW,
      updated_at: NOW,
    })
    return id
  }

  /** Counts attempts, and stores a delivery for each. By default a success is delivered, and a
   *  failure is retrying. */
  async function newAttempts(
    { accountId }: TestAccount,
    webhookId: string,
    inputs: { succeeded: boolean; at: number; state?: DeliveryState }[],
  ): Promise<void> {
    const rows = inputs.map(({ succeeded, at, state = succeeded ? 'delivered' : 'retrying' }) => ({
      id: uuidv7({ msecs: at }),
      account_id: accountId,
      webhook_id: webhookId,
      event_type: 'task.created',
      body: Buffer.from('{}'),
      state,
      attempts: 1,
      created_at: at,
      updated_at: at,
    }))
    await app.db.write('deliveries').insert(rows)
    const attempts = inputs.map(
      ({ succeeded, at }): CountedAttempt => ({
        accountId,
        webhookId,
        endedAt: at,
        durationMs: 20,
        outcome: succeeded ? 'success' : 'http_error',
        status: succeeded ? 200 : 500,
      }),
    )
    await transaction(app.db, (trx) => countAttempts(trx, attempts))
  }

  const repeat = <T>(count: number, create: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => create(index))

  it('shows the requests of the last 24 hours', async () => {
    const account = await app.newAccount()
    const other = await app.newAccount()
    await logRequests(
      app,
      other,
      repeat(5, () => ({ status: 500 })),
    )
    await logRequests(app, account, [
      ...repeat(6, () => ({ status: 200, at: NOW - 2 * HOUR })),
      { status: 404, at: NOW - 20 * HOUR },
      { status: 503, at: NOW - MINUTE },
      { status: 503, at: NOW - DAY - HOUR },
    ])
    const { text } = await (await visitor(app, account)).get('')
    expect(figuresOf(text)).toMatchObject({ Requests: '8', Errors: '25 %' })
    // Responses with 2xx, 4xx and 5xx, by time.
    expect(tableOf(text, 'Requests').map(([, ...counts]) => counts)).toEqual([
      ['0', '1', '0'],
      ['6', '0', '0'],
      ['0', '0', '1'],
    ])
  })

  it('shows attempts by hour, and webhooks in trouble first', async () => {
    const account = await app.newAccount()
    const [well, badly, worse] = [
      await newWebhook(account, 'Well'),
      await newWebhook(account, 'Badly'),
      await newWebhook(account, 'Worse'),
    ]
    const hour = NOW - (NOW % HOUR)
    await newAttempts(account, well, [
      // Before the period.
      { succeeded: false, at: hour - 23 * HOUR - 1 },
      { succeeded: true, at: hour - 1 },
      ...repeat(4, () => ({ succeeded: true, at: hour })),
    ])
    await newAttempts(account, badly, [
      { succeeded: false, at: hour - 23 * HOUR, state: 'failed' },
      { succeeded: true, at: hour - 23 * HOUR },
    ])
    await newAttempts(account, worse, [
      { succeeded: true, at: hour },
      ...repeat(3, () => ({ succeeded: false, at: hour + 1 })),
    ])
    const other = await app.newAccount()
    await newAttempts(other, await newWebhook(other, 'Theirs'), [{ succeeded: false, at: hour }])

    const owner = await visitor(app, account)
    const { text } = await owner.get('')
    expect(figuresOf(text)).toMatchObject({ 'Webhook attempts': '11', 'Failed deliveries': '1' })
    expect(pathOfLink(text, '1')).toBe('/deliveries')
    expect(text.split(`href="/console/webhooks/${badly}?state=failed"`)).toHaveLength(2)
    // Successful and failed attempts, by hour.
    expect(tableOf(text, 'Webhook attempts').map(([, ...counts]) => counts)).toEqual([
      ['1', '1'],
      ['1', '0'],
      ['5', '3'],
    ])
    // Name and health, attempts, success rate, waiting and failed deliveries.
    expect(tableOf(text, 'Webhooks')).toEqual([
      ['Worse Failing', 'Attempts by hour: 1 succeeded, 3 failed', '25 %', '3', '0'],
      ['Badly Healthy', 'Attempts by hour: 1 succeeded, 1 failed', '50 %', '0', '1'],
      ['Well Healthy', 'Attempts by hour: 5 succeeded, 0 failed', '100 %', '1', '0'],
    ])
    const list = tableOf((await owner.get('/webhooks')).text, 'Webhooks')
    expect(list.map(([name = '']) => name.split(' ')[0])).toEqual(['Worse', 'Badly', 'Well'])
    expect(text).toContain(`href="/console/webhooks/${worse}?state=retrying"`)
    expect(text).not.toContain('Theirs')
  })

  it('the number of waiting deliveries links to them, also if they are pending', async () => {
    const account = await app.newAccount()
    const id = await newWebhook(account, 'Slow')
    await newAttempts(account, id, [{ succeeded: true, at: NOW, state: 'pending' }])
    const { text } = await (await visitor(app, account)).get('')
    expect(text).toContain(`href="/console/webhooks/${id}?state=pending"`)
  })

  it('shows the users with the most requests in a minute of the last hour, beside the rate limit', async () => {
    const account = await app.newAccount()
    const jonas = await newConsoleUser(app, account.accountId, { fullName: 'Jonas Weber' })
    await app.db.write('users').where({ id: jonas.userId }).update({ requests_per_minute: 20 })
    const minute = NOW - (NOW % MINUTE)
    await logRequests(app, account, [
      ...repeat(3, () => ({ at: minute })),
      ...repeat(2, () => ({ at: minute - 1 })),
      ...repeat(9, (index) => ({
        userId: jonas.userId,
        at: minute - 5 * MINUTE + index * 6_000,
        status: index > 6 ? 429 : 200,
      })),
      ...repeat(2, () => ({ userId: jonas.userId, at: minute - 30 * MINUTE, status: 429 })),
      // Before the last hour.
      ...repeat(8, () => ({ at: minute - 60 * MINUTE })),
    ])
    const { text } = await (await visitor(app, account)).get('')
    expect(tableOf(text, 'Rate limit')).toEqual([
      ['Jonas Weber', '9 of 20', '4'],
      ['Test Owner', '3 of 10', '0'],
    ])
  })

  it('of a new account shows the first steps, marks each step when it is done, and hides them after the last', async () => {
    const account = await app.newAccount()
    await app.db.write('api_keys').where({ account_id: account.accountId }).delete()
    const owner = await visitor(app, account)
    const steps = async (): Promise<string[]> =>
      [...(await owner.get('')).text.matchAll(/<li( class="done")?>\s*<h3>([^<]*)/g)].map(
        ([, done, title = '']) => `${done ? '✓ ' : ''}${title.trim()}`,
      )

    const { text } = await owner.get('')
    expect(plainText(text)).toContain(
      'curl \'http://api.example.com/public/v1/participants\' \\\n  -H "Authorization: Bearer $MUSTER_API_KEY"',
    )
    expect(text).not.toContain('NaN')
    expect(await steps()).toEqual([
      'Create an API key',
      'Make your first request',
      'Create a webhook',
    ])
    const key = await app.newKey(account)
    expect(await steps()).toEqual([
      '✓ Create an API key',
      'Make your first request',
      'Create a webhook',
    ])
    await app.as({ key }).get('/participants')
    await until(
      'the request is logged',
      async () => (await steps())[1] === '✓ Make your first request',
    )
    await newWebhook(account, 'The first')
    expect(await steps()).toEqual([])
    expect((await owner.get('')).text).not.toContain('Getting started')
  })

  it('shows an Admin only steps that their grants allow', async () => {
    const account = await app.newAccount()
    const admin = await visitor(app, await newConsoleUser(app, account.accountId))
    const { text } = await admin.get('')
    expect(text).toContain('Ask the Account Owner for permission.')
    expect(text).not.toContain('/console/webhooks/new')
    const granted = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { grants: ['webhooks'] }),
    )
    expect((await granted.get('')).text).toContain('/console/webhooks/new')
  })

  describe('of a Member', () => {
    it('links to the records they may see, with counts', async () => {
      const account = await app.newAccount()
      await app.as(account).post('/tasks', { title: 'One' })
      await app.as(account).post('/tasks', { title: 'Two' })
      await logRequests(app, account, [{ status: 500 }])
      await newWebhook(account, 'Secret')
      const member = await memberWith(app, account, { participants: 'read', tasks: 'write' })
      const { text } = await member.get('')
      const [, main = ''] = text.split('<main')
      const tiles = [
        ...main.matchAll(
          /<li>\s*<a href="(\/console\/[^"]*)">.{0,400}?<strong>(.*?)<\/strong>\s*<span class="stat-value">(\d+)/gs,
        ),
      ]
      expect(tiles.map(([, , name, number]) => [name, number])).toEqual([
        ['Participants', '0'],
        ['Tasks', '2'],
      ])
      for (const [, to = ''] of tiles)
        expect((await member.get(to.replace('/console', ''))).status).toBe(200)
      for (const hidden of [
        ...['Secret', 'Requests', 'Rate limit'],
        ...['/console/requests', '/console/webhooks', 'Payments'],
      ])
        expect(text).not.toContain(hidden)
    })

    it('shows what to do: due and open tasks, new applications and recent changes', async () => {
      const account = await app.newAccount()
      const client = app.as(account)
      const dueAt = (ms: number): string => new Date(NOW + ms).toISOString()
      const grace = (await client.post('/participants', { full_name: 'Grace' })).body
      const job = (await client.post('/jobs', { title: 'Librarian', status: 'open' })).body
      for (const [title, ms] of Object.entries({ Late: -DAY, Soon: DAY, Far: 30 * DAY }))
        await client.post('/tasks', { title, due_at: dueAt(ms) })
      const done = (await client.post('/tasks', { title: 'Done', due_at: dueAt(HOUR) })).body
      await client.patch(`/tasks/${done.id}`, { status: 'completed' })
      await client.post('/job-applications', { job_id: job.id, participant_id: grace.id })
      const payment = { participant_id: grace.id, amount_minor: 4_990, currency: 'EUR' }
      await client.post('/payments', payment)
      const firstCells = (page: string, table: string): (string | undefined)[] =>
        tableOf(page, table).map(([first]) => first)

      const all = await memberWith(app, account, inEveryModule('read'))
      const { text } = await all.get('')
      expect(tableOf(text, 'Due within 7 days').map(([title, , due]) => [title, due])).toEqual([
        ['Late', '1 d ago Overdue'],
        ['Soon', expect.stringMatching(/^in /)],
      ])
      expect(firstCells(text, 'Open tasks')).toEqual(['Far', 'Soon', 'Late'])
      expect(firstCells(text, 'New applications')).toEqual(['Grace Librarian'])
      expect(firstCells(text, 'Recent changes')).toEqual([
        'Grace, €49.90 Payment created',
        'Librarian, Grace Job application created',
        'Done Task updated',
        'Done Task created',
        'Far Task created',
        'Soon Task created',
      ])

      const jobsOnly = await memberWith(app, account, { jobs: 'read' })
      const limited = (await jobsOnly.get('')).text
      expect(firstCells(limited, 'New applications')).toEqual(['Application Librarian'])
      expect(firstCells(limited, 'Recent changes')).toEqual([
        'Librarian, Participant Job application created',
        'Librarian Job created',
      ])
      for (const hidden of ['Grace', 'Late', 'Due within', 'Payment'])
        expect(limited).not.toContain(hidden)

      const stranger = await memberWith(app, await app.newAccount(), inEveryModule('read'))
      const other = plainText((await stranger.get('')).text)
      expect(other).toContain('No unfinished task is due soon.')
      for (const hidden of ['Grace', 'Late', 'Librarian']) expect(other).not.toContain(hidden)
    })

    it('without any access says whom to ask', async () => {
      const account = await app.newAccount()
      const member = await memberWith(app, account, {})
      expect(plainText((await member.get('')).text)).toContain(
        'You have no access to records yet. Ask Test Owner, the Account Owner.',
      )
    })
  })

  describe('in a browser', () => {
    it.each(SCREENS)('is readable at $viewport.width pixels, $colorScheme', async (screen) => {
      const fresh = await app.newAccount()
      const busy = await app.newAccount()
      const member = await newConsoleUser(app, busy.accountId, {
        role: 'member',
        permissions: inEveryModule('read'),
      })
      await app.as(busy).post('/tasks', { title: 'x'.repeat(160), due_at: '2026-01-01T00:00:00Z' })
      await logRequests(
        app,
        busy,
        repeat(300, (index) => ({
          at: NOW - index * 4 * MINUTE,
          status: [200, 200, 200, 404, 500][index % 5] ?? 200,
        })),
      )
      const webhookId = await newWebhook(
        busy,
        `A description that is as long as ${randomUUID()} makes it`,
      )
      await newAttempts(
        busy,
        webhookId,
        repeat(40, (index) => ({ at: NOW - (40 - index) * 30 * MINUTE, succeeded: index < 30 })),
      )
      for (const [name, person] of Object.entries({ fresh, busy, member })) {
        await using visited = await site.visit('', { person, ...screen })
        const { page, troubles } = visited
        if (name === 'busy') await page.getByText('Show as table').first().click()
        await assertReadable(page, `the overview, ${name}`)
        expect(troubles).toEqual([])
      }
    })

    it('works without JavaScript: from a failing webhook to its deliveries', async () => {
      const account = await app.newAccount()
      const webhookId = await newWebhook(account, 'The shop')
      await newAttempts(account, webhookId, [{ at: NOW - HOUR, succeeded: false, state: 'failed' }])
      await using visited = await site.visit('', {
        person: account,
        javaScriptEnabled: false,
      })
      const { page } = visited
      await page
        .getByRole('row', { name: 'The shop' })
        .getByRole('link', { name: '1', exact: true })
        .click()
      await page.waitForURL(`**/console/webhooks/${webhookId}?state=failed`)
      await page.getByRole('heading', { level: 1, name: 'The shop' }).waitFor()
    })
  })
})
