/** The schemas of requests refuse NUL in text, as the description of the API says. */
import { expect, test } from 'vitest'
import { resources } from '../../generated/resources.ts'
import * as validators from '../../generated/validators.js'
import { objectMutations } from '../../scripts/contract/values/invalid-values.ts'
import { minimalValue } from '../../scripts/contract/values/valid-values.ts'
import type { Schema } from '../../scripts/model/schema.ts'

const bodies = resources.flatMap(({ operations, creation, change }) =>
  [
    { id: operations.create, schema: creation },
    { id: operations.update, schema: change },
  ].flatMap(({ id, schema }) => (id && schema ? [{ id, schema }] : [])),
)

/** Minimal bodies with NUL in one text field each. */
function bodiesWithNul(schema: Schema): { what: string; body: unknown }[] {
  const minimal = minimalValue(schema) as Record<string, unknown>
  return objectMutations(schema)
    .filter(({ what }) => what.endsWith('with NUL'))
    .map(({ what, applyTo }) => ({ what, body: applyTo(minimal) }))
}

test.each(bodies)('$id refuses NUL in each text field', ({ id, schema }) => {
  const withNul = bodiesWithNul(schema)
  expect(withNul).not.toEqual([])
  const isValid = validators.bodies[id]
  expect(isValid).toBeDefined()
  expect(withNul.filter(({ body }) => isValid?.(body))).toEqual([])
})

test('createTask refuses NUL after 100,000 characters within a second', () => {
  const description = `${' '.repeat(50_000)}${'x'.repeat(50_000)}\0`
  const started = performance.now()
  expect(validators.bodies.createTask?.({ title: 'A', description })).toBe(false)
  expect(performance.now() - started).toBeLessThan(1_000)
})
