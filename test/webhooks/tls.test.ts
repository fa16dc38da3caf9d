import { beforeAll, describe, expect, test } from 'vitest'
import { startReceiver } from '../receiver.ts'
import { type Authority, type CertificateOptions, newAuthority, newCertificate } from '../tls.ts'
import { deliver } from './harness.ts'
import { sharedImpatientApp, trust } from './hostile.ts'

const app = sharedImpatientApp()

describe('TLS', () => {
  let authority: Authority
  beforeAll(async () => {
    authority = await newAuthority()
    return trust(authority)
  })

  test('a valid certificate: success, and the IP address and each phase are recorded', async () => {
    await using receiver = await startReceiver({ tls: await authority.issue() })
    const { attempts } = await deliver(app, receiver.url)
    expect(attempts).toMatchObject([{ outcome: 'success', status: 204, address: '127.0.0.1' }])
    const ms = expect.any(Number)
    const phases = attempts[0]?.phases
    expect(phases).toEqual({ dns: null, connect: ms, tls: ms, first_byte: ms, body: ms })
    const spentMs = Object.values(phases ?? {}).reduce((sum: number, part) => sum + (part ?? 0), 0)
    expect(Math.abs(spentMs - (attempts[0]?.durationMs ?? 0))).toBeLessThan(1)
    expect(phases?.tls).toBeGreaterThan(0)
  })

  const tomorrow = new Date(Date.now() + 86_400_000)
  const yesterday = new Date(Date.now() - 86_400_000)
  test.each<{
    what: string
    wanted?: CertificateOptions
    by: 'trusted' | 'unknown' | 'itself'
    error: RegExp
  }>([
    {
      what: 'expired',
      wanted: { notBefore: new Date(0), notAfter: yesterday },
      by: 'trusted',
      error: /has expired/,
    },
    {
      what: 'not valid yet',
      wanted: { notBefore: tomorrow, notAfter: new Date(Date.now() + 2e8) },
      by: 'trusted',
      error: /not valid yet/,
    },
    {
      what: 'for another host',
      wanted: { host: 'example.com' },
      by: 'trusted',
      error: /is not for 127\.0\.0\.1/,
    },
    {
      what: 'for another IP address',
      wanted: { host: '127.0.0.2' },
      by: 'trusted',
      error: /is not for 127\.0\.0\.1/,
    },
    { what: 'self-signed', by: 'itself', error: /is self-signed/ },
    { what: 'of an unknown authority', by: 'unknown', error: /authority that is not trusted/ },
  ])(
    'a certificate that is $what: unreachable, and no request is sent',
    async ({ wanted, by, error }) => {
      const issuer = by === 'unknown' ? await newAuthority() : authority
      await using receiver = await startReceiver({
        tls: by === 'itself' ? await newCertificate(wanted) : await issuer.issue(wanted),
      })
      const { delivery, attempts } = await deliver(app, receiver.url)
      expect(delivery).toMatchObject({ state: 'failed', attempts: 10 })
      expect(attempts).toHaveLength(10)
      expect(attempts[0]).toMatchObject({
        outcome: 'unreachable',
        status: null,
        address: '127.0.0.1',
        error: expect.stringMatching(error),
      })
      expect(attempts[0]?.phases).toMatchObject({
        tls: expect.any(Number),
        first_byte: null,
        body: null,
      })
      expect(receiver.requests).toHaveLength(0)
    },
  )

  test('https to a port that speaks http: unreachable', async () => {
    await using receiver = await startReceiver()
    const { attempts } = await deliver(app, receiver.url.replace('http:', 'https:'))
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({
      outcome: 'unreachable',
      error: 'The TLS handshake failed.',
    })
    expect(receiver.requests).toHaveLength(0)
  })

  test('http to a port that speaks TLS: unreachable', async () => {
    await using receiver = await startReceiver({ tls: await authority.issue() })
    const { attempts } = await deliver(app, receiver.url.replace('https:', 'http:'))
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({ outcome: 'unreachable', status: null })
    expect(attempts[0]?.error).toMatch(
      /closed the connection before it responded|not valid HTTP\/1\.1/,
    )
    expect(receiver.requests).toHaveLength(0)
  })
})
