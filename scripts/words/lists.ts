/** The words of openapi.yaml that describe lists: `x-lists` of the document and `x-filter` of
 *  parameters. */
import type { Contract } from '../model/contract.ts'
import type { Operation, Parameter } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { readPointer, readWord } from './read.ts'

/** `x-lists`. A pointer is a JSON Pointer into a response or a record. */
export interface ListWords {
  /** Pointer to the records of the page. */
  items: string
  /** Names of the parameters for the number and the size of the page. `after`: the name of the one
   *  for the cursor of the page before. It excludes the number. */
  page: { parameter: string; size: string; after?: string }
  sort: {
    parameter: string
    /** The prefix of a field's name that reverses the order. */
    descending: string
    /** The end at which records without a value are, in both directions of the sort. */
    nulls: 'first' | 'last'
    /** Pointer to the field that orders records with equal values, and all records without
     *  `sort`. */
    ties: string
    /** `last`: `ties` orders in the direction of the last option of `sort`. Without this word,
     *  `ties` always ascends. */
    ties_follow?: 'last'
    /** `refused`: the service refuses a sort that names a field twice, also in both directions. */
    twice?: 'refused'
  }
  /** The name of the parameter with the fields of `x-record.include` to add. */
  include?: string
  /** The parameter that selects the fields of the records, and the field that is always there. */
  fields?: { parameter: string; always: string }
  /** Pointers into the response. */
  meta: Partial<Record<'page' | 'last_page' | 'size' | 'total' | 'sorts' | 'next_cursor', string>>
  /** Pointer to a time: no record appears in the list later with an earlier time of its creation or
   *  update. */
  complete_until?: string
}

/** `x-filter`: how one of the fields of a record must relate to the parameter. */
export interface Filter {
  /** `has`: the field is a list that contains the value. `after` and `before` exclude the time
   *  itself; `from` includes it. */
  match: 'equals' | 'has' | 'contains' | 'after' | 'before' | 'from'
  /** Names of fields. Dots in a name lead into nested objects. */
  fields: string[]
  ignore_case?: boolean
  /** The value that finds the records without a value in the field. */
  without?: string
}

export interface FilterParameter extends Filter {
  parameter: Parameter
}

/** Undefined if the contract does not describe its lists. */
export function readListWords({ openapi }: Contract): ListWords | undefined {
  return readWord({ source: openapi, path: [] }, 'x-lists')
}

/** The names of the fields that the request asks to embed. */
export function readIncluded(contract: Contract, query: Record<string, unknown>): string[] {
  const { include = '' } = readListWords(contract) ?? {}
  return (query[include] ?? []) as string[]
}

/** Whether the URL has the parameter that selects the fields of records, in one of its spellings. */
export function selectsFields(contract: Contract, url: string): boolean {
  const { fields } = readListWords(contract) ?? {}
  const names = [...new URL(url, 'http://localhost').searchParams.keys()]
  return names.some((name) => name.replace(/\[\]$/, '') === fields?.parameter)
}

/** The schema of the list's records. Undefined if the operation is not a list. */
export function findItemSchema(contract: Contract, operation: Operation): Schema | undefined {
  const words = readListWords(contract)
  const media = operation.success.content['application/json']
  if (!words || !media || operation.method !== 'get') return undefined
  let schema: Schema | undefined = inlineReferences(contract.sources, media.schema)
  for (const name of words.items.split('/').slice(1)) schema = schema?.properties?.[name]
  return schema?.type === 'array' ? schema.items : undefined
}

/** The page size for a list that does not document its maximum. */
const USUAL_PAGE_SIZE = 100

/** The most records that a page of the list can have. */
export function readMaxPageSize({ sources }: Contract, list: Operation, words: ListWords): number {
  const parameter = list.parameters.find(({ name }) => name === words.page.size)
  const { maximum } = parameter ? inlineReferences(sources, parameter.schema) : {}
  return Number(maximum ?? USUAL_PAGE_SIZE)
}

/** The field of an option of `sort`, without the prefix of the descending order. */
export function readSort(
  option: string,
  { descending }: Pick<ListWords['sort'], 'descending'>,
): { field: string; isDescending: boolean } {
  const isDescending = option.startsWith(descending)
  return { field: isDescending ? option.slice(descending.length) : option, isDescending }
}

export function listFilters({ parameters }: Operation): FilterParameter[] {
  return parameters.flatMap((parameter) => {
    const filter = readWord<Filter>(parameter.place, 'x-filter')
    return filter === undefined ? [] : [{ ...filter, parameter }]
  })
}

/** The text of a response without the time until which a list is complete: each response has another. */
export function stableText(
  contract: Contract,
  { text, json }: { text: string; json: unknown },
): string {
  const pointer = readListWords(contract)?.complete_until
  const until = pointer && readPointer(json, pointer)
  return typeof until === 'string' ? text.replaceAll(until, '') : text
}
