/** Batches in a mock with state: the items are creates and updates of its records. */
import { InvalidInput, StatusError } from '../../errors.ts'
import { type OperationId, type OperationRow, operations } from '../../generated/operations.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import type { Batch } from '../words/batches.ts'
import type { Change, MockRecords } from './records.ts'
import type { Json } from './values.ts'

/** The parts of the service that decide what an item does. */
export interface BatchParts {
  batchKindOf(operation: OperationRow): object | undefined
  /** Throws the error of the service for an item that it refuses. */
  prepareItem(
    kind: object,
    idsByKey: ReadonlyMap<string, string>,
    item: unknown,
  ): { operation: OperationId; path: Record<string, string>; body: object }
  assertRecordSize(write: { record: object; before: object | undefined; sent: object }): void
  /** Throws the error of the service for an atomic batch with a refused item. */
  toBatchResponse(outcomes: object[], body: unknown): object
}

export interface BatchOutcome {
  /** Undefined: the response has the body of the example. */
  body: unknown
  changes: { operation: Operation; change: Change }[]
}

/** Changes nothing when it throws. */
export function performBatch(
  records: MockRecords,
  contract: Contract,
  service: BatchParts,
  batch: Batch,
  sent: Json,
): BatchOutcome {
  const changes: BatchOutcome['changes'] = []
  const kind = service.batchKindOf(operations[batch.operation.id as OperationId]) ?? {}
  const perform = (item: unknown): object => {
    const step = service.prepareItem(kind, records.idsBy(batch.create.path, batch.key), item)
    const operation = contract.operations.find(({ id }) => id === step.operation) ?? batch.create
    records.assertFound(operation, step.path)
    const body: Json = { ...step.body }
    const call = { operation, path: step.path, query: {}, sent: body, isMergePatch: false }
    const before = records.find(call)
    service.assertRecordSize({ record: { ...before, ...body }, before, sent: body })
    const outcome = records.perform(call)
    if (outcome?.change) changes.push({ operation, change: outcome.change })
    return { record: outcome?.body, isCreated: before === undefined }
  }
  return records.undoOnError(() => {
    const outcomes = (sent.items as unknown[]).map((item) => {
      try {
        return perform(item)
      } catch (error) {
        if (error instanceof InvalidInput || error instanceof StatusError) return { refusal: error }
        throw error
      }
    })
    return { body: service.toBatchResponse(outcomes, sent), changes }
  })
}
