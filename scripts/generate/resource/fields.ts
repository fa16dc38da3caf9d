/** The fields of a generated resource: how each is stored, and where a new record gets its value
 *  from. */
import type { Contract } from '../../model/contract.ts'
import { dereference } from '../../model/references.ts'
import { readDefault, type Schema } from '../../model/schema.ts'
import { fail, type Located, type Place } from '../../model/source.ts'
import { type Reference, readReference } from './references.ts'

/** A time is stored as epoch milliseconds, JSON as text. A `uuid` refers to another record. */
export type ColumnKind =
  | 'text'
  | 'uuid'
  | 'integer'
  | 'bigInteger'
  | 'double'
  | 'boolean'
  | 'time'
  | 'json'

export interface Field {
  name: string
  kind: ColumnKind
  nullable: boolean
  /** Undefined unless the kind is `uuid`. */
  reference: Reference | undefined
  /** The values of an enumeration. */
  options: string[] | undefined
  /** The schema of the field in create requests. Undefined if they cannot have the field. */
  creation: Schema | undefined
  /** Whether a create request must have the field. */
  isRequired: boolean
  /** The value if the create request has none. Undefined for a required field without a default. */
  initial: unknown
  /** The schema of the field in updates. Undefined if they cannot have the field. */
  change: Schema | undefined
}

/** Fields that only the service sets. */
export const MANAGED_FIELDS = ['id', 'created_at', 'updated_at']

interface Schemas {
  /** The type of the record, for example `job_application`. */
  type: string
  record: Located<Schema>
  creation: Located<Schema>
  change: Located<Schema> | undefined
}

/** The fields of the record without `MANAGED_FIELDS`. Throws `ContractError` for a field that
 *  cannot be stored in a column. */
export function readFields(contract: Contract, schemas: Schemas): Field[] {
  const { sources } = contract
  const record = dereference(sources, schemas.record)
  const creation = dereference(sources, schemas.creation)
  const change = schemas.change && dereference(sources, schemas.change)
  for (const body of [creation, change]) if (body) refuseUnknownFields(record, body)
  const fields = propertiesOf(record)
  for (const name of MANAGED_FIELDS)
    if (!fields.includes(name))
      fail(record.source, record.path, `a record must have ${name}: add it to the schema`)
  const propertyOf = (schema: Located<Schema>, name: string): Located<Schema> | undefined => {
    const value = schema.value.properties?.[name]
    const path = [...schema.path, 'properties', name]
    return value && dereference(sources, { source: schema.source, path, value })
  }
  return fields
    .filter((name) => !MANAGED_FIELDS.includes(name))
    .map((name) => {
      const property = propertyOf(record, name) as Located<Schema>
      const kind = kindOf(record, property, name)
      const place = { source: record.source, path: [...record.path, 'properties', name] }
      const field: Field = {
        name,
        kind,
        reference: kind === 'uuid' ? referenceOf(contract, place, schemas.type) : undefined,
        nullable: property.value.nullable === true,
        options: property.value.enum?.filter((value) => value !== null).map(String),
        creation: propertyOf(creation, name)?.value,
        isRequired: creation.value.required?.includes(name) === true,
        initial: undefined,
        change: change && propertyOf(change, name)?.value,
      }
      const owner = field.creation ? creation : record
      return { ...field, initial: initialOf(owner, field, property) }
    })
}

function propertiesOf({ source, path, value }: Located<Schema>): string[] {
  if (value.type !== 'object' || value.properties === undefined)
    fail(source, path, 'must be an object with properties: write it without allOf, anyOf and oneOf')
  const names = Object.keys(value.properties)
  for (const name of names)
    if (!/^[a-z][a-z0-9_]*$/.test(name))
      fail(
        source,
        [...path, 'properties', name],
        `${name} must be like created_at: it names a column`,
      )
  return names
}

function refuseUnknownFields(record: Located<Schema>, body: Located<Schema>): void {
  const fields = propertiesOf(record)
  for (const name of propertiesOf(body))
    if (MANAGED_FIELDS.includes(name))
      fail(
        body.source,
        [...body.path, 'properties', name],
        `only the service sets ${name}: remove it here`,
      )
    else if (!fields.includes(name))
      fail(
        body.source,
        [...body.path, 'properties', name],
        `the record has no field ${name}: remove it here, or add it to the record`,
      )
}

const KINDS: Record<string, ColumnKind> = {
  'string date-time': 'time',
  'string uuid': 'uuid',
  integer: 'bigInteger',
  'integer int32': 'integer',
  'integer int64': 'bigInteger',
  number: 'double',
  'number float': 'double',
  'number double': 'double',
  boolean: 'boolean',
  array: 'json',
  object: 'json',
}

function kindOf(record: Located<Schema>, property: Located<Schema>, name: string): ColumnKind {
  const { type, format } = property.value
  const refuse = (problem: string): never =>
    fail(record.source, [...record.path, 'properties', name], problem)
  if (!record.value.required?.includes(name))
    refuse(
      `${name} must be in required: a record has every field, with null for one without a value`,
    )
  const kind = KINDS[format === undefined ? `${type}` : `${type} ${format}`]
  if (kind !== undefined) return kind
  if (type === 'string') return 'text'
  return refuse(
    `${name} cannot be stored in a column: give it one type without allOf, anyOf and oneOf`,
  )
}

function referenceOf(contract: Contract, place: Place, type: string): Reference {
  const name = String(place.path.at(-1))
  const reference = readReference(contract, place, name)
  if (reference.type === type)
    fail(
      place.source,
      place.path,
      `${name} refers to ${type} itself, which cannot be generated: remove the field, generate, then add it ` +
        'by hand. task_id in records/payments.ts shows how a reference is written',
    )
  return reference
}

/** The default of the field. A field without one gets undefined if it is required, null if it is
 *  nullable, or the first value of its enumeration if create requests cannot have the field. Throws
 *  `ContractError` for any other field without a default. */
function initialOf(owner: Located<Schema>, field: Field, { value }: Located<Schema>): unknown {
  const { name, creation, isRequired, nullable } = field
  const byDefault = readDefault(creation ?? {}) ?? readDefault(value)
  if (isRequired || byDefault !== undefined) return byDefault
  if (nullable) return null
  const firstOption = value.enum?.find((option) => option !== null)
  if (firstOption !== undefined && creation === undefined) return firstOption
  return fail(
    owner.source,
    [...owner.path, 'properties', name],
    `${name} has no value when the create request has none: give it a default, require it, or add nullable`,
  )
}
