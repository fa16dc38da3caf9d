/** Runs in a thread of the pool of password.ts. */
import { type Argon2Parameters, argon2Sync } from 'node:crypto'
import { existsSync, readlinkSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** Names the calling thread on Linux, the only system that has priorities of threads. */
const OWN_THREAD = '/proc/thread-self'

// On busy cores, requests precede passwords.
if (existsSync(OWN_THREAD))
  setPriority(Number(readlinkSync(OWN_THREAD).split('/').at(-1)), constants.priority.PRIORITY_LOW)

export default function derive(parameters: Argon2Parameters): Uint8Array {
  return argon2Sync('argon2id', parameters)
}
