/** What a started service hands the suite until its API has it: webhooks, and commands on
 *  deliveries. */
import type { TestedWebhook } from './receiver.ts'

/** An account without other traffic. */
export interface WebhookAccount {
  /** A Full Access key of a user with every permission. */
  key: string
  createWebhook(fields: WebhookFields): Promise<ControlledWebhook>
  findDelivery(id: string): Promise<DeliveryProgress | undefined>
  /** The delivery log, oldest attempt first. */
  listAttempts(id: string): Promise<LoggedAttempt[]>
  /** Commands on a delivery. They reject if its state does not permit the command. */
  commands: Record<'attemptNow' | 'retry' | 'resend', (id: string) => Promise<unknown>>
}

interface WebhookFields {
  url: string
  /** `*` stands for all. */
  eventTypes: string[]
  /** `by_resource`: the events of one record are delivered one by one. */
  ordering?: 'none' | 'by_resource'
}

/** Disposing of it deletes the webhook. */
export interface ControlledWebhook extends TestedWebhook {
  disable(): Promise<unknown>
  enable(): Promise<unknown>
  /** Returns the next secret, which signs nothing yet. */
  prepareSecret(): Promise<string>
  activateSecret(): Promise<unknown>
  /** Sends a test event. */
  sendTest(): Promise<unknown>
}

export interface DeliveryProgress {
  state: 'pending' | 'retrying' | 'delivered' | 'failed'
  /** The number of completed attempts. */
  attempts: number
  /** Epoch milliseconds. Null: no attempt is scheduled. */
  nextAttemptAt: number | null
}

/** What the delivery log has of an attempt. */
export interface LoggedAttempt {
  /** Null: there was no response. */
  status: number | null
  responseHeaders: Record<string, string> | null
  /** The beginning of the body. */
  responseBody: string | null
}
