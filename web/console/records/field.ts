/** A field of a record form. */
import type { FieldErrors } from '../../../errors.ts'
import type { Schema } from '../../../scripts/model/schema.ts'

export interface FormField {
  path: string
  /** What it is called in the object that it is a part of: the last part of the path, which for a key of somebody's own may hold dots. */
  name: string
  schema: Schema
  isRequired: boolean
  kind: FieldKind
  /** Of an object. */
  parts?: FormField[]
  /** For people, where the name is not. */
  label?: string
  hint?: string
  /** Other fields depend on what is in it. */
  refreshesForm?: boolean
  /** Of a field whose parts are not known yet. */
  waitsFor?: string
}

export interface ReadContext {
  /** What is empty is left out; in a change it is said. */
  isNew: boolean
  /** What is not even readable. */
  problems: FieldErrors
}

export type FieldKind =
  | 'reference'
  | 'choice'
  | 'yes_no'
  | 'time'
  | 'number'
  | 'text'
  | 'lines'
  | 'options'
  | 'joined'
  | 'groups'
  | 'group'
  | 'keyed'
  | 'scalar'
  | 'json'
