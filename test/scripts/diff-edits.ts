/** Parts of the contract that several cases edit. */
import { type Edit, event, OPENAPI } from './diff-contract.ts'

export interface Case {
  edit: Edit
  /** A further edit that keeps the contract valid. */
  also?: Edit
  there: string[]
  back: string[]
  today?: Date
}

export const OLD = OPENAPI.slice(OPENAPI.indexOf('  /old:'), OPENAPI.indexOf('  /mixed:'))
export const MIXED = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: getMixed'),
  OPENAPI.indexOf('    post:\n      operationId: createMixed'),
)
export const NOTE = OPENAPI.slice(OPENAPI.indexOf('  /notes/{note}:'), OPENAPI.indexOf('  /old:'))
export const LIST = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: listNotes'),
  OPENAPI.indexOf('    post:'),
)
export const POST = OPENAPI.slice(OPENAPI.indexOf('    post:'), OPENAPI.indexOf('  /notes/{note}:'))
export const BODY = OPENAPI.slice(
  OPENAPI.indexOf('      requestBody:'),
  OPENAPI.indexOf("      responses:\n        '201'"),
)
export const SILENT: Edit = ['x-emitted-by-system: [note.lost]', 'x-emitted-by-system: []']
export const LOST = event(
  'NoteLost',
  'note.lost',
  "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n",
)

/** Each rule and its opposite. Requests and responses have opposite levels. */
