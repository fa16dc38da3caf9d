/** A handler runs one operation: it takes a `Call` and returns the result, or throws `StatusError`
 *  or `InvalidInput`. */
import { Readable } from 'node:stream'
import { StatusError } from '../errors.ts'
import type { EventData } from '../generated/asyncapi.ts'
import type {
  Body,
  Emits,
  FileBody,
  OperationId,
  operations,
  PathParams,
  QueryParams,
  SuccessBody,
} from '../generated/operations.ts'
import type { AuditTarget } from '../records/audit-log.ts'
import type { FieldChange } from '../records/changes.ts'
import type { Scope, WriteScope } from '../records/database/scope.ts'
import type { MergePatch } from '../records/merge-patch.ts'
import type { Quotas } from '../records/quotas.ts'
import type { Audit, WebhookConfig } from '../webhooks/webhook-changes.ts'

/** The user on whose behalf an operation runs. */
export interface Caller {
  accountId: string
  userId: string
  finance: 'none' | 'read' | 'write'
  /** Undefined for a user of the console. */
  apiKey?: { id: string; rateLimit: { limit: number; window_seconds: number } }
}

/** An operation's parameters and body, valid by the contract: lists are arrays, integers are
 *  numbers, defaults are filled in. */
export interface ValidInput<Id extends OperationId> {
  path: PathParams<Id>
  query: QueryParams<Id>
  body: Body<Id>
}

/** Events of these types say what changed. */
type UpdateType = `${string}.updated`

export interface Call<Id extends OperationId> extends ValidInput<Id> {
  /** The account's records. An operation that writes runs in a transaction, which commits before
   *  the response is sent. */
  scope: (typeof operations)[Id]['access'] extends 'write' ? WriteScope : Scope
  caller: Caller
  /** The account's quotas, for an operation that writes. */
  quotas: (typeof operations)[Id]['access'] extends 'write' ? Quotas : undefined
  /** The JSON Merge Patch as sent. A null in the object of a field removes an entry; `body` has no
   *  such nulls. Undefined: the client sent no JSON Merge Patch. */
  mergePatch: MergePatch | undefined
  now: Date
  config: WebhookConfig
  /** Writes an entry of the audit log, for an operation that writes. */
  audit: (typeof operations)[Id]['access'] extends 'write' ? Audit : undefined
  /** Writes the entry of a download into the audit log, for an operation that reads. Call it before the
   *  first byte. */
  auditDownload: (typeof operations)[Id]['access'] extends 'write' ? undefined : DownloadAudit
  /** Records an event in the same transaction. Only the types in the operation's `x-emits`
   *  compile. */
  emit<Type extends Exclude<Emits<Id>, UpdateType>>(
    type: Type,
    resourceId: string,
    ...data: EventData[Type] extends [] ? [] : [EventData[Type]]
  ): Promise<void>
  /** Records the event of an update, with what differs between the two versions of the record. */
  emitUpdate<Item extends { id: string }>(
    type: Extract<Emits<Id>, UpdateType>,
    before: Item,
    after: Item,
  ): Promise<void>
  /** Records the event of the same update for each of several records. */
  emitUpdates(
    type: Extract<Emits<Id>, UpdateType>,
    resourceIds: string[],
    changes: FieldChange[],
  ): Promise<void>
  /** Runs the items of a batch. Only operations that are batches have it. */
  runBatch(body: Body<Id>): Promise<SuccessBody<Id>>
  /** Call it with the locked record before a change. Throws 412 when the client named another
   *  version of the record, for example with `If-Match`. */
  assertMatch(current: object): void
}

/** Commits before it returns. */
export type DownloadAudit = (target: AuditTarget, details: Record<string, unknown>) => Promise<void>

/** The status of the response is the contract's success status. `ETag` and `Location` are derived
 *  from the result. */
export type Handler<Id extends OperationId> = (call: Call<Id>) => Promise<SuccessBody<Id>>

/** The handler of an operation without an implementation. The API does not call it: it responds
 *  with 501 itself to requests that are authenticated and valid. */
export function notImplemented<Id extends OperationId>(id: Id): Handler<Id> {
  const handler: Handler<Id> = async () => throwNotImplemented(id)
  return Object.assign(handler, { isNotImplemented: true })
}

export function throwNotImplemented(id: OperationId): never {
  throw new StatusError(501, `${id} is not implemented yet.`)
}

export function isNotImplemented(handler: object): boolean {
  return 'isNotImplemented' in handler
}

export function isFile(result: unknown): result is FileBody {
  return (result as FileBody | undefined)?.stream instanceof Readable
}
