/** The webhooks and deliveries of the run's account. */
import type { Contract } from '../model/contract.ts'
import type { JsonObject } from '../model/json.ts'
import { assertStatus } from './contract-broken.ts'
import type { TestedWebhook } from './receiver.ts'
import { newRequest, type Run } from './run.ts'

export interface WebhookAccount {
  createWebhook(fields: WebhookFields): Promise<ControlledWebhook>
  /** With its attempts, the oldest first. */
  findDelivery(id: string): Promise<DeliveryProgress & { attempts: LoggedAttempt[] }>
  /** Makes an attempt now. Rejects if the state of the delivery or its webhook does not permit it. */
  retry(id: string): Promise<unknown>
  resend(id: string): Promise<unknown>
}

interface WebhookFields {
  url: string
  /** `*` stands for all. */
  event_types: string[]
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
  attempt_count: number
  /** Null: no attempt is scheduled. */
  next_attempt_at: string | null
}

/** What the delivery log has of an attempt. */
export interface LoggedAttempt {
  /** Null: there was no response. */
  status: number | null
  response_headers: Record<string, string> | null
  /** The beginning of the body. */
  response_body: string | null
}

/** Whether the contract has operations for webhooks and deliveries. */
export function hasWebhooks({ operations }: Contract): boolean {
  return operations.some(({ id }) => id === 'createWebhook')
}

export function webhookAccountOf(run: Run): WebhookAccount {
  /** Throws ContractBroken unless the operation succeeds. */
  async function call(id: string, recordId = '', body?: JsonObject): Promise<JsonObject> {
    const operation = run.contract.operations.find((one) => one.id === id)
    if (operation === undefined) throw new Error(`The contract has no operation ${id}`)
    const request = newRequest(run, operation, operation.path.replace(/\{.+\}/, recordId), { body })
    const { status, json } = await run.send(operation, request)
    const expected = operation.success.status
    assertStatus(request, status, { check: 'deliveries', expected, what: id })
    return (json ?? {}) as JsonObject
  }
  return {
    async createWebhook(fields) {
      const { id, secret } = (await call('createWebhook', '', { ...fields })) as Record<
        string,
        string
      >
      return {
        secret: secret ?? '',
        disable: () => call('updateWebhook', id, { enabled: false }),
        enable: () => call('updateWebhook', id, { enabled: true }),
        prepareSecret: async () => String((await call('prepareWebhookSecret', id)).next_secret),
        activateSecret: () => call('activateWebhookSecret', id),
        sendTest: () => call('testWebhook', id),
        async [Symbol.asyncDispose]() {
          await call('deleteWebhook', id)
        },
      }
    },
    findDelivery: async (id) => (await call('getDelivery', id)) as never,
    retry: (id) => call('retryDelivery', id),
    resend: (id) => call('resendDelivery', id),
  }
}
