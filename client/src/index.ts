/** A typed client of the API, and verification of webhooks. All types come from openapi.yaml and asyncapi.yaml. */
export type {
  DeliveredType,
  EventData,
  EventPayloads,
  EventType,
} from '../../generated/asyncapi.ts'
export type * from '../../generated/openapi.ts'
export { type Answer, createMuster, type Muster, type MusterOptions } from './client.ts'
export { MusterError } from './error.ts'
export type { ListPath, ListQuery, Page, RecordOf } from './pages.ts'
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookRefused,
} from './webhook.ts'
