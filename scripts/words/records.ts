/** `x-record` of openapi.yaml: what the service does with the fields of a record. Also
 *  `x-merge-patch`. */
import type { Contract } from '../model/contract.ts'
import type { MediaType, Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'
import { readWord } from './read.ts'

/** By the name of a field: the accepted values. A record meets the condition if each of these
 *  fields has an accepted value. */
export type Condition = Record<string, unknown[]>

export interface RecordWords {
  /** The field with the time of the creation, which never changes. */
  created?: string
  /** The field with the time of the latest change. */
  updated?: string
  /** The values that fields get if the request that creates the record does not send them. */
  initial?: Record<string, unknown>
  /** By the name of a field: the field has a value exactly if the record meets the condition. */
  set_when?: Record<string, Condition>
  /** The service itself changes the record until the record meets the condition. */
  finished_when?: Condition
  /** By the name of a field: the values that can follow each of its values. */
  states?: Record<string, Record<string, unknown[]>>
  /** By the name of a field: the field cannot change while the record meets the condition. */
  fixed_when?: Record<string, Condition>
  /** By the name of a field that only `include` adds: the name of the reference to the embedded record, or
   *  what is counted. */
  include?: Record<string, string | Record<string, Counted>>
  /** Fields whose values together are unique. */
  unique?: string[]
  /** By the name of a field: its value in a new record. Later updates do not change the value. */
  computed?: Record<string, ComputedField>
}

/** The number of the records of a list whose field `reference` has the ID of the record, for each value
 *  of the field `by`. */
export interface Counted {
  /** The ID of the operation. */
  list: string
  reference: string
  by: string
}

/** A table of examples. */
export interface ComputedField {
  /** The names of what the value depends on: fields of the body that creates the record. After a
   *  dot, a field of the other record that a reference in the body names. */
  from: string[]
  /** Each row has the values of `from`, and then the value of the field. */
  table: unknown[][]
}

/** The schema of the JSON body of the success response, without references. `{}` if it has none. */
export function responseSchema(contract: Contract, { success }: Operation): Schema {
  return inlineMedia(contract, success.content['application/json'])
}

/** The schema of the request body, without references. `{}` if the operation takes none. */
export function requestSchema(contract: Contract, { body }: Operation): Schema {
  return inlineMedia(contract, body)
}

/** The record as later responses have it: with null for the fields that have `x-shown-once`. */
export function asShownLater<Record extends object>(
  contract: Contract,
  operation: Operation,
  record: Record,
): Record {
  const hidden = listShownOnce(contract, operation).map((name) => [name, null])
  return { ...record, ...Object.fromEntries(hidden) }
}

/** The names of the fields of the response that have `x-shown-once`. */
export function listShownOnce(contract: Contract, operation: Operation): string[] {
  return Object.entries(responseSchema(contract, operation).properties ?? {})
    .filter(([, schema]) => schema['x-shown-once'])
    .map(([name]) => name)
}

function inlineMedia({ sources }: Contract, media: MediaType | null | undefined): Schema {
  if (!media) return {}
  const schema = inlined.get(media) ?? inlineReferences(sources, media.schema)
  inlined.set(media, schema)
  return schema
}

/** A cache: the contract tests read the schema of an operation for each request. */
const inlined = new WeakMap<MediaType, Schema>()

/** The words of the schema of a record. */
export function wordsOfRecord(schema: Schema | undefined): RecordWords {
  return (schema?.['x-record'] ?? {}) as RecordWords
}

export function readRecordWords(contract: Contract, operation: Operation): RecordWords {
  return wordsOfRecord(responseSchema(contract, operation))
}

export function meetsCondition(record: Record<string, unknown>, condition: Condition): boolean {
  return Object.entries(condition).every(([name, values]) => values.includes(record[name]))
}

/** `x-merge-patch`: the media type of updates with a merge patch (RFC 7396). */
export function readMergePatchType({ openapi }: Contract): string | undefined {
  return readWord({ source: openapi, path: [] }, 'x-merge-patch')
}
