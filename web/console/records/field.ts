/** A field of a record form. */
import type { FieldErrors } from '../../../errors.ts'
import type { Schema } from '../../../scripts/model/schema.ts'

export interface FormField {
  /** For example `screening_questions.0.key`. */
  path: string
  /** The key in the enclosing object. A key that a user chose may contain dots. */
  name: string
  schema: Schema
  isRequired: boolean
  kind: FieldKind
  /** The fields of an object. */
  parts?: FormField[]
  /** Replaces the label that is derived from `name`. */
  label?: string
  hint?: string
  /** Replaces `optional` beside the label. */
  mark?: string
  isFilter?: boolean
  /** The paths of the fields that depend on this one. They reload when its value changes. */
  dependents?: string[]
  /** The field whose value decides the schema of this `dependent` field. */
  driver?: FormField
  /** The path of the field with the currency of this amount. */
  currency?: string
  /** Set while the parts are unknown: a sentence that says what the user must choose first. */
  waitsFor?: string
  /** Whether two parts are beside each other, where there is room. */
  isCompact?: boolean
}

export interface ReadContext {
  /** On creation, empty fields are omitted; an update sends them as null or empty. */
  isNew: boolean
  /** Collects the errors of texts that are not the number or JSON that their field needs. */
  problems: FieldErrors
}

/** `KINDS` in fields.ts tells which schemas have which kind. */
export type FieldKind =
  | 'reference'
  | 'choice'
  | 'yes_no'
  | 'time'
  | 'amount'
  | 'number'
  | 'text'
  | 'lines'
  | 'options'
  | 'columns'
  | 'joined'
  | 'groups'
  | 'group'
  | 'keyed'
  | 'scalar'
  | 'scalars'
  | 'dependent'
  | 'json'
