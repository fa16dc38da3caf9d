/** Ids, and references between records of an account. */
import type { Knex } from 'knex'
import { InvalidInput } from '../errors.ts'
import type { Scope } from './database/scope.ts'

const NAMES: Record<string, string> = { participants: 'participant', tasks: 'task', jobs: 'job' }

const ID_FIELDS = new Set(['participant_id', 'task_id', 'job_id', 'resource_id'])

/** A UUID as it is stored. The contract's format also takes it in upper case and as `urn:uuid:`, which PostgreSQL would refuse. */
function toId(uuid: string): string {
  return uuid.toLowerCase().replace('urn:uuid:', '')
}

/** What a client gave, with the ids of other records as they are stored. */
export function withStoredIds<T extends object>(given: T): T {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      ID_FIELDS.has(name) && typeof value === 'string' ? toId(value) : value,
    ]),
  ) as T
}

/** Throws InvalidInput unless `id`, as it is stored, is null, absent, or a record of the account, which then cannot be deleted before the
 *  transaction ends. */
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
    throw new InvalidInput({ [field]: [`does not name a ${NAMES[table]} of your account.`] })
}

/** The record of an account, locked against changes by others when it is about to be changed. */
export async function findRow<Row>(
  scope: Scope,
  table: string,
  id: string,
  { forUpdate = false } = {},
): Promise<Row | undefined> {
  const query: Knex.QueryBuilder = scope.rows(table).where({ id: toId(id) })
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

/** Clears a reference in every record that holds it. Returns the ids of those records. */
export async function clearReferences(
  scope: Scope,
  table: string,
  column: string,
  id: string,
  now: Date,
): Promise<string[]> {
  // As nextUpdatedAt: a record's version moves on with each change.
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
