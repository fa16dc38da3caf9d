/** IDs, and references between the records of an account. */
import type { Knex } from 'knex'
import { InvalidInput } from '../errors.ts'
import { operations } from '../generated/operations.ts'
import { uniqueViolation } from './database/errors.ts'
import type { Scope } from './database/scope.ts'
import { countFound, idIn, select } from './database/statements.ts'

/** The fields and filters that hold the ID of a record. The path parameters `{task}` and `{task_id}` both give
 *  the field `task_id`. */
const ID_FIELDS = new Set([
  'id',
  'resource_id',
  ...Object.values(operations).flatMap(({ path }) => {
    const name = /\{(\w+?)(?:_id)?\}/.exec(path)?.[1]
    return name === undefined ? [] : [`${name}_id`]
  }),
])

/** The stored form of a UUID. The contract also accepts upper case, which SQLite compares as
 *  another text, and `urn:uuid:`, which PostgreSQL refuses. */
export function toStoredId(uuid: string): string {
  return uuid.toLowerCase().replace('urn:uuid:', '')
}

function toStored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toStored)
  return typeof value === 'string' ? toStoredId(value) : value
}

/** Converts the references in a client's input to stored IDs. */
export function withStoredIds<T extends object>(input: T): T {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name,
      ID_FIELDS.has(name) ? toStored(value) : value,
    ]),
  ) as T
}

/** Throws `InvalidInput` when the account has no record with `id`, an ID in its stored form.
 *  Accepts null and undefined, which are no references. Locks the record against deletion until the transaction
 *  ends. */
export async function assertReference(
  scope: Scope,
  field: string,
  table: string,
  id: string | null | undefined,
): Promise<void> {
  if (id === null || id === undefined || scope.lockedReferences?.has(`${table} ${id}`)) return
  const row: unknown = await scope.rows(table).where({ id }).forKeyShare().first('id')
  if (row !== undefined) return
  const noun = field.replace(/_id$/, '').replaceAll('_', ' ')
  const article = /^[aeiou]/.test(noun) ? 'an' : 'a'
  throw new InvalidInput({ [field]: [`does not name ${article} ${noun} of your account.`] })
}

/** Locks the records with one of the IDs as `assertReference` does, all at once. Returns them as
 *  `lockedReferences` of a scope. */
export async function lockReferences(
  scope: Scope,
  table: string,
  ids: string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const query = scope.rows(table).whereIn('id', ids.map(toStoredId))
  const found: string[] = await query.orderBy('id').forKeyShare().pluck('id')
  return found.map((id) => `${table} ${id}`)
}

/** A function that turns the violation of the unique index of external IDs into `InvalidInput`, and
 *  returns any other error as it is. */
export function toExternalIdTaken(noun: string): (error: unknown) => unknown {
  return (error) =>
    uniqueViolation(error)?.includes('external_id')
      ? new InvalidInput({ external_id: [`is used by another ${noun}.`] })
      : error
}

/** Accepts each form of ID that the contract accepts. `forUpdate` locks the row until the
 *  transaction ends. */
export async function findRow<Row>(
  scope: Scope,
  table: string,
  id: string,
  { forUpdate = false } = {},
): Promise<Row | undefined> {
  const query: Knex.QueryBuilder = scope.rows(table).where({ id: toStoredId(id) })
  const [row] = await (forUpdate ? query.forUpdate() : query)
  return row as Row | undefined
}

/** Finds the records with one of the IDs or external IDs, and locks them until the transaction ends.
 *  All transactions lock them in the same order, so that none waits for another one that waits for
 *  it. */
export async function lockRecords(
  scope: Scope,
  table: string,
  { ids, externalIds }: { ids: string[]; externalIds: string[] },
): Promise<{ id: string; external_id: string | null }[]> {
  if (ids.length + externalIds.length === 0) return []
  return scope
    .rows(table)
    .where((query) =>
      query.whereIn('id', ids.map(toStoredId)).orWhereIn('external_id', externalIds),
    )
    .orderBy('id')
    .forUpdate()
    .select('id', 'external_id')
}

export function countRows(
  scope: Scope,
  table: string,
  where: Record<string, string>,
): Promise<number> {
  return countFound(scope.rows(table).where(where))
}

/** The number of rows with each of the IDs in `column`, by ID. */
export async function countReferring(
  scope: Scope,
  { table, column }: { table: string; column: string },
  ids: string[],
): Promise<Map<string, number>> {
  const { sql, bindings } = idIn(scope.dialect, ids, column)
  const rows = await select<{ id: string; total: number }>(
    scope.sql,
    `select ${column} as id, count(*) as total from ${table}
     where account_id = ? and ${sql} group by ${column}`,
    [scope.accountId, ...bindings],
  )
  return new Map(rows.map(({ id, total }) => [id, Number(total)]))
}

/** Sets a reference to null in all records that have it. Returns the IDs of these records. */
export async function clearReferences(
  scope: Scope,
  { table, column }: { table: string; column: string },
  id: string,
  now: Date,
): Promise<string[]> {
  // The rule of `nextUpdatedAt` in changes.ts.
  const updated_at = scope.sql.raw('case when updated_at < ? then ? else updated_at + 1 end', [
    now.getTime(),
    now.getTime(),
  ])
  const rows = (await scope
    .rows(table)
    .where({ [column]: id })
    .update({ [column]: null, updated_at })
    .returning('id')) as { id: string }[]
  return rows.map((row) => row.id).sort()
}

/** `2 job applications`, `1 payment`. */
export function countNoun(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? '' : 's'}`
}
