/** How the schema of a database differs from the one that this version of Muster needs. */
import { Refused } from '../../errors.ts'
import { readMigrations } from './migration-files.ts'
import type { Db } from './open.ts'
import { type DatabaseSchema, readExpectedSchema, readSchema, type TableSchema } from './schema.ts'
import type { Dialect } from './statements.ts'

/** Names such as "table webhooks", "column webhooks.url" or "index deliveries_waiting". */
interface SchemaDifference {
  missing: string[]
  different: string[]
  /** Muster does not need these: a newer version or the operator added them. */
  additional: string[]
  /** Missing indexes of searches. PostgreSQL cannot create them without the extension pg_trgm, and
   *  searches work without them, but take longer. An operator may create them with other settings. */
  missingSearches: string[]
}

const SEARCH_INDEX = /gin_trgm_ops/

/** In the database of a newer version, keys and indexes may be missing or different: that version may
 *  have replaced them. */
export async function findSchemaDifference(db: Db): Promise<SchemaDifference> {
  const [expected, actual, isNewer] = await Promise.all([
    readExpectedSchema(db.dialect),
    readSchema(db),
    hasNewerMigrations(db),
  ])
  const found = compareObjects(namedObjects(expected, actual), namedObjects(actual, expected))
  const isNeeded = (name: string): boolean => !isNewer || /^(table|column) /.test(name)
  return {
    ...found,
    missing: found.missing.filter(isNeeded),
    different: found.different.filter(isNeeded),
  }
}

/** Has a newer version than this one run migrations? */
async function hasNewerMigrations({ read }: Db): Promise<boolean> {
  const newest = (await readMigrations()).at(-1)?.name ?? ''
  return (await read('migrations').where('name', '>', newest).first('name')) !== undefined
}

/** The reason why this version cannot use the database, as a sentence. Undefined: it can. */
export function describeSchemaProblem(
  { missing, different }: SchemaDifference,
  dialect: Dialect,
): string | undefined {
  if (missing.length === 0 && different.length === 0) return undefined
  return [
    'The schema of the database is not the one that this version of Muster needs.',
    ...(missing.length > 0 ? [`Missing: ${missing.join(', ')}.`] : []),
    ...(different.length > 0 ? [`Different: ${different.join(', ')}.`] : []),
    `Change the schema back to that of records/schema.${dialect}.json, or restore a backup.`,
  ].join(' ')
}

/** Throws `Refused` when this version cannot use the database. Returns the names of additional
 *  objects. */
export async function assertSchema(db: Db): Promise<string[]> {
  const difference = await findSchemaDifference(db)
  const problem = describeSchemaProblem(difference, db.dialect)
  if (problem !== undefined) throw new Refused(problem)
  return difference.additional
}

/** Definitions by name. A table that `other` lacks is listed without its columns, keys,
 *  indexes and triggers. */
function namedObjects(schema: DatabaseSchema, other: DatabaseSchema): Map<string, string> {
  const objects = Object.entries(schema).flatMap(([table, contents]) => [
    [`table ${table}`, ''] as const,
    ...(table in other ? namedContents(table, contents) : []),
  ])
  return new Map(objects)
}

function namedContents(table: string, { columns, keys, indexes, triggers = {} }: TableSchema) {
  const named = (objects: Record<string, string>, prefix: string) =>
    Object.entries(objects).map(([name, sql]) => [prefix + name, sql] as const)
  return [
    ...named(columns, `column ${table}.`),
    ...named(keys, `key ${table}.`),
    ...named(indexes, 'index '),
    ...named(triggers, `trigger ${table}.`),
  ]
}

function compareObjects(
  expected: Map<string, string>,
  actual: Map<string, string>,
): SchemaDifference {
  const names = [...expected.keys()]
  const isSearch = (name: string): boolean => SEARCH_INDEX.test(expected.get(name) ?? '')
  const missing = names.filter((name) => !actual.has(name))
  return {
    missing: missing.filter((name) => !isSearch(name)),
    different: names.filter(
      (name) => actual.has(name) && actual.get(name) !== expected.get(name) && !isSearch(name),
    ),
    additional: [...actual.keys()].filter((name) => !expected.has(name)),
    missingSearches: missing.filter(isSearch),
  }
}
