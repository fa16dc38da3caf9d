/** The search for pages, actions, IDs and names, and the keys that lead to it. */
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { assertReadable } from '../browser.ts'
import { expectSuccess } from '../handlers/new-records.ts'
import { type TestAccount, until } from '../helpers.ts'
import { countClicks } from './clicks.ts'
import { unescapeHtml } from './forms.ts'
import { newSite, SCREENS } from './site.ts'
import { memberWith, newAccountOwner, type Visitor } from './visitors.ts'

const site = newSite()
const { app } = site

let account: TestAccount
let owner: Visitor
/** By kind. */
const ids: Record<string, string> = {}
let requestId: string

/** Each as `Kind: title`, in the order of the page. */
async function search(visitor: Visitor, text: string): Promise<string[]> {
  const { text: page } = await visitor.get(`/search?q=${encodeURIComponent(text)}`)
  const options = page.matchAll(
    /class="title">(.*?)<\/span>.*?<span class="kind">([^<]*)<\/span>/gs,
  )
  return [...options].map(
    ([, title = '', kind]) => `${kind}: ${unescapeHtml(title.replaceAll(/<\/?mark>/g, ''))}`,
  )
}

beforeAll(async () => {
  const created = await newAccountOwner(app)
  account = created.account
  owner = created.owner
  const client = app.as(account)
  const webhook = await client.post('/webhooks', {
    url: 'https://example.com/orders',
    description: 'Order desk',
    event_types: ['*'],
  })
  const participant = await client.post('/participants', { full_name: 'Grace Hopper' })
  const task = await client.post('/tasks', { title: 'Call Grace back' })
  const payment = await client.post('/payments', {
    participant_id: participant.body.id,
    amount_minor: 4990,
    currency: 'EUR',
  })
  requestId = task.headers.get('x-request-id') ?? ''
  const events = await client.get(`/events?filter[resource_id]=${task.body.id}`)
  const event = await client.get(`/events/${events.body.data[0].id}`)
  Object.assign(ids, {
    webhook: webhook.body.id,
    participant: participant.body.id,
    task: task.body.id,
    payment: payment.body.id,
    event: event.body.id,
    delivery: event.body.delivery_ids[0],
    user: account.userId,
  })
  const findLogged = () => app.db.read('request_log').where({ request_id: requestId }).first('id')
  await until('the request is logged', async () => (await findLogged()) !== undefined)
  ids.request = (await findLogged()).id
  ids.key = (await app.db.read('api_keys').where({ user_id: account.userId }).first('id')).id
})

describe('the search', () => {
  it.each([
    { of: 'webhook', match: 'Webhook: Order desk' },
    { of: 'participant', match: 'Participant: Grace Hopper' },
    { of: 'task', match: 'Task: Call Grace back' },
    { of: 'delivery', match: 'Delivery: task.created' },
    { of: 'event', match: 'Delivery: task.created' },
    { of: 'event', match: 'Event: task.created' },
    { of: 'request', match: 'Request: 201 POST /public/v1/tasks' },
  ])('finds by the ID of a $of', async ({ of, match }) => {
    expect(await search(owner, ` ${ids[of]?.toUpperCase()} `)).toContain(match)
  })

  it('finds a payment, a key and a user by ID', async () => {
    expect(await search(owner, ids.payment ?? '')).toEqual([`Payment: ${ids.payment}`])
    expect(await search(owner, ids.key ?? '')).toEqual([expect.stringMatching(/^API key: /)])
    expect(await search(owner, ids.user ?? '')).toEqual([expect.stringMatching(/^User: /)])
  })

  it('finds a request by its X-Request-Id', async () => {
    expect(await search(owner, requestId)).toEqual(['Request: 201 POST /public/v1/tasks'])
  })

  it('finds an API key by its token, and by the beginning of it', async () => {
    const found = [expect.stringMatching(/^API key: /)]
    expect(await search(owner, account.key)).toEqual(found)
    expect(await search(owner, account.key.slice(0, 8))).toEqual(found)
  })

  it('finds records, webhooks and people by name', async () => {
    expect(await search(owner, 'grace')).toEqual([
      'Participant: Grace Hopper',
      'Task: Call Grace back',
    ])
    expect(await search(owner, 'desk ORDER')).toEqual(['Webhook: Order desk'])
  })

  it('says if only the newest of a kind were searched', async () => {
    const other = await newAccountOwner(app)
    const client = app.as(other.account)
    const readPage = async () => (await other.owner.get('/search?q=call')).text
    await expectSuccess(client.post('/tasks', { title: 'Call Grace back' }))
    expect(await readPage()).not.toContain('Only the newest')
    const items = Array.from({ length: 100 }, () => ({ action: 'create', data: { title: 'New' } }))
    await expectSuccess(client.post('/tasks/batch', { items }))
    expect(await readPage()).toContain('Only the newest 100 tasks were searched.')
  })

  it('finds pages and actions, and lists all without a text', async () => {
    expect(await search(owner, 'webhook')).toEqual(
      expect.arrayContaining(['Page: Webhooks', 'Action: Create webhook']),
    )
    const all = await search(owner, '')
    expect(all).toEqual(expect.arrayContaining(['Page: Audit log', 'Action: New payment']))
  })

  it('every page and action that it offers exists', async () => {
    const { text } = await owner.get('/search')
    const paths = [...text.matchAll(/role="option"[^>]*href="\/console([^"]*)"/g)]
    expect(paths.length).toBeGreaterThan(20)
    for (const [, path = ''] of paths) expect((await owner.get(path)).status, path).toBe(200)
  })

  it('shows nothing of other accounts, or of modules without permission', async () => {
    const { owner: stranger } = await newAccountOwner(app)
    const member = await memberWith(app, account, { tasks: 'read' })
    for (const id of [...Object.values(ids), requestId])
      expect(await search(stranger, id), id).toEqual([])
    for (const [kind, id] of Object.entries(ids))
      expect(await search(member, id), kind).toHaveLength(kind === 'task' ? 1 : 0)
    expect(await search(member, requestId)).toEqual([])
    expect(await search(member, 'grace')).toEqual(['Task: Call Grace back'])
    expect(await search(member, 'order')).toEqual([])
    expect(await search(stranger, 'grace')).toEqual([])
    expect(await search(member, account.key)).toEqual([])
    const offered = await search(member, '')
    expect(offered).toContain('Page: Tasks')
    for (const hidden of ['Page: Payments', 'Page: Webhooks', 'Action: New task'])
      expect(offered).not.toContain(hidden)
  })

  it('marks the typed words in the titles', async () => {
    const { text } = await owner.get('/search?q=desk%20(order')
    expect(text).not.toContain('<mark>')
    const found = await owner.get('/search?q=desk%20ORDER')
    expect(found.text).toContain('<mark>Order</mark> <mark>desk</mark>')
  })

  it('takes any text', async () => {
    for (const text of [
      '%',
      "'",
      '\0',
      '\ud800',
      '\\',
      'x'.repeat(3_000),
      `${'x'.repeat(199)}😀`,
      '<b>"',
    ])
      expect((await owner.get(`/search?q=${encodeURIComponent(text.toWellFormed())}`)).status).toBe(
        200,
      )
  })
})

