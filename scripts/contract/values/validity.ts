/** Whether a value is valid. Formats are not checked. */
import { Ajv } from 'ajv'
import type { Schema } from '../../model/schema.ts'

/** Optimizing the code would take longer than it saves. */
const ajv = new Ajv({
  strict: false,
  validateFormats: false,
  validateSchema: false,
  code: { optimize: false },
})

export function isValid(schema: Schema, value: unknown): boolean {
  return ajv.validate(schema, value)
}

export function isDistinct(values: unknown[]): boolean {
  return new Set(values.map((value) => JSON.stringify(value))).size === values.length
}
