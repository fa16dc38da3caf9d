/** The filters, the search and the sorts of a generated resource's list. */
import type { Contract } from '../../model/contract.ts'
import type { Operation, Parameter } from '../../model/operations.ts'
import { dereference } from '../../model/references.ts'
import { fail, valueAt } from '../../model/source.ts'
import { filterName } from '../resources.ts'
import type { ColumnKind, Field } from './fields.ts'

export interface ListQuery {
  /** The names of the filters without `search`. */
  filters: string[]
  /** The text fields of `filter[search]`. Empty if the list has no search. */
  search: string[]
  /** The fields of the sorts, without `-`. */
  sorts: string[]
}

/** Throws `ContractError` for a filter, search or sort whose code cannot be generated. */
export function readQuery(contract: Contract, list: Operation, fields: Field[]): ListQuery {
  const filters = list.parameters.flatMap((parameter) => {
    const filter = filterName(parameter.name)
    return filter === undefined ? [] : [{ filter, parameter }]
  })
  const search = filters.find(({ filter }) => filter === SEARCH)?.parameter
  const compared = filters.filter(({ filter }) => filter !== SEARCH)
  for (const { filter, parameter } of compared) assertComparison(filter, parameter, fields)
  return {
    filters: compared.map(({ filter }) => filter),
    sorts: readSorts(contract, list, fields),
    search: search ? readSearch(search, fields) : [],
  }
}

const SEARCH = 'search'

/** `x-filter` of a parameter. */
interface FilterRule {
  match?: string
  fields?: string[]
  ignore_case?: boolean
}

function ruleOf({ place: { source, path } }: Parameter): FilterRule {
  return (valueAt(source.root, [...path, 'x-filter']) ?? {}) as FilterRule
}

const TIMES = ['created_at', 'updated_at']

function namesOf(fields: Field[], kinds: ColumnKind[]): string[] {
  return fields.filter(({ kind }) => kinds.includes(kind)).map(({ name }) => name)
}

function assertComparison(filter: string, parameter: Parameter, fields: Field[]): void {
  const { match, fields: names, ignore_case } = ruleOf(parameter)
  const field = fieldOf(filter)
  const time = boundOf(filter)?.match
  const comparable = time
    ? [...TIMES, ...namesOf(fields, ['time'])]
    : namesOf(fields, ['text', 'uuid', 'integer', 'bigInteger'])
  const comparison = time ?? 'equals'
  const isPlainRule = (match ?? comparison) === comparison && ignore_case !== true
  const isOwnField = comparable.includes(field) && (names ?? [field]).join() === field
  if (!isPlainRule || !isOwnField)
    fail(
      parameter.place.source,
      parameter.place.path,
      `${parameter.name} is no plain comparison with a field of the record: generate without it, then add its ` +
        'condition to the listing',
    )
}

function readSearch(parameter: Parameter, fields: Field[]): string[] {
  const { match, fields: names = [], ignore_case } = ruleOf(parameter)
  const texts = fields.filter(({ kind, options }) => kind === 'text' && !options)
  const isSearch = match === 'contains' && ignore_case === true && names.length > 0
  if (!isSearch || names.some((name) => !texts.some((field) => field.name === name)))
    fail(
      parameter.place.source,
      parameter.place.path,
      `${parameter.name} must name text fields of the record: ` +
        'x-filter: { match: contains, fields: [name], ignore_case: true }',
    )
  return names
}

function readSorts({ sources }: Contract, { parameters }: Operation, fields: Field[]): string[] {
  const sort = parameters.find(({ name }) => name === 'sort')
  if (!sort) return []
  const { source, path, value } = dereference(sources, sort.schema)
  const items = dereference(sources, { source, path, value: value.items ?? value })
  const names = (items.value.enum ?? []).map((name) => String(name).replace(/^-/, ''))
  const sorts = [...new Set(names)]
  const sortable = namesOf(fields, ['text', 'integer', 'bigInteger', 'double', 'time'])
  for (const name of sorts)
    if (![...TIMES, ...sortable].includes(name))
      fail(
        items.source,
        items.path,
        `${name} is no text, number or time of the record: remove it from the sorts, or add the field`,
      )
  return sorts
}

interface Bound {
  /** `match` of `x-filter`. */
  match: string
  operator: string
}

/** By the end of a filter's name. */
const BOUNDS: Record<string, Bound> = {
  after: { match: 'after', operator: '>' },
  before: { match: 'before', operator: '<' },
  from: { match: 'from', operator: '>=' },
  until: { match: 'before', operator: '<' },
}

/** Undefined: the filter compares no time. */
export function boundOf(filter: string): Bound | undefined {
  return BOUNDS[/_([a-z]+)$/.exec(filter)?.[1] ?? '']
}

/** The field that a filter compares: `due_after` and `due_until` compare `due_at`. */
export function fieldOf(filter: string): string {
  return boundOf(filter) ? filter.replace(/_[a-z]+$/, '_at') : filter
}
