/** What the inputs of a record form need to know about it. */

import type { FieldErrors } from '../../../errors.ts'
import type { User } from '../../../records/users.ts'
import type { Content } from '../../shared/html.ts'
import type { Errors } from '../form-fields.ts'
import type { Draft } from './draft.ts'
import type { FormField } from './field.ts'
import type { KnownRecords, SearchResult } from './references.ts'

export interface RecordForm {
  /** Below /console: where it is sent. */
  to: string
  cancel: string
  submit: string
  fields: FormField[]
  draft: Draft
  known: KnownRecords
  user: User
  now: Date
  isNew: boolean
  /** As the API says them. */
  errors?: FieldErrors
  problem?: string
  /** What was searched for the field at a path. */
  suggestions?: { path: string; result: SearchResult }
  /** What is stored by now, by the path of the field. */
  stored?: Record<string, Content>
  /** What the form must bring back. */
  hidden?: [name: string, value: string][]
}

/** What a form that is sent can ask for, if not to be saved: to find or choose a record, to add or remove a group, or to be shown again. */
export type FormAction = 'find' | 'choose' | 'add' | 'remove' | 'refresh'

/** No field of the contract has a colon in its name. */
export const actionName = (asking: FormAction): string => `ask:${asking}`

/** The id of what is put in place of itself. */
export const FORM = 'record-form'

export type ControlContext = RecordForm & { errors: Errors }

export const elementId = (path: string): string => path.replace(/\W/g, '-')
