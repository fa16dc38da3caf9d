import { type Argon2Parameters, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { dictionary } from '@zxcvbn-ts/language-common'
import { Piscina } from 'piscina'
import { Refused, StatusError } from '../errors.ts'

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, two passes and one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 }
const SALT_BYTES = 16
const TAG_BYTES = 32
export const MIN_PASSWORD_LENGTH = 8
const MAX_LENGTH = 200
const HASHING_THREADS = Math.max(1, availableParallelism() - 1)
/** A hash takes about 60 ms, so with one thread, the last hash in the queue waits for about two
 *  seconds. */
const MAX_QUEUED_HASHES = 30
const RETRY_AFTER_SECONDS = 5
const IDLE_THREAD_MS = 30_000

/** The pool of threads that hash, one for the process. It leaves one core for requests, if there
 *  are several. The threads of libuv are not used: SQLite needs them, and each one that ran argon2
 *  would keep the memory of argon2. */
const hashing = new Piscina<Argon2Parameters, Uint8Array>({
  filename: fileURLToPath(new URL('./password-worker.ts', import.meta.url)),
  minThreads: 0,
  maxThreads: HASHING_THREADS,
  maxQueue: MAX_QUEUED_HASHES,
  idleTimeout: IDLE_THREAD_MS,
})

/** Passwords of published leaks, in lower case. */
const COMMON_PASSWORDS = new Set(dictionary['passwords-common'])

/** Throws `Refused` for a password that is too short, too long or easy to guess: a common one, one
 *  repeated character, or one of `names`, such as the user's email. There are no other rules (NIST
 *  SP 800-63B, 5.1.1.2). */
export function assertPassword(password: string, names: string[] = []): void {
  const length = [...password].length
  if (length < MIN_PASSWORD_LENGTH)
    throw new Refused(`The password must be at least ${MIN_PASSWORD_LENGTH} characters long`)
  if (length > MAX_LENGTH)
    throw new Refused(`The password must be at most ${MAX_LENGTH} characters long`)
  const lowerCase = password.normalize('NFKC').toLowerCase()
  if (COMMON_PASSWORDS.has(lowerCase) || new Set(lowerCase).size === 1)
    throw new Refused('This password is in lists of common passwords: choose another one')
  if (names.some((name) => name.trim().toLowerCase() === lowerCase))
    throw new Refused('The password must not be your email or a name: choose another one')
}

/** Returns the hash in the PHC string format, which contains the cost, so that older hashes stay
 *  valid when the cost is raised. Throws `Refused` as `assertPassword` does, and 503 while the
 *  queue is full. */
export async function hashPassword(password: string): Promise<string> {
  assertPassword(password)
  const salt = randomBytes(SALT_BYTES)
  const tag = await tagOf(password, salt, COST)
  const cost = `m=${COST.memory},t=${COST.passes},p=${COST.parallelism}`
  return `$argon2id$v=19$${cost}$${base64(salt)}$${base64(tag)}`
}

const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

/** `hash` is null for an unknown user, and for a user without a password. The check then takes as
 *  long as for a wrong password, so that timing does not reveal which emails exist. An unreadable
 *  hash matches nothing. Throws 503 while the queue is full. */
export async function verifyPassword(hash: string | null, password: string): Promise<boolean> {
  if ([...password].length > MAX_LENGTH) return false
  const [, memory, passes, parallelism, salt, tag] = hash?.match(PHC) ?? []
  if (salt === undefined || tag === undefined) {
    await tagOf(password, Buffer.alloc(SALT_BYTES), COST)
    return false
  }
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  const expected = Buffer.from(tag, 'base64')
  const actual = await tagOf(password, Buffer.from(salt, 'base64'), cost)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

/** Letters and digits that are not confused with each other. */
const READABLE = 'abcdefghijkmnpqrstuvwxyz23456789'

/** Four groups of five characters: 100 random bits that are easy to read out and type. */
export function newPassword(): string {
  const group = (): string =>
    Array.from({ length: 5 }, () => READABLE[randomInt(READABLE.length)]).join('')
  return Array.from({ length: 4 }, group).join('-')
}

let formsInProgress = 0

/** Runs `work`, which handles a submitted form and hashes its password. When the forms in progress
 *  fill the threads and the queue, throws 503 instead: `work` then neither queries the database nor
 *  counts a wrong password. */
export async function whileQueueHasRoom<T>(work: () => Promise<T>): Promise<T> {
  if (formsInProgress >= HASHING_THREADS + MAX_QUEUED_HASHES) throwBusy()
  formsInProgress++
  try {
    return await work()
  } finally {
    formsInProgress--
  }
}

function throwBusy(): never {
  throw new StatusError(503, 'The service is busy. Try again in a few seconds.', {
    'Retry-After': String(RETRY_AFTER_SECONDS),
  })
}

type Cost = Pick<Argon2Parameters, 'memory' | 'passes' | 'parallelism'>

/** Returns the output of argon2id, which RFC 9106 calls the tag. Normalises the password first,
 *  because keyboards compose characters differently (NIST SP 800-63B, 5.1.1.2). Throws 503 while
 *  the queue is full. */
async function tagOf(password: string, salt: Buffer, cost: Cost): Promise<Buffer> {
  if (hashing.queueSize >= MAX_QUEUED_HASHES) throwBusy()
  const message = password.normalize('NFKC')
  const parameters = { message, nonce: salt, tagLength: TAG_BYTES, ...cost }
  return Buffer.from(await hashing.run(parameters))
}

const base64 = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
