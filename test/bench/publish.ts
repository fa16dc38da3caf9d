/** Clients that create participants with an Idempotency-Key. */
import { randomUUID } from 'node:crypto'
import { Agent } from 'undici'
import { createParticipant } from './latency.ts'

export interface Publishing {
  url: string
  token: string
  count: number
  /** Each sends its next request after the response to the one before. */
  clients: number
}

export function publishHeaders(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, 'idempotency-key': randomUUID() }
}

/** Creates `count` participants. Returns the accepted requests per second. Throws when a request
 *  fails. */
export async function publish({ url, token, count, clients }: Publishing): Promise<number> {
  const agent = new Agent({ connections: clients })
  const started = performance.now()
  let left = count
  const runClient = async (): Promise<void> => {
    while (left-- > 0) await createParticipant(agent, url, publishHeaders(token))
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  const perSecond = (count / (performance.now() - started)) * 1000
  await agent.close()
  return perSecond
}
