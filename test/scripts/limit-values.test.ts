/** The valid values at the limits of a schema, which the contract suite sends. */
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { expect, test } from 'vitest'
import { limitValues } from '../../scripts/contract/values/limit-values.ts'
import type { Schema } from '../../scripts/model/schema.ts'

const ajv = new Ajv({ strict: false })
addFormats.default(ajv)

const cases: { name: string; schema: Schema; want: unknown[] }[] = [
  {
    name: 'a number between 0 and 5, without the sample 1e21',
    schema: { type: 'number', minimum: 0, maximum: 5 },
    want: [0, 1, 0.1, 4, 5],
  },
  {
    name: 'a number from 1, without the sample 0.1',
    schema: { type: 'number', minimum: 1 },
    want: [1, 2, 1e21, Number.MAX_SAFE_INTEGER],
  },
  {
    name: 'a negative integer',
    schema: { type: 'integer', maximum: -5 },
    want: [-6, -5],
  },
  {
    name: 'an integer with one possible value',
    schema: { type: 'integer', minimum: 7, maximum: 7 },
    want: [7, 7],
  },
  {
    name: 'a short email',
    schema: { type: 'string', format: 'email', maxLength: 20 },
    want: ['a@example.com', 'aaaaaaaaaaaaaaa@d.de'],
  },
  {
    name: 'an email that must be shorter than the sample',
    schema: { type: 'string', format: 'email', maxLength: 6 },
    want: ['a@d.de'],
  },
  {
    name: 'an array of at least two',
    schema: { type: 'array', minItems: 2, maxItems: 3, items: { type: 'boolean' } },
    want: [
      [true, true],
      [true, true, true],
      [true, true],
      [false, true],
    ],
  },
  {
    name: 'an array without repetitions',
    schema: { type: 'array', maxItems: 3, uniqueItems: true, items: { enum: ['a', 'b'] } },
    want: [[], ['a'], ['b']],
  },
  {
    name: 'an object with a required property and undeclared ones',
    schema: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'integer', minimum: 1, maximum: 2 } },
      additionalProperties: { type: 'boolean' },
      maxProperties: 3,
    },
    want: [
      { id: 1 },
      { id: 1 },
      { id: 1 },
      { id: 2 },
      { id: 1 },
      { id: 2 },
      { id: 1, name: true },
      { id: 1, name: false },
      { id: 1, field_0: true, field_1: true },
    ],
  },
]

test.each(cases)('limitValues of $name', ({ schema, want }) => {
  const values = limitValues(schema).map(({ value }) => value)
  expect(values).toEqual(want)
  expect(values.filter((value) => !ajv.validate(schema, value))).toEqual([])
})
