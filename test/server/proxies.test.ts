import { expect, it } from 'vitest'
import { startApp, until } from '../helpers.ts'

it.each([
  { proxies: '0', header: '203.0.113.9', ip: '127.0.0.1' },
  { proxies: '1', header: '203.0.113.9', ip: '203.0.113.9' },
  { proxies: '1', header: '198.51.100.1, 203.0.113.9', ip: '203.0.113.9' },
  { proxies: '2', header: '192.0.2.1, 198.51.100.1, 203.0.113.9', ip: '198.51.100.1' },
])(
  'TRUSTED_PROXIES=$proxies, X-Forwarded-For: $header → the request log has the IP address $ip',
  async ({ proxies, header, ip }) => {
    await using app = await startApp({ environment: { TRUSTED_PROXIES: proxies } })
    const { key } = await app.newAccount()
    await app.as({ key }).get('/participants', { 'X-Forwarded-For': header })
    const row = await until('the request is logged', async () =>
      app.db.read('request_log').first<{ ip: string } | undefined>('ip'),
    )
    expect(row.ip).toBe(ip)
  },
)
