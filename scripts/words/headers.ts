/** The words of openapi.yaml that describe headers: `x-response-headers` of the document, and the
 *  words of Header Objects. */
import type { Contract } from '../model/contract.ts'
import type { OperationResponse } from '../model/operations.ts'
import type { Schema } from '../model/schema.ts'
import { valueAt } from '../model/source.ts'
import { readWord } from './read.ts'

/** A header that responses have in addition to the headers that their operations declare. */
interface CommonHeader {
  name: string
  statuses: 'all' | 'success' | 'error'
  schema: Schema
}

/** `x-parameters` of a header: what the value of one parameter is, for example that of `t` in the
 *  header `"default";r=59;t=42`. */
export interface ParameterMeaning {
  /** A value, or the name of a header with the same value. */
  equals?: string | number
  /** The name of a header with a time in seconds since 1970. The value is the number of seconds
   *  until that time. */
  seconds_until?: string
}

interface HeaderWords {
  /** The name of the request header whose valid value the response repeats. */
  'x-echoes'?: string
  /** Each request with the same API key makes the number smaller by 1. */
  'x-counts-down'?: boolean
  /** The name of the header with the number before the first request. */
  'x-counts-from'?: string
  /** The requests of a user with all of their keys count together. */
  'x-scope'?: 'user'
  /** A time in seconds since 1970, at most this many seconds ahead. */
  'x-epoch-seconds'?: { at_most_ahead: number }
  'x-parameters'?: Record<string, ParameterMeaning>
  /** The largest number that the header may have. */
  'x-at-most'?: number
}

export interface WordedHeader extends HeaderWords {
  name: string
  schema: Schema
}

export function listCommonHeaders({ openapi }: Contract): CommonHeader[] {
  return readWord({ source: openapi, path: [] }, 'x-response-headers') ?? []
}

/** The headers that the response declares, with their words. */
export function listWordedHeaders({ headers }: OperationResponse): WordedHeader[] {
  return Object.values(headers).map(({ name, schema: { source, path, value } }) => ({
    ...(valueAt(source.root, path.slice(0, -1)) as HeaderWords),
    name,
    schema: value,
  }))
}
