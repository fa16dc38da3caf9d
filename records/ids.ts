import { v7 as uuidv7 } from 'uuid'

const ZERO_BYTES = new Uint8Array(16)

/** When an ID was created, in epoch milliseconds. RFC 9562 §5.7: the first 48 bits of a UUIDv7. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

/** The lowest possible ID created at or after a time. IDs are UUIDv7, so the rows of a time span are a
 *  range of IDs. */
export function lowestIdAt(epochMs: number): string {
  return uuidv7({ msecs: Math.max(0, epochMs), seq: 0, random: ZERO_BYTES })
}
