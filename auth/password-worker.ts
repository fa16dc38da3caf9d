/** Runs in a thread of the pool of password.ts. */
import { type Argon2Parameters, argon2Sync } from 'node:crypto'

export default function derive(parameters: Argon2Parameters): Uint8Array {
  return argon2Sync('argon2id', parameters)
}
