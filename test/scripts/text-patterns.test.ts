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

const SLOW_TEXT = `${' '.repeat(50_000)}${'x'.repeat(50_000)}\0`

const nulTexts = ({ id, schema }: (typeof bodies)[number]) =>
  objectMutations(schema)
    .filter(({ what }) => what.endsWith('with NUL'))
    .map(({ what, applyTo }) => ({ what: `${id} ${what}`, body: applyTo(leastObject(schema)) }))

function leastObject(schema: Schema): Record<string, unknown> {
  return minimalValue(schema) as Record<string, unknown>
}

test('every body of the console has a text', () => {
  const withText = bodies.filter((body) => nulTexts(body).length > 0).map(({ id }) => id)
  expect(withText).toEqual(bodies.map(({ id }) => id))
})

test.each(bodies)('$id: refuses NUL in each text', (body) => {
  const accepted = nulTexts(body).filter(({ body: value }) => validators.bodies[body.id]?.(value))
  expect(accepted).toEqual([])
})

test('refuses a long text within 100 ms', () => {
  const started = performance.now()
  expect(validators.bodies.createTask?.({ title: 'A', description: SLOW_TEXT })).toBe(false)
  expect(performance.now() - started).toBeLessThan(100)
})
