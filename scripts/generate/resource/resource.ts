/** A resource of the contract whose files can be generated. */
import type { Contract } from '../../model/contract.ts'
import { nearest } from '../../model/nearest.ts'
import type { MediaType, Operation } from '../../model/operations.ts'
import { dereference } from '../../model/references.ts'
import type { Schema } from '../../model/schema.ts'
import { ContractError, fail, type Located, valueAt } from '../../model/source.ts'
import { findRecordOperations, isList, typeOf } from '../resources.ts'
import { type ColumnKind, type Field, readFields } from './fields.ts'

export interface Resource {
  /** The last part of its path, for example `job-applications`. */
  slug: string
  /** `job_applications`. */
  table: string
  /** `job_application`. */
  type: string
  /** `job application`. */
  noun: string
  /** The name of the record's schema, for example `JobApplication`. */
  typeName: string
  /** `jobApplication`. */
  variable: string
  /** The path parameter with the ID of a record. */
  idParameter: string
  list: Operation
  get: Operation
  create: Operation & { body: MediaType }
  update: (Operation & { body: MediaType }) | undefined
  delete: Operation | undefined
  /** In the order of the record's schema. */
  fields: Field[]
  filters: string[]
  /** Without `-`. */
  sorts: string[]
}

/** Throws `ContractError` for a resource that the contract does not have, or whose files cannot be derived. */
export function readResource(contract: Contract, slug: string): Resource {
  const list = findList(contract, slug)
  const found = findRecordOperations(contract, list, contract.operations)
  const refuse = (problem: string): never => fail(list.place.source, list.place.path, problem)
  if (found === undefined)
    return refuse(
      `${slug} has no operation GET ${list.path}/{…}: add it, or write the files by hand`,
    )
  const { get, create, update, page, idParameter } = found
  if (!isWithBody(create))
    return refuse(
      `${slug} has no POST ${list.path} with a body: add it, or write the files by hand`,
    )
  if (update && !isWithBody(update)) return refuse(`${update.id} has no body: add it`)
  const record = itemOf(contract, page)
  const type = typeOf(idParameter)
  const fields = readFields(contract, {
    record,
    creation: create.body.schema,
    change: update?.body.schema,
  })
  const { filters, sorts } = readQuery(contract, list, fields)
  return {
    slug,
    table: slug.replaceAll('-', '_'),
    type,
    noun: type.replaceAll('_', ' '),
    typeName: nameOf(record),
    variable: type.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    idParameter,
    list,
    get,
    create,
    update,
    delete: found.delete,
    fields,
    filters,
    sorts,
  }
}

function findList(contract: Contract, slug: string): Operation {
  const { openapi, operations } = contract
  const lists = operations.filter(
    (operation) => isList(contract, operation) && !operation.path.includes('{'),
  )
  const slugOf = ({ path }: Operation): string => path.split('/').at(-1) ?? ''
  const list = lists.find((operation) => slugOf(operation) === slug)
  if (list) return list
  const other = nearest(slug, lists.map(slugOf))
  throw new ContractError(
    openapi.file,
    openapi.position(['paths']),
    `has no list of ${slug}: add GET …/${slug} first, or write --resource ${other}`,
  )
}

function isWithBody(
  operation: Operation | undefined,
): operation is Operation & { body: MediaType } {
  return operation !== undefined && operation.body !== null
}

/** The schema of a record in the list. */
function itemOf({ sources }: Contract, { schema }: MediaType): Located<Schema> {
  const list = dereference(sources, schema)
  const data = list.value.properties?.data
  const path = [...list.path, 'properties', 'data', 'items']
  return dereference(sources, { source: list.source, path, value: data?.items ?? {} })
}

/** `components.schemas.Venue` → `Venue`. */
function nameOf({ source, path }: Located<Schema>): string {
  if (path.length !== 3)
    fail(
      source,
      path,
      'a record must be a $ref to a component: its name becomes the name of a type',
    )
  return String(path[2])
}

/** Throws `ContractError` for a filter or sort that uses no column of the table. */
function readQuery(
  { sources }: Contract,
  { parameters }: Operation,
  fields: Field[],
): Pick<Resource, 'filters' | 'sorts'> {
  const columns = (kinds: ColumnKind[]): string[] =>
    fields.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name)
  const times = ['created_at', 'updated_at', ...columns(['time'])]
  const comparable = columns(['text', 'integer', 'bigInteger'])
  const filters = parameters.flatMap(({ name, place: { source, path } }) => {
    const filter = /^filter\[(.+)\]$/.exec(name)?.[1]
    if (filter === undefined) return []
    const isTime = /_(after|before)$/.test(filter)
    const isField = isTime ? times.includes(fieldOf(filter)) : comparable.includes(filter)
    if (!isField || valueAt(source.root, [...path, 'x-filter', 'ignore_case']) === true)
      fail(
        source,
        path,
        `${name} is no plain comparison with a field of the record: generate without it, then add its condition to ` +
          'the listing',
      )
    return [filter]
  })
  const sort = parameters.find(({ name }) => name === 'sort')
  if (!sort) return { filters, sorts: [] }
  const { source, path, value } = dereference(sources, sort.schema)
  const items = dereference(sources, { source, path, value: value.items ?? value })
  const names = (items.value.enum ?? []).map((name) => String(name).replace(/^-/, ''))
  const sorts = [...new Set(names)]
  for (const name of sorts)
    if (![...times, ...comparable, ...columns(['double'])].includes(name))
      fail(
        items.source,
        items.path,
        `${name} is no text, number or time of the record: remove it from the sorts, or add the field`,
      )
  return { filters, sorts }
}

/** The field that a filter compares: `due_after` and `due_before` compare `due_at`. */
export function fieldOf(filter: string): string {
  return filter.replace(/_(after|before)$/, '_at')
}
