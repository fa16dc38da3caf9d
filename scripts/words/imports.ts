/** `x-import` of an operation of openapi.yaml: each row of its file has the effect of a request. */
import type { Operation } from '../model/operations.ts'
import { readWord } from './read.ts'

export interface ImportWords {
  /** The query parameter with the resource. */
  resource: string
  /** By resource: the ID of the operation that creates one record. */
  creates: Record<string, string>
  /** The query parameters of an import whose rows create records, but that changes nothing. */
  trial: Record<string, string>
  /** The fields of the import with the number of created and of refused rows. */
  created: string
  refused: string
  /** The ID of the operation that returns the refused rows as NDJSON, each with `line` and `errors`. */
  errors: string
}

/** Undefined if the operation imports no file. */
export function readImportWords({ place }: Operation): ImportWords | undefined {
  return readWord(place, 'x-import')
}
