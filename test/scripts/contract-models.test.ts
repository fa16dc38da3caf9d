/** The models of `muster contract`: the records that a list must return, and the comparison of a
 *  stored value with the sent one. */
import { expect, test } from 'vitest'
import { findDifference } from '../../scripts/contract/oracles/stored-values.ts'
import type { Schema } from '../../scripts/model/schema.ts'
import { applyFilter, applySort } from '../../scripts/words/list-model.ts'
import type { Filter, ListWords } from '../../scripts/words/lists.ts'

const sort: ListWords['sort'] = {
  parameter: 'sort',
  descending: '-',
  nulls: 'last',
  ties: '/id',
  ties_follow: 'last',
}

test.each([
  { fields: ['name'], want: [3, 1, 2, 4] },
  { fields: ['-name'], want: [2, 1, 3, 4] },
  { fields: ['size', 'name'], want: [3, 1, 2, 4] },
  { fields: ['-size'], want: [4, 2, 1, 3] },
  { fields: [], want: [1, 2, 3, 4] },
])('applySort by $fields: nulls last, text by code point, ties by ID', ({ fields, want }) => {
  const records = [
    { id: 4, name: null, size: 5 },
    { id: 2, name: '😀', size: 5 },
    { id: 1, name: '\ufb01', size: 5 },
    { id: 3, name: 'B', size: 3 },
  ]
  expect(applySort(records, sort, fields).map((record) => (record as { id: number }).id)).toEqual(
    want,
  )
})

test.each<{ filter: Filter; values: string[]; want: number[] }>([
  { filter: { match: 'equals', fields: ['name'] }, values: ['Ada'], want: [1] },
  { filter: { match: 'equals', fields: ['name'] }, values: ['Ada', 'ben'], want: [1, 2] },
  { filter: { match: 'equals', fields: ['name'], ignore_case: true }, values: ['BEN'], want: [2] },
  { filter: { match: 'has', fields: ['tags'] }, values: ['x'], want: [1] },
  { filter: { match: 'contains', fields: ['name', 'owner.name'] }, values: ['ar'], want: [2] },
  { filter: { match: 'after', fields: ['at'] }, values: ['2026-01-01T01:00:00+01:00'], want: [2] },
  { filter: { match: 'before', fields: ['at'] }, values: ['2026-01-02T00:00:00Z'], want: [1] },
])('applyFilter $filter by $values', ({ filter, values, want }) => {
  const records = [
    { id: 1, name: 'Ada', owner: { name: null }, tags: ['x'], at: '2026-01-01T00:00:00.000Z' },
    { id: 2, name: 'ben', owner: { name: 'Mark' }, tags: ['xy'], at: '2026-01-02T00:00:00.000Z' },
  ]
  const found = applyFilter(records, filter, values)
  expect(found.map((record) => (record as { id: number }).id)).toEqual(want)
})

const time: Schema = { type: 'string', format: 'date-time' }
const map: Schema = { type: 'object', additionalProperties: { type: 'string' } }
const object: Schema = { type: 'object', properties: { a: { type: 'string' } } }

test.each<{ schema: Schema; sent: unknown; stored: unknown; isSame: boolean }>([
  {
    schema: time,
    sent: '2026-01-01T01:00:00+01:00',
    stored: '2026-01-01T00:00:00.000Z',
    isSame: true,
  },
  {
    schema: time,
    sent: '2026-01-01T01:00:00+01:00',
    stored: '2026-01-01T01:00:00.000Z',
    isSame: false,
  },
  { schema: { type: 'string', format: 'uuid' }, sent: 'AB', stored: 'ab', isSame: true },
  { schema: { type: 'string' }, sent: 'AB', stored: 'ab', isSame: false },
  { schema: { type: 'string', nullable: true }, sent: null, stored: 'x', isSame: false },
  { schema: { type: 'array', items: {} }, sent: [1, 2], stored: [2, 1], isSame: false },
  { schema: { type: 'array', items: time }, sent: [], stored: [], isSame: true },
  { schema: map, sent: { a: 'x' }, stored: { a: 'x', b: 'y' }, isSame: false },
  { schema: object, sent: { a: 'x' }, stored: { a: 'x', b: 'y' }, isSame: true },
  { schema: object, sent: { a: 'x' }, stored: { b: 'y' }, isSame: false },
])(
  'findDifference of sent $sent and stored $stored: equal is $isSame',
  ({ schema, sent, stored, isSame }) => {
    expect(findDifference(schema, sent, stored) === undefined).toBe(isSame)
  },
)
