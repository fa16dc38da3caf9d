/** One attempt without an engine. */
import { createHook } from 'node:async_hooks'
import ipaddr from 'ipaddr.js'
import { guardedAgent } from '../../webhooks/transport/guarded-agent.ts'
import type { Lookup } from '../../webhooks/transport/name-lookup.ts'
import { send } from '../../webhooks/transport/send.ts'

export const cidrs = (...ranges: string[]): ReturnType<typeof ipaddr.parseCIDR>[] =>
  ranges.map((range) => ipaddr.parseCIDR(range))

/** A request for `send` without its URL. */
export const post = { accountId: 'account', headers: {}, body: Buffer.from('{}'), timeoutMs: 5_000 }

/** Sends one request, and counts the TCP connections that this process opened meanwhile, with or
 *  without success. */
export async function sendTo(
  url: string,
  { allow = cidrs(), lookup }: { allow?: ReturnType<typeof cidrs>; lookup?: Lookup } = {},
) {
  let connects = 0
  const hook = createHook({
    init: (_, type) => void (type === 'TCPCONNECTWRAP' && connects++),
  }).enable()
  const agent = guardedAgent(allow, { lookup })
  try {
    const result = await send(agent, { ...post, url })
    return { result, connects }
  } finally {
    await agent.destroy()
    hook.disable()
  }
}
