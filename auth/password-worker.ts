/** Hashes passwords, in each thread of the pool of password.ts. */
import { type Argon2Parameters, argon2Sync } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** On Linux, a symbolic link. Its target ends with the ID of the calling thread. */
const THREAD_LINK = '/proc/thread-self'

lowerPriority()

/** Lets requests have most of the processor time on busy cores. Hashing still gets a share. */
function lowerPriority(): void {
  try {
    const thread = Number(readlinkSync(THREAD_LINK).split('/').at(-1))
    setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // Not Linux, or the system forbids the change. Passwords work with any priority.
  }
}

export default function derive(parameters: Argon2Parameters): Uint8Array {
  return argon2Sync('argon2id', parameters)
}
