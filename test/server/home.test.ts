import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../helpers.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app[Symbol.asyncDispose]())

test.each([
  ['text/html,application/xhtml+xml,*/*;q=0.8', '/console'],
  ['*/*', '/docs'],
  ['application/json', '/docs'],
])('GET / with Accept: %s redirects to %s', async (accept, location) => {
  const response = await fetch(`${app.url}/`, { headers: { Accept: accept }, redirect: 'manual' })
  expect(response.status).toBe(302)
  expect(response.headers.get('location')).toBe(location)
  expect(response.headers.get('vary')).toContain('Accept')
})
