/** Messages about values that people often send. */
import { expect, test } from 'vitest'
import { sharedApp } from '../helpers.ts'

const app = sharedApp()

const YEARS = 'must be in the years 1000 to 2999.'
const ASCII = 'must be an email address of ASCII characters.'

test.each([
  ['/tasks', { due_at: '9999-12-31T23:59:59Z' }, YEARS],
  ['/tasks', { due_at: '0999-12-31T23:59:59Z' }, YEARS],
  ['/tasks', { due_at: 'tomorrow' }, /^must be an RFC 3339 date and time, .*Z\.$/],
  ['/participants', { email: 'ada@bücher.example' }, `${ASCII} Write ada@xn--bcher-kva.example.`],
  ['/participants', { email: 'ü@example.com' }, ASCII],
  ['/participants', { email: 'ü' }, ASCII],
  ['/participants', { email: 'ada' }, 'must be an email address.'],
  ['/payments', { currency: 'eur' }, 'is not one of the 155 possible values. Did you mean EUR?'],
  ['/payments', { currency: 'EURO' }, 'is not one of the 155 possible values. Did you mean EUR?'],
  ['/payments', { currency: 'US' }, 'is not one of the 155 possible values. Did you mean USD?'],
  ['/payments', { currency: '€' }, 'is not one of the 155 possible values.'],
  ['/payments', { currency: 5 }, 'must be a string.'],
])('%s with %j → %s', async (path, fields, message) => {
  const { status, body } = await (await app.newClient()).post(path, fields)
  const [name = ''] = Object.keys(fields)
  const expected = typeof message === 'string' ? message : expect.stringMatching(message)
  expect([status, body.errors[name][0]]).toEqual([422, expected])
})
