/** The values that the contract suite generates for a schema are valid. */
import fc from 'fast-check'
import { it } from 'vitest'
import { validValues } from '../../scripts/contract/values/valid-values.ts'
import { isValid } from '../../scripts/contract/values/validity.ts'
import type { Schema } from '../../scripts/model/schema.ts'

const integer: Schema = { type: 'integer' }
const openObject: Schema = { type: 'object', additionalProperties: { type: 'string' } }

it.each<[string, Schema]>([
  [
    'named properties and a largest number',
    { ...openObject, properties: { a: integer }, maxProperties: 2 },
  ],
  [
    'only named properties',
    { ...openObject, properties: { a: integer, b: integer }, maxProperties: 2 },
  ],
  // An empty name is the random name that is generated most often.
  ['an optional property of another type', { ...openObject, properties: { '': integer } }],
])('objects with additional properties, for a schema with %s', (_, schema) => {
  fc.assert(
    fc.property(validValues(schema), (value) => isValid(schema, value)),
    { numRuns: 100 },
  )
})
