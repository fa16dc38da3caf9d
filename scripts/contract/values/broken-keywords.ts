/** Which promises of a schema an invalid value breaks. */
import type { Schema } from '../../model/schema.ts'
import { WRONG_FORMATS } from './invalid-values.ts'
import { isValid } from './validity.ts'

export interface BrokenKeyword {
  /** The field, as in promises.ts: `*` stands for the entries of a list or map. */
  name: string
  keyword: string
}

/** Every keyword that the value breaks, in the whole schema. */
export function listBroken(schema: Schema, value: unknown, name = ''): BrokenKeyword[] {
  if (value === null) return schema.nullable ? [] : [{ name, keyword: 'type' }]
  const { type, format = '' } = schema
  if (type !== undefined && !isValid({ type }, value)) return [{ name, keyword: 'type' }]
  const own = Object.keys(schema)
    .filter((keyword) => OWN_KEYWORDS.includes(keyword))
    .filter((keyword) => !isValid({ type, [keyword]: schema[keyword] }, value))
  const isMisformatted = WRONG_FORMATS[format]?.includes(String(value)) ?? false
  return [
    ...[...own, ...(isMisformatted ? ['format'] : [])].map((keyword) => ({ name, keyword })),
    ...listBrokenParts(schema, value, name),
  ]
}

const OWN_KEYWORDS = [
  ...['enum', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
  ...['uniqueItems', 'maxProperties'],
]

function listBrokenParts(schema: Schema, value: unknown, name: string): BrokenKeyword[] {
  const { oneOf = [], items = {}, properties = {}, required = [], additionalProperties } = schema
  if (oneOf.length > 0)
    return isValid(schema, value) ? [] : oneOf.flatMap((one) => listBroken(one, value, name))
  const below = (part: string): string => [name, part].filter((step) => step !== '').join('.')
  if (Array.isArray(value)) return value.flatMap((entry) => listBroken(items, entry, below('*')))
  if (typeof value !== 'object' || value === null) return []
  return [
    ...required
      .filter((field) => !Object.hasOwn(value, field))
      .map((field) => ({ name: below(field), keyword: 'required' })),
    ...Object.entries(value).flatMap(([field, entry]) => {
      const declared = properties[field]
      if (declared) return listBroken(declared, entry, below(field))
      if (additionalProperties === false) return [{ name, keyword: 'additionalProperties' }]
      return typeof additionalProperties === 'object'
        ? listBroken(additionalProperties, entry, below('*'))
        : []
    }),
  ]
}
