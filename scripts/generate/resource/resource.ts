/** A resource of the contract whose files can be generated. */
import type { Contract } from '../../model/contract.ts'
import { nearest } from '../../model/nearest.ts'
import type { MediaType, Operation } from '../../model/operations.ts'
import { dereference } from '../../model/references.ts'
import type { Schema } from '../../model/schema.ts'
import { ContractError, fail, type Located } from '../../model/source.ts'
import { findRecordOperations, isList, nounOf, tableOf } from '../resources.ts'
import { type Field, readFields } from './fields.ts'
import { type ListQuery, readQuery } from './query.ts'

export interface Resource extends ListQuery {
  /** The last part of the list's path, for example `job-applications`. */
  slug: string
  /** For example `job_applications`. */
  table: string
  /** For example `job_application`. */
  type: string
  /** For example `job application`. */
  noun: string
  /** The name of the record's schema, for example `JobApplication`. */
  typeName: string
  /** The name of a variable with a record, for example `jobApplication`. */
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
}

/** Throws `ContractError` for a resource that the contract does not have, or whose files cannot be
 *  generated. */
export function readResource(contract: Contract, slug: string): Resource {
  const list = findList(contract, slug)
  const found = findRecordOperations(contract, list, contract.operations)
  const refuse = (problem: string): never => fail(list.place.source, list.place.path, problem)
  if (found === undefined)
    return refuse(
      `${slug} has no operation GET ${list.path}/{…}: add it, or write the files by hand`,
    )
  const { type, get, create, update, page, idParameter } = found
  if (!/^[a-z][a-z0-9-]*$/.test(slug) || !/^[a-z][a-z0-9_]*$/.test(idParameter))
    return refuse(
      `${get.path} must be like /job-applications/{job_application}: it names files and variables`,
    )
  if (!isWithBody(create))
    return refuse(
      `${slug} has no POST ${list.path} with a body: add it, or write the files by hand`,
    )
  if (update && !isWithBody(update)) return refuse(`${update.id} has no body: add it`)
  const record = itemOf(contract, page)
  const fields = readFields(contract, {
    type,
    record,
    creation: create.body.schema,
    change: update?.body.schema,
  })
  return {
    slug,
    table: tableOf(slug),
    type,
    noun: nounOf(type),
    typeName: nameOf(record),
    variable: type.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    idParameter,
    list,
    get,
    create,
    update,
    delete: found.delete,
    fields,
    ...readQuery(contract, list, fields),
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
  const nested = operations.find(
    (operation) => isList(contract, operation) && slugOf(operation) === slug,
  )
  if (nested)
    fail(
      nested.place.source,
      nested.place.path,
      `lists ${slug} below another record: write its handler by hand, or replace it by GET …/${slug} with a filter ` +
        'such as filter[task_id]',
    )
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
  const name = String(path[2])
  if (!/^[A-Z][A-Za-z0-9]*$/.test(name))
    fail(source, path, `${name} must be like JobApplication: it becomes the name of a type`)
  return name
}
