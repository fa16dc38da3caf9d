/** Words about errors and rules that a schema cannot express: `x-refusals`, `x-names-fields` and
 *  `x-max-record-bytes` of openapi.yaml. */
import type { Contract } from '../model/contract.ts'
import type { JsonObject } from '../model/json.ts'
import type { Operation, OperationResponse } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import { mapValues } from '../model/schema.ts'
import { readListWords } from './lists.ts'
import { readWord } from './read.ts'

/** A rule in `x-refusals`. Without a condition, valid data may be refused. */
export interface Rule {
  reason: string
  /** A field of the body is unique among the records. A field of a list's entries is unique in the
   *  list. */
  unique?: boolean
  ignore_case?: boolean
  /** Fields of bodies that the rule accepts, or parameters if the operation takes no body. */
  accepts?: JsonObject[]
  /** Fields of bodies, or parameters, that the rule refuses. */
  refuses?: JsonObject[]
}

/** `x-refusals`, by field. A rule without a condition is written as its reason. */
export function readRules({ place }: Operation): Record<string, Rule> {
  const rules: Record<string, string | Rule> = readWord(place, 'x-refusals') ?? {}
  return mapValues(rules, (rule) => (typeof rule === 'string' ? { reason: rule } : rule))
}

/** Messages by field, from the property of the body that `x-names-fields` names. Empty if the
 *  schema of the body has no `x-names-fields`. */
export function fieldErrors(
  contract: Contract,
  { responses }: Operation,
  { status, json }: { status: number; json: unknown },
): Record<string, string[]> {
  const response = responses.find((candidate) => candidate.status === status)
  const name = response && errorsProperty(contract, response)
  return ((json ?? {}) as Record<string, Record<string, string[]>>)[name ?? ''] ?? {}
}

/** Whether the schema of a response of the operation has `x-names-fields`. */
export function namesFields(contract: Contract, { responses }: Operation): boolean {
  return responses.some((response) => errorsProperty(contract, response) !== undefined)
}

function errorsProperty({ sources }: Contract, { content }: OperationResponse): string | undefined {
  const media = content['application/json']
  return media && (inlineReferences(sources, media.schema)['x-names-fields'] as string | undefined)
}

/** The rule in `x-refusals` that explains the refusal of the field. The parameter of the sort
 *  counts as a rule of every operation, because a service may refuse a sort that names a field
 *  twice. */
export function findRule(
  contract: Contract,
  operation: Operation,
  field: string,
): string | undefined {
  const rules = Object.keys(readRules(operation))
  const sort = readListWords(contract)?.sort.parameter
  const allRules = sort === undefined ? rules : [...rules, sort]
  return allRules.find((rule) => isExplainedBy(rule, field))
}

/** In a rule, `*` stands for any entry and, at the end, also for everything below the entry. */
export function isExplainedBy(rule: string, field: string): boolean {
  const [parts, actual] = [rule.split('.'), field.split('.')]
  return (
    parts.length <= actual.length &&
    parts.every((part, index) => part === '*' || part === actual[index]) &&
    (parts.length === actual.length || parts.at(-1) === '*')
  )
}

/** The most bytes of a record as JSON: `x-max-record-bytes`. */
export function readMaxRecordBytes({ openapi }: Contract): number {
  return readWord({ source: openapi, path: [] }, 'x-max-record-bytes') ?? Number.POSITIVE_INFINITY
}
