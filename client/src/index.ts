/** A typed client of the API, and webhook verification. The types come from openapi.yaml and
 *  asyncapi.yaml. */
export type {
  DeliveredType,
  EventData,
  EventPayloads,
  EventType,
} from '../../generated/asyncapi.ts'
export type * from '../../generated/openapi.ts'
// The names after `as` must stay: programs that use this package already import them.
export {
  type ApiResponse as Answer,
  createMuster,
  type Muster,
  type MusterOptions,
} from './client.ts'
export { type ChangeOutcome, MusterError } from './error.ts'
export type {
  ListedRecord as RecordOf,
  ListParameters as ListQuery,
  ListPath,
  ResultPage as Page,
} from './pages.ts'
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookRefused,
} from './webhook.ts'
