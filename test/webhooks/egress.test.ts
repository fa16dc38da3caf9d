/** URLs and IP addresses that webhooks may use. blocked.ts lists IP addresses that they may not
 *  use. */
import { describe, expect, test } from 'vitest'
import { judgeAddress, parseWebhookUrl, UnacceptableUrl } from '../../webhooks/transport/egress.ts'
import { cidrs } from './single-attempt.ts'

const loopback = cidrs('127.0.0.0/8')

describe('judgeAddress', () => {
  test.each([
    ['93.184.216.34', 'public'],
    ['8.8.8.8', 'public'],
    ['2606:4700:4700::1111', 'public'],
    ['::ffff:8.8.8.8', 'public'],
    // Not IP addresses. They are blocked.
    ['', 'blocked'],
    ['example.com', 'blocked'],
    ['unknown', 'blocked'],
  ])('%s: %s', (address, want) => {
    expect(judgeAddress(address, [])).toBe(want)
  })

  test.each([
    ['127.0.0.1', '127.0.0.0/8', 'allowed'],
    ['::ffff:127.0.0.1', '127.0.0.0/8', 'allowed'],
    ['::1', '127.0.0.0/8', 'blocked'],
    ['::1', '::1/128', 'allowed'],
    ['10.1.2.3', '10.1.0.0/16', 'allowed'],
    ['10.2.2.3', '10.1.0.0/16', 'blocked'],
  ])('%s with %s allowed: %s', (address, range, want) => {
    expect(judgeAddress(address, cidrs(range))).toBe(want)
  })
})

describe('parseWebhookUrl', () => {
  test.each([
    ['https://example.com/hooks?a=1', 'https://example.com/hooks?a=1'],
    ['https://example.com:8443', 'https://example.com:8443/'],
    ['HTTPS://EXAMPLE.com/A', 'https://example.com/A'],
    ['https://93.184.216.34/', 'https://93.184.216.34/'],
    ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'],
    ['https://example.com/#part', 'https://example.com/'],
  ])('accepts %s', (url, want) => {
    expect(parseWebhookUrl(url, [])).toBe(want)
  })

  test.each([
    [''],
    ['example.com'],
    ['javascript:alert(1)'],
    ['http://example.com/'],
    ['http://93.184.216.34/'],
    [`https://example.com/${'a'.repeat(2_048)}`],
  ])('refuses %s', (url) => {
    expect(() => parseWebhookUrl(url, [])).toThrow(UnacceptableUrl)
  })

  test.each([
    ['http://127.0.0.1:4000/'],
    ['http://localhost:4000/'],
    ['http://receiver.internal/'],
    ['https://127.0.0.1/'],
  ])('accepts %s when the operator allows loopback', (url) => {
    expect(parseWebhookUrl(url, loopback)).toBe(url)
  })

  test.each([['http://10.0.0.1/'], ['http://93.184.216.34/'], ['http://[::1]/']])(
    'refuses %s even when the operator allows loopback',
    (url) => {
      expect(() => parseWebhookUrl(url, loopback)).toThrow(UnacceptableUrl)
    },
  )
})
