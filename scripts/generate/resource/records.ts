/** The records file of a resource and the migration of its table. */
import { literal } from '../typescript-text.ts'
import type { ColumnKind, Field } from './fields.ts'
import { fieldOf, type Resource } from './resource.ts'

export function writeRecords(resource: Resource): string {
  const { table, typeName, variable, create, fields, update } = resource
  const row = `${typeName}Row`
  return `${writeImports(resource)}
export type ${typeName} = components['schemas']['${typeName}']
type New${typeName} = Body<'${create.id}'>

interface ${row} {
  id: string
${lines(fields, (field) => `  ${field.name}: ${rowType(field, typeName)}`)}
  created_at: number
  updated_at: number
}

function fromRow(row: ${row}): ${typeName} {
  return {
    id: row.id,
${lines(fields, (field) => `    ${field.name}: ${fromRow(field)},`)}
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const ${variable}Listing: Listing<${row}, ${typeName}> = {
  table: '${table}',
  fromRow,${writeNullable(resource)}
}

export async function insert${typeName}(scope: WriteScope, input: New${typeName}, now: Date): Promise<${typeName}> {
  const row: ${row} = {
    id: newId(),
${lines(fields, (field) => `    ${field.name}: ${inserted(field)},`)}
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
  await scope.insert('${table}', { ...row })
  return fromRow(row)
}
${update ? writeUpdate(resource) : ''}${resource.delete ? writeDelete(resource) : ''}`
}

function writeImports({ fields, update, delete: deletion }: Resource): string {
  const times = [
    ...(fields.some(isTimeOfClients) ? ['toMillis'] : []),
    ...(fields.some((field) => isTime(field) && field.nullable) ? ['toNullableTimestamp'] : []),
    'toTimestamp',
  ]
  const scopes = update || deletion ? 'Scope, WriteScope' : 'WriteScope'
  return [
    "import type { components } from '../generated/openapi.ts'",
    "import type { Body } from '../generated/operations.ts'",
    ...(update ? ["import { nextUpdatedAt } from './changes.ts'"] : []),
    `import type { ${scopes} } from './database/scope.ts'`,
    "import { newId } from './ids.ts'",
    `import { type Listing, ${times.join(', ')} } from './list.ts'`,
    '',
  ].join('\n')
}

const lines = (fields: Field[], line: (field: Field) => string): string =>
  fields.map(line).join('\n')

const isTime = ({ kind }: Field): boolean => kind === 'time'

function isTimeOfClients(field: Field): boolean {
  return isTime(field) && (field.creation ?? field.change ?? field.initial ?? null) !== null
}

const ROW_TYPES: Record<ColumnKind, string> = {
  text: 'string',
  integer: 'number',
  bigInteger: 'number',
  double: 'number',
  // SQLite has 0 and 1.
  boolean: 'boolean | number',
  time: 'number',
  json: 'string',
}

function rowType({ name, kind, nullable, options }: Field, typeName: string): string {
  if (options) return `${typeName}['${name}']`
  return ROW_TYPES[kind] + (isNullableColumn({ kind, nullable }) ? ' | null' : '')
}

/** JSON has a null of its own. */
function isNullableColumn({ kind, nullable }: Pick<Field, 'kind' | 'nullable'>): boolean {
  return nullable && kind !== 'json'
}

function fromRow({ name, kind, nullable }: Field): string {
  if (kind === 'json') return `JSON.parse(row.${name})`
  if (kind === 'time') return `${nullable ? 'toNullableTimestamp' : 'toTimestamp'}(row.${name})`
  if (kind === 'boolean')
    return nullable ? `row.${name} === null ? null : Boolean(row.${name})` : `Boolean(row.${name})`
  return `row.${name}`
}

/** The value of the column in a new row. */
function inserted({ name, kind, creation, isRequired, initial }: Field): string {
  if (creation === undefined) return stored(kind, literal(initial))
  const input =
    isRequired || initial === undefined ? `input.${name}` : `input.${name} ?? ${literal(initial)}`
  if (kind === 'time' && (creation.nullable || !isRequired))
    return `input.${name} ? toMillis(input.${name}) : ${initial === null ? null : stored(kind, literal(initial))}`
  return stored(kind, input)
}

