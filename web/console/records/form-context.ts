/** What the inputs of a record form need to know about it. */

import type { FieldErrors } from '../../../errors.ts'
import type { User } from '../../../records/users.ts'
import type { Content } from '../../shared/html.ts'
import type { Errors } from '../form-fields.ts'
import type { Draft } from './draft.ts'
import type { Field } from './field.ts'
import type { Found, Known } from './references.ts'

export interface RecordForm {
  /** Below /console: where it is sent. */
  to: string
  cancel: string
  submit: string
  fields: Field[]
  draft: Draft
  known: Known
  user: User
  now: Date
  isNew: boolean
  /** As the API says them. */
  errors?: FieldErrors
  problem?: string
  /** What was searched for the field at a path. */
  found?: { path: string; found: Found }
  /** What is stored by now, by the path of the field. */
  stored?: Record<string, Content>
  /** What the form must bring back. */
  hidden?: [name: string, value: string][]
}

/** What a form that is sent can ask for, if not to be saved: to find or choose a record, to add or remove a group, or to be shown again. */
export type Asking = 'find' | 'choose' | 'add' | 'remove' | 'refresh'

/** No field of the contract has a colon in its name. */
export const askName = (asking: Asking): string => `ask:${asking}`

/** The id of what is put in place of itself. */
export const FORM = 'record-form'

export type ControlContext = RecordForm & { errors: Errors }

export const elementId = (path: string): string => path.replace(/\W/g, '-')
