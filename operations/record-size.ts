/** A record is at most 40 KiB as JSON when it is written, so a page of 100 records is at most 4
 *  MiB. */
import { InvalidInput } from '../errors.ts'
import contract from '../generated/openapi.json' with { type: 'json' }

const MAX_RECORD_BYTES = contract['x-max-record-bytes']
/** In a stored record that is too large, a field of up to this size may still grow. */
const SMALL_FIELD_BYTES = 1024

interface Write {
  /** The record after the write. */
  record: unknown
  /** The record before the write. Undefined for a new record. */
  before: unknown
  /** The body that the client sent. */
  sent: object
}

/** If the record is too large, throws `InvalidInput` for the sent field that has grown most. A new
 *  field of the contract may make stored records too large. They can be updated as long as their
 *  large fields do not grow. */
export function assertRecordSize({ record, before, sent }: Write): void {
  const excess = jsonBytes(record) - MAX_RECORD_BYTES
  if (excess <= 0) return
  const growth = (field: string): number => fieldBytes(record, field) - fieldBytes(before, field)
  const [grownMost] = Object.keys(sent).toSorted((one, other) => growth(other) - growth(one))
  if (grownMost === undefined) return
  if (jsonBytes(before) > MAX_RECORD_BYTES) {
    const isSmall = fieldBytes(record, grownMost) <= SMALL_FIELD_BYTES
    if (isSmall || growth(grownMost) <= 0) return
  }
  throw new InvalidInput({
    [grownMost]: [
      `makes the record larger than ${MAX_RECORD_BYTES / 1024} KiB as JSON. ` +
        `Shorten it by ${excess.toLocaleString('en')} ${excess === 1 ? 'byte' : 'bytes'}.`,
    ],
  })
}

function fieldBytes(record: unknown, field: string): number {
  return jsonBytes((record as Record<string, unknown> | undefined)?.[field])
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}
