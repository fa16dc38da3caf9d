/** The check values of the secret keys, which encrypt the signing secrets. A check value identifies
 *  a key without revealing it. */
import { type Sql, select } from './database/statements.ts'

export interface SecretKeyState {
  /** The check value of the key that encrypts new secrets. */
  current: string
  /** The check value of the key that still encrypts some secrets, until a rotation has finished. */
  previous: string | undefined
}

/** Undefined: no key is stored yet. `lock` is only for PostgreSQL: it keeps the state from changing
 *  until the transaction ends. SQLite has one writer. */
export async function findSecretKeyState(
  sql: Sql,
  lock: '' | 'for share' | 'for update' = '',
): Promise<SecretKeyState | undefined> {
  const rows = await select<{ name: string; check_value: string }>(
    sql,
    `select name, check_value from secret_keys order by name ${lock}`,
    [],
  )
  const values = new Map(rows.map(({ name, check_value }) => [name, check_value]))
  const current = values.get('current')
  return current === undefined ? undefined : { current, previous: values.get('previous') }
}

/** Does nothing if a key is stored already. */
export async function insertFirstCheckValue(sql: Sql, checkValue: string): Promise<void> {
  await sql('secret_keys')
    .insert({ name: 'current', check_value: checkValue })
    .onConflict('name')
    .ignore()
}

/** Replaces the state. Call it with the state locked `for update`. */
export async function updateSecretKeyState(
  sql: Sql,
  { current, previous }: SecretKeyState,
): Promise<void> {
  await sql('secret_keys').where({ name: 'current' }).update({ check_value: current })
  await sql('secret_keys').where({ name: 'previous' }).delete()
  if (previous !== undefined)
    await sql('secret_keys').insert({ name: 'previous', check_value: previous })
}
