/** A process that only POSTs the bodies of pending deliveries: the limit of the machine. */
import { Agent } from 'undici'
import { loadRequests } from '../../records/attempt-requests.ts'
import { openDatabase } from '../../records/database/open.ts'
import { listUnqueued } from '../../records/scheduled-attempts.ts'
import { readConfig } from '../../server/config.ts'
import { secretOpener } from '../../webhooks/transport/secret.ts'
import { serveCalls } from './child.ts'
import type { Environment } from './set-up.ts'
import { type SignedPost, sendSigned } from './signed-post.ts'

const CONCURRENCY = 128
const LOADED_AT_ONCE = 1_000

let posts: SignedPost[] = []
const agent = new Agent()

const calls = {
  /** Loads the pending deliveries, so that sending uses no database. */
  async load(environment: Environment): Promise<void> {
    const config = readConfig(environment)
    const open = secretOpener(config.secretKeys)
    const db = openDatabase(config.database)
    const pending = await listUnqueued(db, new Date(), [], 1_000_000)
    posts = []
    for (let from = 0; from < pending.length; from += LOADED_AT_ONCE) {
      const batch = pending.slice(from, from + LOADED_AT_ONCE)
      const requests = await loadRequests({ dialect: db.dialect, sql: db.read }, batch)
      for (const { deliveryId: id, body, webhook } of requests.values()) {
        if (!webhook) continue
        const key = open(webhook.id, webhook.sealedSecret).whole
        posts.push({ id, body, url: webhook.url, key })
      }
    }
    await db.close()
  },
  /** Sends all deliveries. Returns POSTs per second. */
  async send(): Promise<number> {
    let next = 0
    const started = performance.now()
    const sendNext = async (): Promise<void> => {
      for (let post = posts[next++]; post !== undefined; post = posts[next++])
        await sendSigned(post, agent)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, sendNext))
    return (posts.length / (performance.now() - started)) * 1000
  },
}

export type RawPosts = typeof calls
serveCalls(calls)
