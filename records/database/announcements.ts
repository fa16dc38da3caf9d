import { randomUUID } from 'node:crypto'
import { Notifier } from './notifier.ts'

/** A subject that a transaction announces after its commit. */
export interface Topic<Payload = undefined> {
  name: string
  /** Combines the payloads that one transaction has announced. A topic without `merge` has no
   *  payload. */
  merge?(payloads: (Payload | undefined)[]): Payload | undefined
}

/** Returns true when no other node needs the announcement. */
type Listener<Payload> = (payload: Payload | undefined) => unknown

/** Delivers announcements to the subscribers in this process and, on PostgreSQL, to those on other
 *  nodes. A payload never leaves the process. Delivery is not guaranteed: a node may miss a
 *  notification. */
export interface Announcements {
  /** Returns a function that ends the subscription. The payload is undefined when another node
   *  announced. */
  subscribe<Payload>(topic: Topic<Payload>, listener: Listener<Payload>): () => void
  /** Calls the subscribers in this process. Returns whether other nodes need the announcement. */
  publish(topicName: string, payload?: unknown): boolean
  /** Notifies the other nodes soon. Does nothing on SQLite, which has one node. */
  notifyOtherNodes(topicName: string): void
  /** Resolves when the other nodes were notified of everything. */
  flushNotifications(): Promise<void>
  /** Calls the subscribers of the topic that the text of a notification names. Without `text`,
   *  calls all subscribers, because notifications may have been lost. */
  receiveNotification(text?: string): void
}

export const NOTIFY_CHANNEL = 'muster'

/** `send` sends messages to the other nodes. Undefined: there are no other nodes. */
export function createAnnouncements(
  send?: (messages: string[]) => Promise<unknown>,
): Announcements {
  /** PostgreSQL also notifies the node that announced, which ignores its own ID. */
  const nodeId = randomUUID()
  const notifier = send && new Notifier(send)
  const listeners = new Map<string, Set<Listener<unknown>>>()
  const publish: Announcements['publish'] = (topicName, payload) => {
    let mustNotify = true
    for (const listener of listeners.get(topicName) ?? [])
      if (listener(payload) === true) mustNotify = false
    return mustNotify
  }
  return {
    publish,
    subscribe(topic, listener) {
      // A function of its own, so that the same listener can subscribe twice.
      const subscriber: Listener<unknown> = (payload) => (listener as Listener<unknown>)(payload)
      const ofTopic = listeners.get(topic.name) ?? new Set()
      listeners.set(topic.name, ofTopic.add(subscriber))
      return () => void ofTopic.delete(subscriber)
    },
    notifyOtherNodes: (topicName) => notifier?.notify(`${nodeId} ${topicName}`),
    flushNotifications: async () => notifier?.flush(),
    receiveNotification(text) {
      const [sender, name] = text?.split(' ') ?? []
      if (sender === nodeId) return
      for (const topicName of name ? [name] : listeners.keys()) publish(topicName)
    },
  }
}
