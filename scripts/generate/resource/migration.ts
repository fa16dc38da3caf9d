/** The migration that creates the table of a resource. */
import type { ColumnKind, Field } from './fields.ts'
import { fieldOf } from './query.ts'
import type { Resource } from './resource.ts'

const IS_POSTGRES = "  const postgres = knex.client.config.client === 'pg'\n"
const TEXT_TYPE = "  const textType = postgres ? 'text collate \"C\"' : 'text'\n"

export function renderMigration(resource: Resource): string {
  const { table, fields, search } = resource
  const hasText = fields.some(({ kind }) => kind === 'text')
  const indexes = [
    ...fields.flatMap((field) => (field.reference ? [renderReferenceIndex(table, field)] : [])),
    ...indexedColumns(resource).map((column) => renderIndex(table, column)),
    ...nullableSorts(resource).map((column) => renderDescendingIndex(table, column)),
  ]
  const dependsOnDatabase = hasText || nullableSorts(resource).length > 0
  const constants = (dependsOnDatabase ? IS_POSTGRES : '') + (hasText ? TEXT_TYPE : '')
  const columns = fields.map((field) => `    ${column(field)}\n`)
  if (search.length > 0) {
    columns.push(SEARCH_COLUMN)
    indexes.push(`  await createSearchIndex(knex, '${table}')`)
  }
  const counted = countedColumn(resource)
  if (counted !== undefined) indexes.push(`  await countChanges(knex, '${table}', '${counted}')`)
  const imports =
    (counted === undefined ? '' : COUNT_IMPORT) + (search.length > 0 ? SEARCH_IMPORT : '')
  return `import type { Knex } from 'knex'
${imports}
export async function up(knex: Knex): Promise<void> {
${constants}  await knex.schema.createTable('${table}', (table) => {
    table.uuid('id').notNullable()
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
${columns.join('')}    table.bigInteger('created_at').notNullable()
    table.bigInteger('updated_at').notNullable()
    table.primary(['account_id', 'id'])
${fields.map(renderReference).join('')}  })
${indexes.join('\n')}
}
`
}

const COUNT_IMPORT = "import { countChanges } from './count-tools.ts'\n"
const SEARCH_IMPORT = "import { createSearchIndex } from './search-index.ts'\n"
const SEARCH_COLUMN = "    table.specificType('search_text', textType).notNullable()\n"

function column(field: Field): string {
  const { name, kind } = field
  const type = COLUMN_TYPES[kind]?.(name) ?? `${kind}('${name}')`
  const nullability = isNullableColumn(field) ? 'nullable' : 'notNullable'
  return `table.${type}.${nullability}()`
}

/** With the account, so that no record refers to one of another account. */
function renderReference({ name, reference }: Field): string {
  if (!reference) return ''
  const target = `.references(['account_id', 'id']).inTable('${reference.table}')`
  return `    table.foreign(['account_id', '${name}'])${target}\n`
}

/** For the kinds that use a Knex method with another name than the kind. */
const COLUMN_TYPES: Partial<Record<ColumnKind, (name: string) => string>> = {
  text: (name) => `specificType('${name}', textType)`,
  time: (name) => `bigInteger('${name}')`,
  json: (name) => `text('${name}')`,
}

/** Whether the column can be null. A JSON column cannot: it stores null as the text `null`. */
export function isNullableColumn({ kind, nullable }: Pick<Field, 'kind' | 'nullable'>): boolean {
  return nullable && kind !== 'json'
}

/** The columns of filters and sorts, except references, which have an index of their own. */
function indexedColumns({ fields, filters, sorts }: Resource): string[] {
  const names = [...new Set([...filters.map(fieldOf), ...sorts])]
  return names.filter((name) => !fields.some((field) => field.name === name && field.reference))
}

/** The column by whose values the records are counted: the first filter by an enumeration. */
export function countedColumn({ fields, filters }: Resource): string | undefined {
  const isCounted = ({ kind, nullable, options }: Field): boolean =>
    options !== undefined && kind === 'text' && !nullable
  return filters.find((filter) => fields.some((field) => field.name === filter && isCounted(field)))
}

/** The reference comes first, so the index also finds the records that refer to a given record. */
const renderReferenceIndex = (table: string, { name, reference }: Field): string =>
  `  await knex.raw('create index ${table}_by_${reference?.type} on ${table} (${name}, account_id, id)')`

const renderIndex = (table: string, name: string): string =>
  `  await knex.raw('create index ${table}_by_${name} on ${table} (account_id, ${name}, id)')`

/** Lists have nulls last in both sort directions. PostgreSQL needs this index for the descending
 *  one. */
const renderDescendingIndex = (table: string, name: string): string =>
  `  if (postgres)
    await knex.raw(
      'create index ${table}_by_${name}_desc on ${table} (account_id, ${name} desc nulls last, id desc)',
    )`

/** Nullable fields that the list can be sorted by. */
export function nullableSorts({ fields, sorts }: Resource): string[] {
  return fields
    .filter(({ name, nullable }) => nullable && sorts.includes(name))
    .map(({ name }) => name)
}
