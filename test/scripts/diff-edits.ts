/** Parts of the contract in diff-contract.ts that several cases edit. `LIST_NOTES` is the operation
 *  `listNotes`, and so on. */
import { type Edit, event, LOST_DEPRECATION, OPENAPI } from './diff-contract.ts'

/** An edit of the contract, and the level and rule of each change that `diff` finds. */
export interface Case {
  edit: Edit
  /** A further edit that keeps the contract valid. */
  also?: Edit
  /** The changes from the contract to the edited one. */
  forward: string[]
  /** The changes from the edited contract to the contract: most rules have an opposite. */
  backward: string[]
  /** The day of the comparison. Default: `TODAY`. */
  today?: Date
}

export const OLD_PATH = OPENAPI.slice(OPENAPI.indexOf('  /old:'), OPENAPI.indexOf('  /mixed:'))
export const GET_MIXED = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: getMixed'),
  OPENAPI.indexOf('    post:\n      operationId: createMixed'),
)
export const NOTE_PATH = OPENAPI.slice(
  OPENAPI.indexOf('  /notes/{note}:'),
  OPENAPI.indexOf('  /old:'),
)
export const LIST_NOTES = OPENAPI.slice(
  OPENAPI.indexOf('    get:\n      operationId: listNotes'),
  OPENAPI.indexOf('    post:'),
)
export const CREATE_NOTE = OPENAPI.slice(
  OPENAPI.indexOf('    post:'),
  OPENAPI.indexOf('  /notes/{note}:'),
)
export const CREATE_NOTE_BODY = OPENAPI.slice(
  OPENAPI.indexOf('      requestBody:'),
  OPENAPI.indexOf("      responses:\n        '201'"),
)
export const NO_SYSTEM_EVENTS: Edit = [
  'x-emitted-by-system: [note.lost]',
  'x-emitted-by-system: []',
]
export const NOTE_LOST = event('NoteLost', 'note.lost', LOST_DEPRECATION)
