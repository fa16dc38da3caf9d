/** `x-list-parameters` of the document: the spellings of query parameters that take several values. */
import type { Contract } from '../model/contract.ts'
import { readWord } from './read.ts'

export interface ListParameterWords {
  spaces?: 'ignored'
  /** The parameter is also accepted with this after its name. */
  also_with?: string
  /** In values without a format or an enumeration, spaces count, and `%2C` is a comma of the value. */
  encoded?: 'text'
}

export function readListParameters({ openapi }: Contract): ListParameterWords | undefined {
  return readWord({ source: openapi, path: [] }, 'x-list-parameters')
}
