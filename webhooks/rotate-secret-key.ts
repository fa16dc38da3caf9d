/** Replaces the key that encrypts the signing secrets. The nodes may run during a rotation. */
import { Refused } from '../errors.ts'
import type { Db } from '../records/database/open.ts'
import { type Trx, transaction } from '../records/database/transaction.ts'
import { updateSecretKeyState } from '../records/secret-keys.ts'
import { listSealedSecrets, updateSealedSecrets } from '../records/webhook-secrets.ts'
import { countWebhooks } from '../records/webhooks.ts'
import { findSealingKey, findSecretKeyProblem, lockSecretKeys } from './secret-keys.ts'
import {
  checkValueOf,
  openSecret,
  openWithKey,
  type SecretKeys,
  SecretUnreadable,
  sealSecret,
} from './transport/secret.ts'

/** The webhooks of a batch stay locked until the batch is committed, and their attempts wait. */
const BATCH_SIZE = 100

/** Returns whether the newest key encrypts all secrets. If the database has no check value
 *  (`checkValueOf`) yet, stores one. Throws `WrongSecretKey` if the keys do not fit the
 *  database. */
export async function checkRotated(db: Db, keys: SecretKeys): Promise<boolean> {
  const { current, previous } = await transaction(db, (trx) => lockSecretKeys(trx, keys))
  return current === checkValueOf(keys.newest()) && previous === undefined
}

/** Makes every node encrypt new secrets with the newest key. The previous key stays necessary until
 *  `reencryptSecrets` has finished. Throws `WrongSecretKey` as `checkRotated` does. */
export async function startRotation(db: Db, keys: SecretKeys): Promise<void> {
  await transaction(db, async (trx) => {
    const { current } = await lockSecretKeys(trx, keys, 'for update')
    const newest = checkValueOf(keys.newest())
    if (current !== newest)
      await updateSecretKeyState(trx.sql, { current: newest, previous: current })
  })
}

export interface Reencrypted {
  /** How many webhooks have secrets that are encrypted with the newest key now. */
  webhooks: number
  /** The IDs of the webhooks whose secrets no key can read. */
  unreadable: string[]
}

/** Encrypts every secret with the newest key. Can be interrupted and repeated at any point.
 *  `onProgress` gets the number of webhooks that are done, and of all webhooks. */
export async function reencryptSecrets(
  db: Db,
  keys: SecretKeys,
  onProgress: (done: number, total: number) => void,
): Promise<Reencrypted> {
  const newest = checkValueOf(keys.newest())
  const total = await countWebhooks(db.read)
  const unreadable: string[] = []
  let done = 0
  let batch: Batch | undefined
  do {
    const afterId = batch?.lastId
    batch = await transaction(db, (trx) => reencryptBatch(trx, keys, afterId))
    unreadable.push(...batch.unreadable)
    done += batch.count
    if (batch.count > 0) onProgress(done, Math.max(done, total))
  } while (batch.lastId !== undefined)
  await transaction(db, async (trx) => {
    const { current } = await lockSecretKeys(trx, keys, 'for update')
    // If another rotation has begun since, its previous key may still be necessary.
    if (current === newest) await updateSecretKeyState(trx.sql, { current, previous: undefined })
  })
  return { webhooks: done - unreadable.length, unreadable }
}

interface Batch {
  count: number
  /** Undefined: there are no more webhooks. */
  lastId: string | undefined
  unreadable: string[]
}

async function reencryptBatch(
  trx: Trx,
  keys: SecretKeys,
  afterId: string | undefined,
): Promise<Batch> {
  const key = await findSealingKey(trx, keys)
  const rows = await listSealedSecrets(trx.sql, { afterId, limit: BATCH_SIZE, forUpdate: true })
  const unreadable: string[] = []
  for (const { id, url, current, next, headers } of rows) {
    let isChanged = false
    const reseal = (sealed: string): string => {
      if (openWithKey(key, id, sealed) !== undefined) return sealed
      isChanged = true
      return sealSecret(key, id, openSecret(keys, id, sealed))
    }
    const resealHeader = ([name, value]: [string, string]) => [name, reseal(value)] as const
    try {
      const resealed = {
        url: url === null ? null : reseal(url),
        current: reseal(current),
        next: next === null ? null : reseal(next),
        headers: Object.fromEntries(Object.entries(headers).map(resealHeader)),
      }
      if (isChanged) await updateSealedSecrets(trx.sql, id, resealed)
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error
      unreadable.push(id)
    }
  }
  return { count: rows.length, lastId: rows.at(-1)?.id, unreadable }
}

/** Gives up a lost key: the newest key encrypts new secrets, and the secrets that the lost key
 *  encrypted stay unreadable. Throws `Refused` when no key is lost. */
export async function abandonLostKey(db: Db, keys: SecretKeys): Promise<void> {
  if ((await findSecretKeyProblem(db, keys)) === undefined)
    throw new Refused(`${keys.place} fits the database. No key is lost.`)
  await transaction(db, ({ sql }) =>
    updateSecretKeyState(sql, { current: checkValueOf(keys.newest()), previous: undefined }),
  )
}
