/** Calls the handler of an operation, for single requests and for the items of a batch. */
import type { EventData, EventType } from '../generated/asyncapi.ts'
import { handlers } from '../generated/handlers.ts'
import type { components } from '../generated/openapi.ts'
import type { OperationId } from '../generated/operations.ts'
import type { Call, Caller, DownloadAudit, ValidInput } from '../handlers/call.ts'
import { type FieldChange, listFieldChanges } from '../records/changes.ts'
import type { Scope } from '../records/database/scope.ts'
import type { MergePatch } from '../records/merge-patch.ts'
import type { Quotas } from '../records/quotas.ts'
import type { NewEvent } from '../webhooks/emit.ts'
import type { Audit, WebhookConfig } from '../webhooks/webhook-changes.ts'
import { assertRecordSize } from './record-size.ts'

interface Handling<Id extends OperationId> {
  input: ValidInput<Id>
  caller: Caller
  mergePatch?: MergePatch
  /** Throws when the record must not be changed. */
  assertMatch?: (current: object) => void
}

type Emitters = Pick<Call<OperationId>, 'emit' | 'emitUpdate' | 'emitUpdates'>

/** What an operation that writes gets in addition to `scope` and `now`. */
interface WriteContext extends Emitters {
  quotas: Quotas
  audit: Audit
  /** Only for the operation of a batch. */
  runBatch?(body: components['schemas']['Batch']): Promise<object>
}

/** Returns the result of the handler. Throws `InvalidInput` when the record is too large. */
export async function handle<Id extends OperationId>(
  id: Id,
  { assertMatch, ...handling }: Handling<Id>,
  context: {
    scope: Scope
    now: Date
    config?: WebhookConfig
    auditDownload?: DownloadAudit
  } & Partial<WriteContext>,
): Promise<unknown> {
  const { input } = handling
  let before: object | undefined
  const call = {
    ...input,
    ...handling,
    ...context,
    /** Also keeps the record before the change, for `assertRecordSize`. */
    assertMatch(current: object) {
      assertMatch?.(current)
      before = current
    },
  }
  const result = await handlers[id](call as unknown as Call<Id>)
  // A batch calls `handle` for each of its items.
  if (input.body && !context.runBatch)
    assertRecordSize({ record: result, before, sent: input.body })
  return result
}

/** `add` records the events. */
export function newEmitters(add: (events: NewEvent[]) => Promise<void>): Emitters {
  const emitUpdates = (eventType: EventType, resourceIds: string[], changes: FieldChange[]) =>
    add(resourceIds.map((resourceId) => ({ eventType, resourceId, data: [], changes })))
  return {
    emit: (eventType: EventType, resourceId: string, data: EventData[EventType] = []) =>
      add([{ eventType, resourceId, data }]),
    emitUpdate: (eventType, before, after) =>
      emitUpdates(eventType, [before.id], listFieldChanges(before, after)),
    emitUpdates,
  }
}
