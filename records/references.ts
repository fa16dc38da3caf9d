/** IDs, and references between the records of an account. */
import type { Knex } from 'knex'
import { InvalidInput } from '../errors.ts'
import type { Scope } from './database/scope.ts'

const SINGULARS: Record<string, string> = {
  participants: 'participant',
  tasks: 'task',
  jobs: 'job',
}

const ID_FIELDS = new Set(['participant_id', 'task_id', 'job_id', 'resource_id'])

/** The stored form of a UUID. The contract also accepts upper case, which SQLite compares as another text, and
 *  `urn:uuid:`, which PostgreSQL refuses. */
function toStoredId(uuid: string): string {
  return uuid.toLowerCase().replace('urn:uuid:', '')
}

/** Converts the references in a client's input to stored IDs. */
export function withStoredIds<T extends object>(input: T): T {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name,
      ID_FIELDS.has(name) && typeof value === 'string' ? toStoredId(value) : value,
    ]),
  ) as T
}

/** Throws `InvalidInput` unless `id`, as it is stored, is null, undefined or that of a record of the account. Locks the
 *  record against deletion until the transaction ends. */
export async function assertReference(
  scope: Scope,
  field: string,
  table: string,
  id: string | null | undefined,
): Promise<void> {
  if (id === null || id === undefined) return
  const query = scope.rows(table).where({ id }).select('id')
  const rows = await (scope.dialect === 'postgres' ? query.forKeyShare() : query)
  if (rows.length === 0)
    throw new InvalidInput({ [field]: [`does not name a ${SINGULARS[table]} of your account.`] })
}

/** `forUpdate` locks the row until the transaction ends. */
export async function findRow<Row>(
  scope: Scope,
  table: string,
  id: string,
  { forUpdate = false } = {},
): Promise<Row | undefined> {
  const query: Knex.QueryBuilder = scope.rows(table).where({ id: toStoredId(id) })
  const [row] = await (forUpdate && scope.dialect === 'postgres' ? query.forUpdate() : query)
  return row as Row | undefined
}

export async function countRows(
  scope: Scope,
  table: string,
  where: Record<string, string>,
): Promise<number> {
  const [row] = (await scope.rows(table).where(where).count({ total: '*' })) as { total: number }[]
  return Number(row?.total ?? 0)
}

/** Sets a reference to null in all records that have it. Returns their IDs. */
export async function clearReferences(
  scope: Scope,
  { table, column }: { table: string; column: string },
  id: string,
  now: Date,
): Promise<string[]> {
  // Like `nextUpdatedAt`.
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
