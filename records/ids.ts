import { randomFillSync } from 'node:crypto'
import { NIL, v7 as uuidv7 } from 'uuid'

/** Sorts before all IDs. */
export const LOWEST_ID: string = NIL

const ID_BYTES = 16
const ZERO_BYTES = new Uint8Array(ID_BYTES)
/** Bytes for many IDs: a call of the random generator for each ID would take most of its time. */
const random = { bytes: new Uint8Array(256 * ID_BYTES), used: Number.POSITIVE_INFINITY }
/** The IDs of a process keep their order when its clock goes back by at most this. */
const MAX_STEP_BACK_MS = 60_000

/** Module state: IDs are created in many places, and a process works on one database. */
const state = { now: () => Date.now(), lastMs: Number.NEGATIVE_INFINITY, sequence: 0 }

export function useClockForIds(now: () => Date): void {
  state.now = () => now().getTime()
}

/** A UUIDv7 that sorts after the last one of this process, unless the clock has gone back by more
 *  than `MAX_STEP_BACK_MS`. */
export function newId(): string {
  const now = state.now()
  if (now > state.lastMs || state.lastMs - now > MAX_STEP_BACK_MS) {
    state.lastMs = now
    state.sequence = Math.floor(Math.random() * 2 ** 31)
  } else state.sequence++
  return uuidv7({ msecs: state.lastMs, seq: state.sequence, random: randomBytes() })
}

function randomBytes(): Uint8Array {
  if (random.used >= random.bytes.length) {
    randomFillSync(random.bytes)
    random.used = 0
  }
  random.used += ID_BYTES
  return random.bytes.subarray(random.used - ID_BYTES, random.used)
}

/** When an ID was created, in epoch milliseconds. RFC 9562 §5.7: the first 48 bits of a UUIDv7. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16)
}

/** The lowest possible ID created at or after a time. IDs are UUIDv7, so the rows of a time span
 *  are a range of IDs. */
export function lowestIdAt(epochMs: number): string {
  return uuidv7({ msecs: Math.max(0, epochMs), seq: 0, random: ZERO_BYTES })
}
