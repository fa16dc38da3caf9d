import { v7 as uuidv7 } from 'uuid'

const NOTHING_RANDOM = new Uint8Array(16)

/** The lowest id that can have been made at that time or later (epoch milliseconds): ids are UUIDv7, and so the rows of a time are a range of them. */
export function lowestIdAt(epochMs: number): string {
  return uuidv7({ msecs: Math.max(0, epochMs), seq: 0, random: NOTHING_RANDOM })
}
