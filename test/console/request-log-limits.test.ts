/** The request log stays small under a flood, and the dashboard says what it leaves out. */
import { expect, it } from 'vitest'
import { sharedApp, type TestAccount, until } from '../helpers.ts'
import { plainText, tableOf } from './forms.ts'
import { visitor } from './visitors.ts'

const app = sharedApp({
  environment: { RATE_LIMIT_PER_MINUTE: '4' },
  config: { requestLogBytesPerDay: 8 * 1024 },
})

interface Row {
  id: string
  status: number
  path: string
  repeats: number
  request_body: string | null
  response_body: string | null
}

/** The logged requests of an account, as soon as `isComplete` returns true for them. */
function rowsWhen(
  { accountId }: TestAccount,
  isComplete: (rows: Row[]) => boolean,
): Promise<Row[]> {
  return until('the requests are logged', async () => {
    const rows: Row[] = await app.db
      .read('request_log')
      .where({ account_id: accountId })
      .orderBy('id')
    return isComplete(rows) && rows
  })
}

it('stores the first 429 of a key in a minute, counts the others, and cuts the path', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  const path = `/participants?filter[search]=${'x'.repeat(5_000)}`
  for (let count = 0; count < 4; count++) await client.get('/me')
  for (let count = 0; count < 5; count++) expect((await client.get(path)).status).toBe(429)
  const otherKey = await app.newKey(account)
  expect((await app.as({ key: otherKey }).get('/tasks')).status).toBe(429)

  const rows = await rowsWhen(account, (rows) => rows.some(({ repeats }) => repeats === 4))
  expect(rows.map(({ status, repeats }) => [status, repeats])).toEqual([
    [200, 0],
    [200, 0],
    [200, 0],
    [200, 0],
    [429, 4],
    [429, 0],
  ])
  const logged = `/public/v1${path}`
  expect(rows[4]?.path).toBe(`${logged.slice(0, 2 * 1024)}…`)
  const counts: { requests: number }[] = await app.db
    .read('request_counts')
    .where({ account_id: account.accountId, span_ms: 60_000, status: 429 })
  expect(counts.reduce((sum, { requests }) => sum + requests, 0)).toBe(6)

  const owner = await visitor(app, account)
  for (const filter of ['', '?status=429']) {
    const list = plainText((await owner.get(`/requests${filter}`)).text)
    expect(list).toMatch(/429\s+\+4/)
    expect(list).toContain(filter === '' ? '10 requests' : '6 requests')
  }
  expect(tableOf((await owner.get('')).text, 'Rate limit')).toEqual([
    ['Test Owner', '10 of 4', '6'],
  ])
  const detail = plainText((await owner.get(`/requests/${rows[4]?.id}`)).text)
  expect(detail).toContain('4 further requests with this key got 429 within a minute.')
  expect(detail).toContain('Truncated after 2 KiB.')
  expect(detail).toContain('The path is longer than 2 KiB, so the request cannot be repeated')
})

it('leaves out the bodies that exceed the daily limit of the account', async () => {
  const account = await app.newAccount()
  const client = app.as(account)
  const title = 'x'.repeat(200)
  const task = { title, description: 'x'.repeat(2_500) }
  await client.post('/tasks', task)
  await client.post('/tasks', task)
  await client.post('/tasks', { title })
  const rows = await rowsWhen(account, ({ length }) => length === 3)
  // The bodies of the second request would exceed 8 KiB, those of the third one do not.
  expect(rows.map(({ request_body, response_body }) => [request_body, response_body])).toEqual([
    [expect.any(String), expect.any(String)],
    [null, null],
    [expect.any(String), expect.any(String)],
  ])
  const other = await app.newAccount()
  await app.as(other).post('/tasks', task)
  const [otherRow] = await rowsWhen(other, ({ length }) => length === 1)
  expect(otherRow?.request_body).toBe(JSON.stringify(task))

  const owner = await visitor(app, account)
  expect(plainText((await owner.get('/requests')).text)).toContain(
    'The bodies of some requests are not stored',
  )
  const detail = plainText((await owner.get(`/requests/${rows[1]?.id}`)).text)
  expect(detail).toMatch(/The bodies of this request \(5\.\d KiB\) are not stored/)
  expect(detail).toContain('The request body is not stored, so the request cannot be repeated')
})
