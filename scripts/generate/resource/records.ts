/** The source text of the records file of a resource. */
import { commentText, literal } from '../typescript-text.ts'
import type { ColumnKind, Field } from './fields.ts'
import { isNullableColumn, nullableSorts } from './migration.ts'
import type { Resource } from './resource.ts'

export function renderRecords(resource: Resource): string {
  const { table, typeName, variable, create, fields, update } = resource
  const row = `${typeName}Row`
  return `${renderImports(resource)}
export type ${typeName} = components['schemas']['${typeName}']
type New${typeName} = Body<'${create.id}'>

interface ${row} {
  id: string
${linesFor(fields, (field) => `  ${field.name}: ${rowType(field, typeName)}`)}
  created_at: number
  updated_at: number
}

function fromRow(row: ${row}): ${typeName} {
  return {
    id: row.id,
${linesFor(fields, (field) => `    ${field.name}: ${contractValue(field)},`)}
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
  }
}

export const ${variable}Listing: Listing<${row}, ${typeName}> = {
  table: '${table}',
  fromRow,${renderSearchFilter(resource)}${renderNullable(resource)}
}

${renderSearchText(resource)}${throwsComment(createdReferences(resource))}export async function insert${typeName}(
  scope: WriteScope,
  input: New${typeName},
  now: Date,
): Promise<${typeName}> {
${renderCreationChecks(resource)}  const row: ${row} = {
    id: newId(),
${linesFor(fields, (field) => `    ${insertedProperty(field)},`)}
    created_at: now.getTime(),
    updated_at: now.getTime(),
  }
${renderInsertion(resource)}}
${update ? renderUpdate(resource) : ''}${resource.delete ? renderDelete(resource) : ''}`
}

function renderImports(resource: Resource): string {
  const { fields, search, update } = resource
  const fromLists = [
    'type Listing',
    ...(fields.some(needsToMillis) ? ['toMillis'] : []),
    ...(fields.some((field) => isTime(field) && field.nullable) ? ['toNullableTimestamp'] : []),
    'toTimestamp',
  ]
  const fromReferences = [
    ...(fields.some(({ reference }) => reference) ? ['assertReference'] : []),
    ...(createdReferences(resource).length > 0 ? ['withStoredIds'] : []),
  ]
  return [
    "import type { components } from '../generated/openapi.ts'",
    "import type { Body } from '../generated/operations.ts'",
    ...(update ? ["import { nextUpdatedAt } from './changes.ts'"] : []),
    "import type { WriteScope } from './database/scope.ts'",
    "import { newId } from './ids.ts'",
    `import { ${fromLists.join(', ')} } from './list.ts'`,
    ...(fromReferences.length > 0
      ? [`import { ${fromReferences.join(', ')} } from './references.ts'`]
      : []),
    ...(search.length > 0 ? ["import { containing, foldText } from './search.ts'"] : []),
    '',
  ].join('\n')
}

const linesFor = (fields: Field[], line: (field: Field) => string): string =>
  fields.map(line).join('\n')

const isTime = ({ kind }: Field): boolean => kind === 'time'

/** Whether the generated code calls `toMillis` for the field: it converts a time of a request, or
 *  the default of a time. */
function needsToMillis(field: Field): boolean {
  return isTime(field) && (field.creation ?? field.change ?? field.initial ?? null) !== null
}

const ROW_TYPES: Record<ColumnKind, string> = {
  text: 'string',
  uuid: 'string',
  integer: 'number',
  bigInteger: 'number',
  double: 'number',
  // SQLite stores 0 and 1.
  boolean: 'boolean | number',
  time: 'number',
  json: 'string',
}

function rowType({ name, kind, nullable, options }: Field, typeName: string): string {
  if (options) return `${typeName}['${name}']`
  return ROW_TYPES[kind] + (isNullableColumn({ kind, nullable }) ? ' | null' : '')
}

/** The expression that converts the column of `row` to the value in the contract. */
function contractValue({ name, kind, nullable }: Field): string {
  if (kind === 'json') return `JSON.parse(row.${name})`
  if (kind === 'time') return `${nullable ? 'toNullableTimestamp' : 'toTimestamp'}(row.${name})`
  if (kind === 'boolean')
    return nullable ? `row.${name} === null ? null : Boolean(row.${name})` : `Boolean(row.${name})`
  return `row.${name}`
}

/** A reference that create requests can have needs no expression: `renderCreationChecks` declares a
 *  variable with its name. */
function insertedProperty(field: Field): string {
  return field.reference && field.creation ? field.name : `${field.name}: ${insertedValue(field)}`
}