// The browser is the subject, not the database.
describe.runIf(inject('database') === 'sqlite')('the search in a browser', () => {
  it.each(SCREENS)(
    'opens a delivery by the ID of its event with the keyboard, $viewport.width px',
    async (screen) => {
      await using visited = await site.visit('/requests', { person: account, ...screen })
      const { page, troubles } = visited
      const clicks = await countClicks(page)
      await page.keyboard.press('Control+k')
      await page.keyboard.type('webh')
      const option = page.getByRole('option')
      await option.filter({ hasText: 'Create webhook' }).waitFor()
      await assertReadable(page, 'the search')
      await page.getByRole('combobox', { name: 'Search' }).fill(ids.event ?? '')
      await option
        .filter({ hasText: 'To Order desk' })
        .or(option.filter({ hasText: 'to Order desk' }))
        .first()
        .waitFor()
      while ((await page.locator('[aria-selected="true"] .kind').textContent()) !== 'Delivery')
        await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
      await page.waitForURL(new RegExp(`/deliveries/${ids.delivery}$`))
      expect(clicks()).toBe(2)
      expect(troubles).toEqual([])
    },
  )

  it('/ focuses the search of the list, ? shows the keys, Escape closes', async () => {
    await using visited = await site.visit('/records/participants', { person: account })
    const { page, troubles } = visited
    await page.keyboard.press('/')
    await page.keyboard.type('a?/')
    expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).toBe('a?/')
    await page.locator('h1').click()
    await page.keyboard.press('?')
    await page.getByText('Search this list').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Search this list').waitFor({ state: 'hidden' })
    await page.getByRole('link', { name: 'Search' }).click()
    await page.keyboard.type('grace hop')
    await page.getByRole('option', { name: 'Grace Hopper' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Grace Hopper' }).waitFor()
    expect(troubles).toEqual([])
  })

  it('a link at the top of a page skips to its list', async () => {
    await using visited = await site.visit('/requests', { person: account })
    const { page } = visited
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    // The table, which scrolls, and its first row.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    const isInTable = 'document.activeElement.closest("#list tbody") !== null'
    expect(await page.evaluate(isInTable)).toBe(true)
  })

  it('works without JavaScript', async () => {
    await using visited = await site.visit('', { person: account, javaScriptEnabled: false })
    const { page } = visited
    await page.getByRole('link', { name: 'Search' }).first().click()
    await page.getByRole('combobox', { name: 'Search' }).fill(requestId)
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByText('201 POST /public/v1/tasks').click()
    await page.getByRole('heading', { level: 1, name: 'POST /public/v1/tasks' }).waitFor()
  })
})
