/** The webhooks and deliveries of the run's account. */
import type { Contract } from '../model/contract.ts'
import type { JsonObject } from '../model/json.ts'
import { assertStatus, ContractBroken } from './contract-broken.ts'
import type { TestedWebhook } from './receiver.ts'
import { operationOf } from './record-kinds.ts'
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
  async function exchange(id: string, recordId: string, body?: JsonObject) {
    const operation = operationOf(run.contract, id)
    const request = newRequest(run, operation, operation.path.replace(/\{.+\}/, recordId), { body })
    const response = await run.send(operation, request)
    const expected = operation.success.status
    assertStatus(request, response.status, { check: 'deliveries', expected, what: id })
    return { request, ...response, json: (response.json ?? {}) as JsonObject }
  }
  async function call(id: string, recordId = '', body?: JsonObject): Promise<JsonObject> {
    return (await exchange(id, recordId, body)).json
  }
  /** Throws unless a GET of the webhook has the ETag of the response. */
  async function changeSecret(id: string, webhookId: string): Promise<JsonObject> {
    const changed = await exchange(id, webhookId)
    const read = await exchange('getWebhook', webhookId)
    const [written, current] = [changed, read].map(({ headers }) => headers.get('etag'))
    if (written !== current)
      throw new ContractBroken(
        'stored_values',
        read.request,
        `GET returned the ETag ${current}, but ${id} ${written}`,
        [changed.request],
      )
    run.tested(id, 'header etag', 'ETag')
    return changed.json
  }
  return {
    async createWebhook(fields) {
      const { id, secret } = (await call('createWebhook', '', { ...fields })) as {
        id: string
        secret: string
      }
      return {
        secret,
        disable: () => call('updateWebhook', id, { enabled: false }),
        enable: () => call('updateWebhook', id, { enabled: true }),
        prepareSecret: async () =>
          String((await changeSecret('prepareWebhookSecret', id)).next_secret),
        activateSecret: () => changeSecret('activateWebhookSecret', id),
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
