/** `x-record` of openapi.yaml: what the service does with the fields of a record. */
import type { Contract } from '../model/contract.ts'
import type { MediaType, Operation } from '../model/operations.ts'
import { inlineReferences } from '../model/references.ts'
import type { Schema } from '../model/schema.ts'

/** Values by the name of a field. */
type Options = Record<string, unknown[]>

export interface RecordWords {
  /** The field with the time of the creation, which never changes. */
  created?: string
  /** The field with the time of the latest change. */
  updated?: string
  /** The values of fields that a create does not send. */
  initial?: Record<string, unknown>
  /** By the name of a field: it has a value if, and only if, other fields have one of these
   *  values. */
  set_when?: Record<string, Options>
  /** The service changes the record itself until a field has one of these values. */
  finished_when?: Options
  /** By the name of a field: the values that can follow each of its values. */
  states?: Record<string, Record<string, unknown[]>>
  /** By the name of a field: it cannot change while other fields have one of these values. */
  fixed_when?: Record<string, Options>
  /** Fields whose values together are unique. */
  unique?: string[]
}

/** The schema of the record that the operation returns, without references. */
export function recordSchema(contract: Contract, { success }: Operation): Schema {
  return inlineMedia(contract, success.content['application/json'])
}

/** The schema of the body that the operation takes, without references. */
export function sentSchema(contract: Contract, { body }: Operation): Schema {
  return inlineMedia(contract, body)
}

function inlineMedia({ sources }: Contract, media: MediaType | null | undefined): Schema {
  return media ? inlineReferences(sources, media.schema) : {}
}

export function readRecordWords(contract: Contract, operation: Operation): RecordWords {
  return (recordSchema(contract, operation)['x-record'] ?? {}) as RecordWords
}

export function hasOneOf(record: Record<string, unknown>, options: Options): boolean {
  return Object.entries(options).every(([name, values]) => values.includes(record[name]))
}
