import { describe, expect, it } from 'vitest'
import { describeDevice, hashOfToken, newToken } from '../../auth/session.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'

describe('describeDevice', () => {
  it.each([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0', 'Firefox on Linux'],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/150.0.0.0 Safari/537.36`,
      'Chrome on Windows',
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/150.0.0.0 Safari/537.36 Edg/150.0.0.0`,
      'Edge on Windows',
    ],
    [
      `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${WEBKIT} Chrome/150.0.0.0 Safari/537.36`,
      'Chrome on ChromeOS',
    ],
    [
      `Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} HeadlessChrome/150.0.0.0 Safari/537.36`,
      'Chrome on Linux',
    ],
    [
      `Mozilla/5.0 (Linux; Android 16; K) ${WEBKIT} SamsungBrowser/29.0 Chrome/150.0.0.0 Mobile Safari/537.36`,
      'Samsung Internet on Android',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
      'Safari on macOS',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/150.0 Mobile/15E148 Safari/604.1',
      'Chrome on iPhone',
    ],
    ['curl/8.19.0', 'Unknown device'],
    ['', 'Unknown device'],
  ])('%s', (userAgent, device) => {
    expect(describeDevice(userAgent)).toBe(device)
  })
})

describe('hashOfToken', () => {
  it('hashes a well-formed token, and returns undefined for any other text', () => {
    const { token, tokenHash } = newToken()
    expect(hashOfToken(token)).toBe(tokenHash)
    for (const malformed of ['', token.slice(1), `${token}x`, `${token.slice(1)}.`])
      expect(hashOfToken(malformed)).toBeUndefined()
  })
})
