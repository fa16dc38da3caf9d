/** A record is at most 40 KiB as JSON when it is written, so a page of 100 records is at most 4
 *  MiB. */
import { InvalidInput } from '../errors.ts'
import contract from '../generated/openapi.json' with { type: 'json' }

const MAX_RECORD_BYTES = contract['x-max-record-bytes']
/** A field that cannot be the reason for the size of a record that is too large already. */
const SMALL_FIELD_BYTES = 1024

interface Write {
  /** The record after the write. */
  record: unknown
  /** The record before the write. Undefined for a new one. */
  before: unknown
  /** The body that the client sent. */
  sent: object
}

/** Throws `InvalidInput` for the sent field that has grown most. A larger record, stored before
 *  there was a limit, can still be updated as long as its large fields do not grow. */
export function assertRecordSize({ record, before, sent }: Write): void {
  const excess = jsonBytes(record) - MAX_RECORD_BYTES
  if (excess <= 0) return
  const growth = (field: string): number => fieldBytes(record, field) - fieldBytes(before, field)
  const [largest] = Object.keys(sent).toSorted((one, other) => growth(other) - growth(one))
  if (largest === undefined) return
  if (jsonBytes(before) > MAX_RECORD_BYTES) {
    const isSmall = fieldBytes(record, largest) <= SMALL_FIELD_BYTES
    if (isSmall || growth(largest) <= 0) return
  }
  throw new InvalidInput({
    [largest]: [
      `makes the record larger than ${MAX_RECORD_BYTES / 1024} KiB as JSON. ` +
        `Shorten it by ${excess.toLocaleString('en')} bytes.`,
    ],
  })
}

function fieldBytes(record: unknown, field: string): number {
  return jsonBytes((record as Record<string, unknown> | undefined)?.[field])
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}
