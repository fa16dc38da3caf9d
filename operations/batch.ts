/** The operations that are batches, and their responses. */
import { type FieldErrors, InvalidInput } from '../errors.ts'
import type { components } from '../generated/openapi.ts'
import type { OperationRow } from '../generated/operations.ts'
import { type ItemKind, itemKindOf } from './item-steps.ts'
import type { ItemOutcome } from './items.ts'

type Batch = components['schemas']['Batch']

interface ItemResult {
  status: number
  record?: object
  message?: string
  errors?: FieldErrors
}

/** Undefined for an operation that is not a batch. */
export function batchKindOf({ batch }: OperationRow): ItemKind | undefined {
  return batch ? itemKindOf(batch.create) : undefined
}

/** Throws `InvalidInput` when the batch is atomic and an item is refused. The caller must then undo
 *  all items. */
export function toBatchResponse(
  outcomes: ItemOutcome[],
  { atomic, items }: Batch,
): { results: ItemResult[] } {
  if (atomic) assertNoneRefused(outcomes, items)
  return { results: outcomes.map(toResult) }
}

function toResult(outcome: ItemOutcome): ItemResult {
  if (!outcome.refusal) return { status: outcome.isCreated ? 201 : 200, record: outcome.record }
  const { refusal } = outcome
  const { message } = refusal
  return refusal instanceof InvalidInput
    ? { status: 422, message, errors: shorten(refusal.errors) }
    : { status: refusal.status, message }
}

/** An idempotency key stores the response, so a batch with long names of unknown fields must not
 *  make it long. */
const MAX_FIELDS = 10
const MAX_NAME_CHARACTERS = 200

function shorten(errors: FieldErrors): FieldErrors {
  const fields = Object.entries(errors).slice(0, MAX_FIELDS)
  return Object.fromEntries(
    fields.map(([name, messages]) => [name.slice(0, MAX_NAME_CHARACTERS), messages]),
  )
}

/** The names in `errors` that are not fields of `data`. */
const OUTSIDE_DATA = ['id', 'records']

function assertNoneRefused(outcomes: ItemOutcome[], items: Batch['items']): void {
  const errors: FieldErrors = Object.create(null)
  for (const [index, { refusal }] of outcomes.entries()) {
    if (refusal === undefined) continue
    if (refusal instanceof InvalidInput) {
      for (const [field, messages] of Object.entries(refusal.errors)) {
        const path = OUTSIDE_DATA.includes(field) ? field : `data.${field}`
        errors[`items.${index}.${path}`] = messages
      }
    } else if (refusal.status === 404) {
      const path = items[index]?.id === undefined ? 'data.external_id' : 'id'
      errors[`items.${index}.${path}`] = [refusal.message]
    } else throw refusal
  }
  if (Object.keys(errors).length > 0) throw new InvalidInput(errors)
}
