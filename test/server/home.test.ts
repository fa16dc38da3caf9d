import { expect, test } from 'vitest'
import { sharedApp, startApp } from '../helpers.ts'

const app = sharedApp()

test('Strict-Transport-Security is sent only if the public URL is https', async () => {
  expect((await fetch(`${app.url}/healthz`)).headers.get('strict-transport-security')).toBeNull()
  await using secure = await startApp({ config: { baseUrl: 'https://muster.example' } })
  const { headers } = await fetch(`${secure.url}/healthz`)
  expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
})

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
