import { expect, it } from 'vitest'
import { operations } from '../../generated/operations.ts'
import { sharedApp } from '../helpers.ts'

const app = sharedApp()

it('getIndex: names each list, and every path responds', async () => {
  const account = await app.newAccount()
  const { status, body } = await app.as(account).get('')
  expect(status).toBe(200)
  const lists = Object.values(operations).filter(({ query }) => 'page[number]' in query)
  expect(Object.values(body.links)).toEqual(expect.arrayContaining(lists.map(({ path }) => path)))
  for (const path of Object.values(body.links) as string[])
    expect((await app.call('GET', path, { key: account.key })).status, path).toBe(200)
})

it('getIndex: needs a key', async () => {
  expect((await app.call('GET', '/public/v1')).status).toBe(401)
})
