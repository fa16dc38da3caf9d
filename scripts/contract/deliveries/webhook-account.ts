/** The webhooks and deliveries of the run's account. */
import type { Contract } from '../../model/contract.ts'
import type { JsonObject } from '../../model/json.ts'
import { assertStatus, failuresOf } from '../contract-broken.ts'
import { operationOf } from '../record-kinds.ts'
import { newRequest, type Run } from '../run.ts'

const broken = failuresOf('stored_values')

export type WebhookAccount = ReturnType<typeof webhookAccountOf>
export type ControlledWebhook = Awaited<ReturnType<WebhookAccount['createWebhook']>>

interface WebhookFields {
  url: string
  /** `*` stands for all. */
  event_types: string[]
  /** `by_resource`: the events of one record are delivered one by one. */
  ordering?: 'none' | 'by_resource'
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

export function webhookAccountOf(run: Run) {
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
    if (written !== current) {
      const message = `GET returned the ETag ${current}, but ${id} ${written}`
      throw broken(read.request, message, [changed.request])
    }
    run.tested(id, 'header etag', 'ETag')
    return changed.json
  }
  return {
    /** Disposing of the webhook deletes it. */
    async createWebhook(fields: WebhookFields) {
      const created = await call('createWebhook', '', { ...fields })
      const id = String(created.id)
      return {
        secret: String(created.secret),
        disable: () => call('updateWebhook', id, { enabled: false }),
        enable: () => call('updateWebhook', id, { enabled: true }),
        /** Returns the next secret, which signs nothing yet. */
        prepareSecret: async () =>
          String((await changeSecret('prepareWebhookSecret', id)).next_secret),
        activateSecret: () => changeSecret('activateWebhookSecret', id),
        sendTest: () => call('testWebhook', id),
        async [Symbol.asyncDispose]() {
          await call('deleteWebhook', id)
        },
      }
    },
    /** With its attempts, the oldest first. */
    async findDelivery(id: string) {
      const delivery: unknown = await call('getDelivery', id)
      return delivery as DeliveryProgress & { attempts: LoggedAttempt[] }
    },
    /** Makes an attempt now. Rejects if the state of the delivery or its webhook does not permit it. */
    retry: (id: string) => call('retryDelivery', id),
    resend: (id: string) => call('resendDelivery', id),
  }
}
