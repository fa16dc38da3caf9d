/** generated/openapi-3.1.json has the rules that OpenAPI 3.0 cannot express. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import contract from '../../generated/openapi-3.1.json' with { type: 'json' }
import { operations } from '../../generated/operations.ts'
import { assertDistinctSorts } from '../../operations/request-rules.ts'
import { assertExportFilters, type ExportResource } from '../../records/exports.ts'

const ajv = new Ajv2020({ strict: false, discriminator: false })
addFormats.default(ajv)
ajv.addSchema(contract, 'contract')

const paths: Record<string, object> = contract.paths

const isValid = (pointer: string, value: unknown): boolean =>
  ajv.validate({ $ref: `contract#${pointer}` }, value)

function isAccepted(check: () => void): boolean {
  try {
    check()
    return true
  } catch {
    return false
  }
}

describe('a sort is valid exactly if the service accepts it', () => {
  const lists = Object.values(operations).filter(({ sorts }) => sorts.length > 0)
  test.each(lists)('$path', ({ path, sorts }) => {
    const { get = {} } = paths[path] as { get?: { parameters?: object[] } }
    const { parameters = [] } = get
    const index = parameters.findIndex(
      (parameter) => 'name' in parameter && parameter.name === 'sort',
    )
    expect(index).toBeGreaterThanOrEqual(0)
    const pointer = `/paths/${path.replaceAll('/', '~1')}/get/parameters/${index}/schema`
    const descending = sorts.map((name) => `-${name}`)
    const combinations = [sorts, descending, ...sorts.map((name) => [name, `-${name}`])]
    for (const sort of combinations) {
      const accepted = isAccepted(() => assertDistinctSorts(sort, 'sort'))
      expect({ sort, valid: isValid(pointer, sort) }).toEqual({ sort, valid: accepted })
    }
  })
})

const exportable = contract.components.schemas.ExportResource.enum as ExportResource[]
/** Names of filters, each with a value that at least one list accepts. */
const SAMPLES: Record<string, string> = {
  status: 'archived',
  email: 'ada@example.com',
  search: 'a',
  due_before: '2026-03-02T09:30:00Z',
  currency: 'EUR',
  screening_outcome: 'meets_all',
}

describe('the name of an export filter is valid exactly if the service accepts it', () => {
  test.each(exportable)('%s', (resource) => {
    for (const [name, text] of Object.entries(SAMPLES)) {
      const isKnown = isAccepted(() => assertExportFilters({ resource, filters: { [name]: text } }))
      const valid = isValid('/components/schemas/ExportCreate', {
        resource,
        format: 'csv',
        filters: { [name]: text },
      })
      // Each list has filter[status], but accepts its own statuses only. The document has no rule
      // for the values of filters.
      const isValidName = name === 'status' || isKnown
      expect({ name, valid }).toEqual({ name, valid: isValidName })
    }
  })
})

test('Answers: the name of an answer must not contain NUL', () => {
  const pointer = '/components/schemas/Answers'
  expect([isValid(pointer, { 'a\0b': 1 }), isValid(pointer, { a: 1 })]).toEqual([false, true])
})

test('a nullable enumeration becomes oneOf with null', () => {
  const { oneOf } = contract.components.schemas.ScreeningOutcome
  expect(oneOf).toEqual([{ $ref: '#/components/schemas/ScreeningResult' }, { type: 'null' }])
})