/** The value of the column in a new row, as an expression. */
function insertedValue({ name, kind, creation, isRequired, initial }: Field): string {
  if (creation === undefined) return storedValue(kind, literal(initial))
  const input =
    isRequired || initial === undefined ? `input.${name}` : `input.${name} ?? ${literal(initial)}`
  if (kind === 'time' && (creation.nullable || !isRequired))
    return `input.${name} ? toMillis(input.${name}) : ${storedValue(kind, literal(initial ?? null))}`
  return storedValue(kind, input)
}

/** The expression that converts `value`, an expression too, to what the column stores. */
function storedValue(kind: ColumnKind, value: string): string {
  if (kind === 'json') return `JSON.stringify(${value})`
  return kind === 'time' && value !== 'null' ? `toMillis(${value})` : value
}

function renderNullable(resource: Resource): string {
  const names = nullableSorts(resource)
  return names.length === 0 ? '' : `\n  nullable: ${literal(names)},`
}

function renderUpdate(resource: Resource): string {
  const { table, typeName, fields, search } = resource
  const changed = fields.filter(({ change }) => change !== undefined)
  const converted = changed.flatMap(({ name, kind }) => {
    if (kind === 'time') return `...(changes.${name} && { ${name}: toMillis(changes.${name}) }), `
    if (kind === 'json')
      return `...(changes.${name} !== undefined && { ${name}: JSON.stringify(changes.${name}) }), `
    return []
  })
  if (search.length > 0) converted.push('search_text: searchText({ ...current, ...changes }), ')
  const references = changed.filter(({ reference }) => reference)
  const checks = references.map((field) => renderCheck(field, `changes.${field.name}`)).join('')
  return `
${throwsComment(references)}export async function update${typeName}Fields(
  scope: WriteScope,
  current: ${typeName},
  changes: Partial<${typeName}>,
  now: Date,
): Promise<${typeName}> {
${checks}  const row = { ...changes, ${converted.join('')}updated_at: nextUpdatedAt(current, now) }
  const [updated] = await scope.rows('${table}').where({ id: current.id }).update(row).returning('*')
  return fromRow(updated as ${typeName}Row)
}
`
}

function renderDelete({ table, typeName }: Resource): string {
  return `
export async function delete${typeName}Row(scope: WriteScope, id: string): Promise<void> {
  await scope.rows('${table}').where({ id }).delete()
}
`
}

function createdReferences({ fields }: Resource): Field[] {
  return fields.filter(({ reference, creation }) => reference && creation)
}

function throwsComment(references: Field[]): string {
  if (references.length === 0) return ''
  const nouns = references.map(({ reference }) => reference?.noun ?? '')
  const others = nouns.slice(0, -1).join(', ')
  const list = commentText(`${others === '' ? '' : `${others} or `}${nouns.at(-1)}`)
  return `/** Throws \`InvalidInput\` for an unknown ${list}. */\n`
}

function renderCreationChecks(resource: Resource): string {
  const references = createdReferences(resource)
  if (references.length === 0) return ''
  const names = references.map(({ name, isRequired }) => (isRequired ? name : `${name} = null`))
  const checks = references.map((field) => renderCheck(field, field.name))
  return `  const { ${names.join(', ')} } = withStoredIds(input)\n${checks.join('')}`
}

function renderCheck({ name, reference }: Field, value: string): string {
  return `  await assertReference(scope, '${name}', '${reference?.table}', ${value})\n`
}

function renderInsertion({ table, search, variable }: Resource): string {
  if (search.length === 0)
    return `  await scope.insert('${table}', row)
  return fromRow(row)
`
  return `  const ${variable} = fromRow(row)
  await scope.insert('${table}', { ...row, search_text: searchText(${variable}) })
  return ${variable}
`
}

function renderSearchFilter({ table, search }: Resource): string {
  if (search.length === 0) return ''
  return `\n  filters: { search: (value, scope) => containing(scope, '${table}', value) },`
}

function renderSearchText({ typeName, fields, search }: Resource): string {
  if (search.length === 0) return ''
  const values = search.map((name) =>
    fields.some((field) => field.name === name && field.nullable) ? `${name} ?? ''` : name,
  )
  const text =
    values.length === 1 ? values[0] : `\`${values.map((value) => `\${${value}}`).join('\\n')}\``
  const names = search.map((name) => `'${name}'`).join(' | ')
  return `const searchText = ({ ${search.join(', ')} }: Pick<${typeName}, ${names}>): string =>
  foldText(${text})

`
}
