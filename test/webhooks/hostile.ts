/** Responses that break HTTP or never end, and the attempts that they cause. */
import type { Socket } from 'node:net'
import tls from 'node:tls'
import { expect } from 'vitest'
import type { RecordedAttempt } from '../../records/attempts.ts'
import type { Delivery } from '../../records/deliveries.ts'
import { sharedApp, type TestApp } from '../helpers.ts'
import type { Answer } from '../receiver.ts'
import type { Authority } from '../tls.ts'

export const TIMEOUT_MS = 1_000
/** The longest duration of an attempt, on a loaded machine. */
export const LATEST_MS = 6_000

/** One service for all tests of a file. Its attempts time out soon and follow each other at
 *  once. */
export function sharedImpatientApp(): TestApp {
  const delays = Array(9).fill('0.01').join()
  return sharedApp({
    role: 'all',
    environment: { WEBHOOK_TIMEOUT_MS: String(TIMEOUT_MS), WEBHOOK_RETRY_DELAYS: delays },
  })
}

export const HEAD = 'HTTP/1.1 200 OK\r\n'
/** Sends the text, and keeps the connection open. */
export const says = (text: string): Answer => ({ raw: (socket) => void socket.write(text) })
export const saysAndEnds = (text: string): Answer => ({ raw: (socket) => void socket.end(text) })

/** Repeats the text as fast as the client reads it. */
export function flood(text: string, start = ''): { raw: (socket: Socket) => void } {
  const piece = text.repeat(Math.ceil(65_536 / text.length))
  return {
    raw(socket) {
      const more = (): void => {
        // Sender and receiver share one event loop: let the other run between two writes.
        if (!socket.destroyed) socket.write(piece, () => setImmediate(more))
      }
      socket.write(start, more)
    },
  }
}

/** Repeats the text every 20 ms. */
export function drip(text: string, start = ''): Answer {
  return {
    raw(socket) {
      socket.write(start)
      const timer = setInterval(() => socket.write(text), 20)
      socket.once('close', () => clearInterval(timer))
    },
  }
}

export type Result = Partial<Omit<RecordedAttempt, 'error'>> & { error: string | null }

/** One attempt with this result, then one that succeeds. */
export function expectFailure(
  { delivery, attempts }: { delivery: Delivery; attempts: RecordedAttempt[] },
  want: Result,
): void {
  expect(attempts).toMatchObject([
    { number: 1, ...want },
    { number: 2, outcome: 'success' },
  ])
  expect(delivery).toMatchObject({ state: 'delivered', attempts: 2 })
  const { outcome, durationMs } = attempts[0] as RecordedAttempt
  if (outcome === 'timeout') expect(durationMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 1)
  expect(durationMs).toBeLessThan(LATEST_MS)
}

/** Trusts the certificates of an authority. Returns a function that ends the trust. */
export function trust(authority: Authority): () => void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...before, authority.cert])
  return () => tls.setDefaultCACertificates(before)
}
