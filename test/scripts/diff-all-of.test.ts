/** `diff` compares `allOf` by what it means. */
import { expect, test } from 'vitest'
import { diff } from '../../scripts/diff/diff.ts'
import { OPENAPI } from './diff-contract.ts'
import { levelsAndRules, newFolder } from './diff-folder.ts'

const SCHEMAS = `  schemas:
    Short: { type: string, maxLength: 9, nullable: true }
    Named: { type: object, additionalProperties: false, properties: { name: { type: string } } }
    Choice: { type: object, nullable: true, oneOf: [{ $ref: '#/components/schemas/Person' }, { $ref: '#/components/schemas/Team' }] }
    Either: { oneOf: [{ $ref: '#/components/schemas/Person' }, { type: integer }] }
`
/** The contract with the schema in a request and in a response. */
const withSchema = (schema: string): string =>
  OPENAPI.replace('  schemas:\n', SCHEMAS).replaceAll(/title: {.*}/g, `title: ${schema}`)
const ref = (name: string): string => `{ $ref: '#/components/schemas/${name}' }`
const PERSON_AND_TEAM = `allOf: [${ref('Person')}, ${ref('Team')}]`
const MERGED = 'type: object, properties: { name: { type: string }, members: { type: integer } }'
const PATTERNS = ['{ type: string, pattern: ^a }', '{ type: string, pattern: b$ }']
const NULLABLE = 'type: string, maxLength: 9, nullable: true'

const same = [
  {
    name: 'in another order',
    schemas: [PERSON_AND_TEAM, `allOf: [${ref('Team')}, ${ref('Person')}]`],
  },
  { name: 'and one object with all properties', schemas: [PERSON_AND_TEAM, MERGED] },
  {
    name: 'with required beside it',
    schemas: [`${PERSON_AND_TEAM}, required: [name]`, `${MERGED}, required: [name]`],
  },
  {
    name: 'with required inside',
    schemas: [
      `allOf: [${ref('Person')}, { required: [name] }]`,
      `allOf: [${ref('Person')}], required: [name]`,
    ],
  },
  { name: 'in an allOf', schemas: [`allOf: [{ ${PERSON_AND_TEAM} }]`, MERGED] },
  {
    name: 'that repeats a schema',
    schemas: [`allOf: [${ref('Person')}, ${ref('Person')}]`, `allOf: [${ref('Person')}]`],
  },
  {
    name: 'with two bounds',
    schemas: [
      `allOf: [${ref('Short')}], maxLength: 5`,
      'type: string, nullable: true, maxLength: 5',
    ],
  },
  {
    name: 'around a nullable schema',
    schemas: ['type: string, maxLength: 9, nullable: true', `allOf: [${ref('Short')}]`],
  },
  {
    name: 'around nullable alternatives',
    schemas: [
      `type: object, nullable: true, oneOf: [${ref('Person')}, ${ref('Team')}]`,
      `allOf: [${ref('Choice')}], description: A choice.`,
    ],
  },
  {
    name: 'around nullable alternatives, with the type outside',
    schemas: [
      `type: object, nullable: true, oneOf: [${ref('Person')}, ${ref('Team')}]`,
      `type: object, nullable: true, allOf: [${ref('Choice')}]`,
    ],
  },
  {
    name: 'that is nullable only outside, without a type',
    schemas: ['type: string', 'nullable: true, allOf: [{ type: string }]'],
  },
  {
    name: 'of two patterns, in another order',
    schemas: [`allOf: [${PATTERNS}]`, `allOf: [${PATTERNS.toReversed()}]`],
  },
]
/** The changes from the first schema to the second, and back. */
async function diffOf([before, after]: string[]): Promise<[string[], string[]]> {
  await using base = await newFolder(withSchema(`{ ${before} }`))
  await using root = await newFolder(withSchema(`{ ${after} }`))
  const forward = await diff({ base: base.path, root: root.path })
  const backward = await diff({ base: root.path, root: base.path })
  return [levelsAndRules(forward.changes), levelsAndRules(backward.changes)]
}
test.each(same)('$name: no change', async ({ schemas }) =>
  expect(await diffOf(schemas)).toEqual([[], []]),
)

// Each change limits the values.
const limits = [
  {
    name: 'a required property beside it',
    schemas: [PERSON_AND_TEAM, `${PERSON_AND_TEAM}, required: [name]`],
    rules: ['became-required', 'became-optional'],
  },
  {
    name: 'a required property beside alternatives',
    schemas: [`allOf: [${ref('Either')}]`, `allOf: [${ref('Either')}], required: [name]`],
    rules: ['became-required', 'became-optional'],
  },
  {
    name: 'a further pattern',
    schemas: [`allOf: [${PATTERNS}]`, `allOf: [{ type: string, pattern: c }, ${PATTERNS}]`],
    rules: ['constraint-added', 'constraint-removed'],
  },
  {
    name: 'another schema that refuses the properties of the first',
    schemas: [`allOf: [${ref('Team')}]`, `allOf: [${ref('Team')}, ${ref('Named')}]`],
    rules: ['constraint-added', 'constraint-removed'],
  },
  {
    name: 'a schema that refuses null',
    schemas: [NULLABLE, `${NULLABLE}, allOf: [{ type: string }]`],
    rules: ['became-not-nullable', 'became-nullable'],
  },
  {
    name: 'the type of a property',
    schemas: [
      PERSON_AND_TEAM.replace(ref('Team'), '{ properties: { members: { type: number } } }'),
      PERSON_AND_TEAM,
    ],
    rules: ['type-specialized', 'type-generalized'],
  },
]
test.each(limits)('$name: breaking in requests', async ({ schemas, rules }) => {
  const [limited, unlimited] = rules
  expect(await diffOf(schemas)).toEqual([
    [`breaking request-property-${limited}`, `safe response-property-${limited}`],
    [`breaking response-property-${unlimited}`, `safe request-property-${unlimited}`],
  ])
})
