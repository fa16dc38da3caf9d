/** The API Dashboard shows a request to the API (specification, §1). */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { CLOCK_DIFFERENCE_MS, sharedApp, until } from '../helpers.ts'
import { blockIn, requestIdsIn } from './forms.ts'
import { visitor } from './visitors.ts'

const app = sharedApp()

test.each([
  { status: 201, body: { title: 'Call Ada' } },
  { status: 422, body: { title: '' } },
  { status: 400, body: '{broken' },
])(
  'shows the time, the user, the IP address and both bodies of a request with status $status',
  async ({ status, body }) => {
    const account = await app.newAccount()
    const owner = await visitor(app, account)
    const requestId = randomUUID()
    const before = Date.now()
    const response = await app
      .as(account)
      .post('/tasks', body, { 'X-Request-Id': requestId, 'Idempotency-Key': randomUUID() })
    expect(response.status).toBe(status)
    const { list, id } = await until('the request is listed', async () => {
      const list = (await owner.get(`/requests?request=${requestId}`)).text
      const [id] = requestIdsIn(list)
      return id !== undefined && { list, id }
    })
    const row = list.match(/<tbody id="request-.*?<\/tbody>/s)?.[0] ?? ''
    const { text: page } = await owner.get(`/requests/${id}`)
    for (const text of [row, page]) {
      expect(text).toContain(`>${status}</span>`)
      expect(text).toContain('Test Owner')
      expect(text).toContain('127.0.0.1')
    }
    const time = Date.parse(row.match(/<time datetime="(.*?)"/)?.[1] ?? '')
    expect(time).toBeGreaterThanOrEqual(before - CLOCK_DIFFERENCE_MS)
    expect(time).toBeLessThanOrEqual(Date.now() + CLOCK_DIFFERENCE_MS)
    const sent = blockIn(page, 'request body')
    if (typeof body === 'string') expect(sent).toBe(body)
    else expect(JSON.parse(sent)).toEqual(body)
    expect(JSON.parse(blockIn(page, 'response body'))).toEqual(response.body)
  },
)
