/** What a record form shows. */
import type { FieldErrors } from '../../../errors.ts'
import type { User } from '../../../records/users.ts'
import type { Content } from '../../shared/html.ts'
import type { Errors } from '../form-fields.ts'
import type { Draft } from './draft.ts'
import type { FormField } from './field.ts'
import type { KnownRecords, SearchResult } from './references.ts'

export interface RecordForm {
  /** The path that receives the form, relative to /console. */
  to: string
  /** The path that Cancel leads to, relative to /console. */
  cancel: string
  /** The label of the button that saves. */
  submit: string
  fields: FormField[]
  draft: Draft
  known: KnownRecords
  user: User
  now: Date
  isNew: boolean
  /** By field path, as the API returns them: `must be a time.` */
  errors?: FieldErrors
  problem?: string
  /** What the user must check before the form is saved. */
  notice?: string
  /** Search results for the reference at this path. */
  suggestions?: { path: string; result: SearchResult }
  /** Set if another user has updated the record meanwhile. By field path: the stored values that
   *  differ from what `user` entered. */
  stored?: Record<string, Content>
  hidden?: Record<string, string>
}

/** Buttons that submit the form without saving it. `find` and `choose` belong to references, `add`
 *  and `remove` to lists of objects; `refresh` renders the form again. */
export type FormAction = 'find' | 'choose' | 'add' | 'remove' | 'refresh'

/** The colon keeps these names apart from fields: no field name in the contract contains one. */
export const actionName = (action: FormAction): string => `ask:${action}`

/** The ID of the form, which htmx replaces. */
export const FORM_ID = 'record-form'

/** Here, `errors` are sentences: `Due at must be a time.` */
export type ControlContext = RecordForm & { errors: Errors }

export const elementId = (path: string): string => path.replace(/\W/g, '-')