/** The stored form of an expression. */
function stored(kind: ColumnKind, value: string): string {
  if (kind === 'json') return `JSON.stringify(${value})`
  return kind === 'time' && value !== 'null' ? `toMillis(${value})` : value
}

function writeNullable(resource: Resource): string {
  const names = nullableSorts(resource)
  return names.length === 0 ? '' : `\n  nullable: ${literal(names)},`
}

function writeUpdate({ table, typeName, fields }: Resource): string {
  const changed = fields.filter(({ change }) => change !== undefined)
  const converted = changed.flatMap(({ name, kind }) => {
    if (kind === 'time') return `...(changes.${name} && { ${name}: toMillis(changes.${name}) }), `
    if (kind === 'json')
      return `...(changes.${name} !== undefined && { ${name}: JSON.stringify(changes.${name}) }), `
    return []
  })
  return `
export async function update${typeName}Fields(
  scope: Scope,
  current: ${typeName},
  changes: Partial<${typeName}>,
  now: Date,
): Promise<${typeName}> {
  const row = { ...changes, ${converted.join('')}updated_at: nextUpdatedAt(current, now) }
  const [updated] = await scope.rows('${table}').where({ id: current.id }).update(row).returning('*')
  return fromRow(updated as ${typeName}Row)
}
`
}

function writeDelete({ table, typeName }: Resource): string {
  return `
export async function delete${typeName}Row(scope: Scope, id: string): Promise<void> {
  await scope.rows('${table}').where({ id }).delete()
}
`
}

const IS_POSTGRES = "  const postgres = knex.client.config.client === 'pg'\n"
const TEXT_TYPE = "  const textType = postgres ? 'text collate \"C\"' : 'text'\n"

export function writeMigration(resource: Resource): string {
  const { table, fields } = resource
  const hasText = fields.some(({ kind }) => kind === 'text')
  const indexes = [
    ...indexedColumns(resource).map((column) => writeIndex(table, column)),
    ...nullableSorts(resource).map((column) => writeDescendingIndex(table, column)),
  ]
  const dependsOnDatabase = hasText || nullableSorts(resource).length > 0
  return `import type { Knex } from 'knex'

export async function up(knex: Knex): Promise<void> {
${dependsOnDatabase ? IS_POSTGRES : ''}${hasText ? TEXT_TYPE : ''}  await knex.schema.createTable('${table}', (table) => {
    table.uuid('id').primary()
    table.uuid('account_id').notNullable().references('accounts.id').onDelete('cascade')
${lines(fields, (field) => `    ${column(field)}.${isNullableColumn(field) ? 'nullable' : 'notNullable'}()`)}
    table.bigInteger('created_at').notNullable()
    table.bigInteger('updated_at').notNullable()
  })
  await knex.raw('create index ${table}_by_id on ${table} (account_id, id)')
${indexes.join('\n')}
}
`
}

function column({ name, kind }: Field): string {
  if (kind === 'text') return `table.specificType('${name}', textType)`
  if (kind === 'time') return `table.bigInteger('${name}')`
  if (kind === 'json') return `table.text('${name}')`
  return `table.${kind}('${name}')`
}

/** The columns that filters and sorts use. */
function indexedColumns({ filters, sorts }: Resource): string[] {
  return [...new Set([...filters.map(fieldOf), ...sorts])]
}

const writeIndex = (table: string, name: string): string =>
  `  await knex.raw('create index ${table}_by_${name} on ${table} (account_id, ${name}, id)')`

/** Nulls come last in both directions, for which PostgreSQL needs a second index. */
const writeDescendingIndex = (table: string, name: string): string =>
  `  if (postgres)
    await knex.raw(
      'create index ${table}_by_${name}_desc on ${table} (account_id, ${name} desc nulls last, id desc)',
    )`

/** Nullable fields that the list can be sorted by. */
function nullableSorts({ fields, sorts }: Resource): string[] {
  return fields
    .filter(({ name, nullable }) => nullable && sorts.includes(name))
    .map(({ name }) => name)
}
