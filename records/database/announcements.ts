import { randomUUID } from 'node:crypto'

/** A subject that a transaction announces after its commit. */
export interface Topic<Payload = undefined> {
  name: string
  /** One payload for all announcements of a transaction. Without it, subscribers get no payload. */
  merge?(payloads: (Payload | undefined)[]): Payload | undefined
}

interface Subscription {
  receive(payload: unknown): void
}

/** Delivers announcements to the subscribers in this process and, on PostgreSQL, to those on other nodes.
 *  A payload never leaves the process. Delivery is not guaranteed: a node may miss a notification. */
export interface Announcements {
  /** Returns a function that ends the subscription. The payload is undefined when another node announced. */
  subscribe<Payload>(
    topic: Topic<Payload>,
    listener: (payload: Payload | undefined) => void,
  ): () => void
  /** Calls the subscribers in this process. */
  publish(topicName: string, payload?: unknown): void
  /** The statement that notifies the other nodes. */
  notifyStatement(topicName: string): string
  /** Handles a notification. Without text, notifications may have been lost: it calls all subscribers. */
  receiveNotification(text?: string): void
}

/** The name predates topics. Nodes of an older release listen on it during an upgrade. */
export const NOTIFY_CHANNEL = 'muster_due'

export function createAnnouncements(): Announcements {
  /** PostgreSQL also notifies the node that announced, which ignores its own ID. */
  const notifier = randomUUID()
  const subscriptions = new Map<string, Set<Subscription>>()
  const publish: Announcements['publish'] = (topicName, payload) => {
    for (const { receive } of subscriptions.get(topicName) ?? []) receive(payload)
  }
  return {
    publish,
    subscribe(topic, listener) {
      const subscription: Subscription = { receive: listener }
      const ofTopic = subscriptions.get(topic.name) ?? new Set()
      subscriptions.set(topic.name, ofTopic.add(subscription))
      return () => void ofTopic.delete(subscription)
    },
    notifyStatement: (topicName) => `NOTIFY ${NOTIFY_CHANNEL}, '${notifier} ${topicName}'`,
    receiveNotification(text) {
      const [sender, name] = text?.split(' ') ?? []
      if (sender === notifier) return
      for (const topicName of name ? [name] : subscriptions.keys()) publish(topicName)
    },
  }
}
