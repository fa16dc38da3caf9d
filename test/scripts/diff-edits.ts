/** Parts of the contract that several cases edit. The names of operations are those of the
 *  contract. */
import { type Edit, event, LOST_DEPRECATION, OPENAPI } from './diff-contract.ts'

/** An edit of the contract, and the level and rule of each change that `diff` finds. Most rules
 *  have an opposite, which the way back finds. */
export interface Case {
  edit: Edit
  /** A further edit that keeps the contract valid. */
  also?: Edit
  forward: string[]
  /** The changes from the edited contract back to this one. */
  backward: string[]
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
