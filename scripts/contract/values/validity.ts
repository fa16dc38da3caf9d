/** Whether a value is valid by the keywords that the contract uses. Formats are not checked, and a
 *  value may match several schemas of a `oneOf`. */
import type { Schema } from '../../model/schema.ts'

export function isValid(schema: Schema, value: unknown): boolean {
  if (value === null) return schema.nullable === true
  if (schema.enum) return schema.enum.includes(value)
  if (schema.oneOf) return schema.oneOf.some((alternative) => isValid(alternative, value))
  switch (schema.type) {
    case 'string':
      return typeof value === 'string' && isValidText(schema, value)
    case 'integer':
      return Number.isInteger(value) && isInRange(schema, value as number)
    case 'number':
      return typeof value === 'number' && isInRange(schema, value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'array':
      return Array.isArray(value) && isValidArray(schema, value)
    case 'object':
      return typeof value === 'object' && !Array.isArray(value) && isValidObject(schema, value)
    default:
      return true
  }
}

/** JSON Schema counts code points, not UTF-16 units. */
function isValidText(schema: Schema, text: string): boolean {
  const { pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
  const length = [...text].length
  return (
    length >= minLength &&
    length <= maxLength &&
    (pattern === undefined || new RegExp(pattern, 'u').test(text))
  )
}

function isInRange(schema: Schema, value: number): boolean {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema
  return value >= minimum && value <= maximum
}

function isValidArray(schema: Schema, values: unknown[]): boolean {
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
  const { items = {}, uniqueItems } = schema
  return (
    values.length >= minItems &&
    values.length <= maxItems &&
    (!uniqueItems || isDistinct(values)) &&
    values.every((value) => isValid(items, value))
  )
}

export function isDistinct(values: unknown[]): boolean {
  return new Set(values.map((value) => JSON.stringify(value))).size === values.length
}

function isValidObject(schema: Schema, fields: object): boolean {
  const { properties = {}, required = [], additionalProperties = true } = schema
  const { maxProperties = Number.POSITIVE_INFINITY } = schema
  const isValidField = ([name, value]: [string, unknown]): boolean => {
    const allowed = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    return typeof allowed === 'object' ? isValid(allowed, value) : allowed === true
  }
  return (
    required.every((name) => Object.hasOwn(fields, name)) &&
    Object.keys(fields).length <= maxProperties &&
    Object.entries(fields).every(isValidField)
  )
}
