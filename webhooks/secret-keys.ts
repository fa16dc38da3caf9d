/** Checks that the secret keys of this process fit the database, and decides which one encrypts. */
import { Refused } from '../errors.ts'
import type { Db } from '../records/database/open.ts'
import type { Sql } from '../records/database/statements.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import {
  findSecretKeyState,
  insertFirstCheckValue,
  type SecretKeyState,
} from '../records/secret-keys.ts'
import { listSealedSecrets } from '../records/webhook-secrets.ts'
import type { HeaderChange } from './transport/custom-headers.ts'
import {
  checkValueOf,
  listKeys,
  openWithKey,
  type SecretKeys,
  sealSecret,
} from './transport/secret.ts'

type TrxSql = Pick<Trx, 'dialect' | 'sql'>

/** The message tells the operator which key to set. */
export class WrongSecretKey extends Refused {
  override name = 'WrongSecretKey'
}

/** Throws `WrongSecretKey` when the keys do not fit the database. The first call stores the
 *  check value of the key from `findFirstKey`. */
export async function proveSecretKeys(db: Db, keys: SecretKeys): Promise<void> {
  await transaction(db, (trx) => lockSecretKeys(trx, keys))
}

/** A sentence for the operator when the keys do not fit the database. Undefined: they fit, or the
 *  database has no key yet. */
export async function findSecretKeyProblem(db: Db, keys: SecretKeys): Promise<string | undefined> {
  const state = await findSecretKeyState(db.read)
  return state && describeProblem(state, keys)
}

/** The key that encrypts new secrets in this transaction. Until `startRotation`
 *  (rotate-secret-key.ts) has run, a process that already has the new key still gets the previous
 *  one. `startRotation` waits for the end of this transaction. Throws `WrongSecretKey` when the
 *  keys do not fit. */
export async function findSealingKey(trx: TrxSql, keys: SecretKeys): Promise<string> {
  const { current } = await lockSecretKeys(trx, keys)
  const key = findKey(keys, current)
  if (key === undefined) throw new WrongSecretKey(describeWrongKey(keys))
  return key
}

/** Encrypts the values of headers for `updateWebhook`. Throws `WrongSecretKey` like
 *  `findSealingKey`, but needs no key if there is nothing to encrypt. */
export async function sealHeaders(
  trx: TrxSql,
  keys: SecretKeys,
  webhookId: string,
  change: HeaderChange,
): Promise<HeaderChange> {
  const headers = Object.entries(change)
  if (headers.every(([, value]) => value === null)) return change
  const key = await findSealingKey(trx, keys)
  return Object.fromEntries(
    headers.map(([name, value]) => [name, value && sealSecret(key, webhookId, value)]),
  )
}

/** Locks the state until the end of the transaction, and returns it if the keys fit. Otherwise
 *  throws `WrongSecretKey`. If no check value is stored, stores that of the key from
 *  `findFirstKey`. With `for share`, other transactions can encrypt secrets meanwhile. */
export async function lockSecretKeys(
  { dialect, sql }: TrxSql,
  keys: SecretKeys,
  lock: 'for share' | 'for update' = 'for share',
): Promise<SecretKeyState> {
  const find = () => findSecretKeyState(sql, dialect === 'postgres' ? lock : '')
  let state = await find()
  if (!state) {
    await insertFirstCheckValue(sql, checkValueOf(await findFirstKey(sql, keys)))
    state = await find()
  }
  if (!state) throw new Error('The check value of the secret key was not stored')
  const problem = describeProblem(state, keys)
  if (problem !== undefined) throw new WrongSecretKey(problem)
  return state
}

/** The key that encrypted the first secret. If there is no secret, the newest key. */
async function findFirstKey(sql: Sql, keys: SecretKeys): Promise<string> {
  const [first] = await listSealedSecrets(sql, { limit: 1, forUpdate: true })
  if (!first) return keys.newest()
  const key = listKeys(keys).find(
    (candidate) => openWithKey(candidate, first.id, first.current) !== undefined,
  )
  if (key === undefined) throw new WrongSecretKey(describeWrongKey(keys))
  return key
}

function describeProblem(
  { current, previous }: SecretKeyState,
  keys: SecretKeys,
): string | undefined {
  const isKnown = (checkValue: string | undefined): boolean =>
    checkValue !== undefined && findKey(keys, checkValue) !== undefined
  if (!isKnown(current))
    return isKnown(previous)
      ? `The database already uses a newer key than ${keys.place}. Set SECRET_KEY to the newer key, ` +
          'and SECRET_KEY_PREVIOUS to this one.'
      : describeWrongKey(keys)
  if (previous === undefined || isKnown(previous)) return undefined
  return (
    'The rotation of SECRET_KEY has not finished: some signing secrets need the previous key. ' +
    'Set SECRET_KEY_PREVIOUS to it and run "muster secret-key rotate".'
  )
}

function describeWrongKey({ place }: SecretKeys): string {
  const remedy =
    place === 'SECRET_KEY'
      ? 'Set SECRET_KEY to the key that this installation used before.'
      : 'Restore this file from the backup of the database, or set SECRET_KEY to the key.'
  return (
    `${place} is not the key that encrypted the signing secrets in the database. ${remedy} ` +
    'If the key is lost, see "muster secret-key reset --help".'
  )
}

function findKey(keys: SecretKeys, checkValue: string): string | undefined {
  const find = (): string | undefined =>
    listKeys(keys).find((key) => checkValueOf(key) === checkValue)
  const found = find()
  if (found !== undefined) return found
  keys.reload()
  return find()
}
