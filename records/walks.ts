/** The totals of lists, and what a node remembers of the lists that clients read page by page. */
import { hash } from 'node:crypto'
import { RecentMap } from '../runtime/recent-map.ts'
import type { Position } from './cursor.ts'
import type { Scope } from './database/scope.ts'
import { type Condition, select } from './database/statements.ts'
import { countAtVersion, findStoredCount, findVersion, hasVersion } from './record-counts.ts'

const MAX_ACCOUNTS = 200
const MAX_WALKS_PER_ACCOUNT = 10
const MAX_STARTS = 8

/** A list with its filters, sorts and page size. */
export interface List {
  table: string
  filters: Record<string, unknown>
  where: Condition
  sorts: string[]
  size: number
}

/** The total and the page starts of a list at one version of its table. The node reads the version before them, or
 *  with them: if the table changes in between, no later request reads that version. */
export interface Walk {
  version: string
  total?: number
  /** By the number of a page: the last record of the page before. */
  starts: RecentMap<number, Pick<Position, 'values' | 'id'>>
}

/** By account, and by the digest of a list, which can be long. */
const accounts = new RecentMap<string, RecentMap<string, Walk>>(MAX_ACCOUNTS)

const digestOf = ({ table, where, sorts, size }: List): string =>
  hash('sha256', JSON.stringify([table, where, sorts, size]), 'base64url')

function walkAt({ accountId }: Scope, list: List, version: string): Walk {
  const walks = accounts.get(accountId) ?? new RecentMap(MAX_WALKS_PER_ACCOUNT)
  accounts.set(accountId, walks)
  const digest = digestOf(list)
  const known = walks.get(digest)
  if (known?.version === version) return known
  const walk: Walk = { version, starts: new RecentMap(MAX_STARTS) }
  walks.set(digest, walk)
  return walk
}

/** Undefined if nothing that the node remembers can help. `isLater`: the page is not the first, and its number
 *  says where it starts. */
export async function findWalk(
  scope: Scope,
  list: List,
  isLater: boolean,
): Promise<Walk | undefined> {
  const { table, filters } = list
  if (!hasVersion(table)) return undefined
  const isKnown = (): boolean => accounts.get(scope.accountId)?.get(digestOf(list)) !== undefined
  const helps = isLater || (findStoredCount(scope, table, filters) === undefined && isKnown())
  return helps ? walkAt(scope, list, await findVersion(scope, table)) : undefined
}

/** The number of records in the list. Remembers it if it had to be counted, and there are more records than on
 *  one page. */
export async function countList(scope: Scope, list: List, walk: Walk | undefined): Promise<number> {
  const { table, filters, where, size } = list
  const stored = findStoredCount(scope, table, filters)
  if (stored !== undefined) return readTotal(scope, stored)
  if (!hasVersion(table)) return countRowsIn(scope, table, where)
  if (walk?.total !== undefined) return walk.total
  const { total, version } = await countAtVersion(scope, table, where)
  if (total > size) walkAt(scope, list, version).total = total
  return total
}

function countRowsIn(scope: Scope, table: string, where: Condition): Promise<number> {
  const sql = `select count(*) as total from ${table} where ${where.sql}`
  return readTotal(scope, { sql, bindings: where.bindings })
}

async function readTotal(
  { sql }: Scope,
  { sql: text, bindings, name }: Condition & { name?: string },
): Promise<number> {
  const [row] = await select<{ total: number }>(sql, text, bindings, name)
  return Number(row?.total)
}
