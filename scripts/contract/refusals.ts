/** Rules that a schema cannot express: `x-refusals` of openapi.yaml, and the refusals that
 *  occurred. */
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { valueAt } from '../model/source.ts'
import { readListWords } from './list-words.ts'
import type { ReceivedResponse } from './request.ts'

/** A reason for which data that the schema permits was refused. */
export interface Refusal {
  operation: string
  /** The caller has replaced each index and each name of an entry by `*`, as in `x-refusals`. */
  field: string
  message: string
  count: number
}

/** Messages by field, from the property of the body that `x-names-fields` names. Empty if the
 *  schema of the body has no `x-names-fields`. */
export function fieldErrors(
  { sources }: Contract,
  { responses }: Operation,
  { status, json }: ReceivedResponse,
): Record<string, string[]> {
  const media = responses.find((response) => response.status === status)?.content[
    'application/json'
  ]
  const name = media && inlineReferences(sources, media.schema)['x-names-fields']
  return ((json ?? {}) as Record<string, Record<string, string[]>>)[String(name)] ?? {}
}

/** Whether `x-names-fields` says where an error response of the operation names the fields. */
export function namesFields({ sources }: Contract, { responses }: Operation): boolean {
  return responses.some(({ content }) => {
    const media = content['application/json']
    return (
      media !== undefined && inlineReferences(sources, media.schema)['x-names-fields'] !== undefined
    )
  })
}

/** The rule in `x-refusals` that explains the refusal of the field. The parameter of the sort
 *  counts as a rule of every operation, because a sort that names a field twice is always
 *  refused. */
export function findRule(
  contract: Contract,
  operation: Operation,
  field: string,
): string | undefined {
  const { source, path } = operation.place
  const rules = Object.keys(valueAt(source.root, [...path, 'x-refusals']) ?? {})
  const sort = readListWords(contract)?.sort.parameter
  const known = sort === undefined ? rules : [...rules, sort]
  return known.find((rule) => matches(rule, field))
}

/** A `*` at the end also stands for everything below the entry. */
function matches(rule: string, field: string): boolean {
  const [parts, actual] = [rule.split('.'), field.split('.')]
  return (
    parts.length <= actual.length &&
    parts.every((part, index) => part === '*' || part === actual[index]) &&
    (parts.length === actual.length || parts.at(-1) === '*')
  )
}

/** The most bytes of a record as JSON: `x-max-record-bytes`. */
export function readMaxRecordBytes({ openapi }: Contract): number {
  return Number(valueAt(openapi.root, ['x-max-record-bytes']) ?? Number.POSITIVE_INFINITY)
}

export function describeRefusal({ field, message, count }: Refusal): string {
  return `a rule that the schema does not express refused ${field} ${count} times: ${message}`
}

export class Refusals {
  readonly #counts = new Map<string, Refusal>()

  add(operation: string, field: string, message: string): void {
    const key = `${operation} ${field} ${message}`
    const known = this.#counts.get(key) ?? { operation, field, message, count: 0 }
    this.#counts.set(key, { ...known, count: known.count + 1 })
  }

  list(): Refusal[] {
    return [...this.#counts.values()]
  }
}
