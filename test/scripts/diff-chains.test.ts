/** `diff` compares long chains of schemas in linear time. */
import { expect, test } from 'vitest'
import { compareContracts } from '../../scripts/diff/compare.ts'
import { buildContract, type Contract } from '../../scripts/model/contract.ts'
import { parseYaml } from '../../scripts/model/yaml.ts'
import { newMuster } from '../cli/muster.ts'
import { replaceOnce } from '../repository.ts'
import { ASYNCAPI } from './diff-contract.ts'
import { levelsAndRules, newFolder, SOUND } from './diff-folder.ts'

const LINKS = {
  properties: (next: string) => `{ type: object, properties: { next: ${next} } }`,
  allOf: (next: string) => `{ allOf: [${next}, { description: A link. }] }`,
  oneOf: (next: string) => `{ oneOf: [${next}, { type: integer }] }`,
  // 2^999 ways lead to the last schema.
  'two properties': (next: string) => `{ type: object, properties: { a: ${next}, b: ${next} } }`,
}
/** The contract with a chain of schemas, of which the last has the type. */
function withChain(toLink: (next: string) => string, type: string, prefix = 'S'): string {
  const ref = (index: number): string => `{ $ref: '#/components/schemas/${prefix}${index}' }`
  const links = Array.from(
    { length: 999 },
    (_, index) => `${prefix}${index}: ${toLink(ref(index + 1))}`,
  )
  const schemas = [...links, `${prefix}999: { type: ${type} }`]
  const lines = schemas.map((line) => `    ${line}\n`).join('')
  const chained = replaceOnce(SOUND, '  schemas:\n', `  schemas:\n${lines}`)
  return chained.replaceAll(/title: {.*}/g, `title: ${ref(0)}`)
}

/** Of processor time: a few times what the slowest takes on a busy machine. */
const MAX_SECONDS = 20

/** The changes when the type at the end of a chain changes. */
function compareChains(toContract: (type: string) => string): string[] {
  const asyncapi = parseYaml('asyncapi.yaml', ASYNCAPI)
  const [base, revision] = ['string', 'boolean'].map((type) =>
    buildContract(parseYaml('openapi.yaml', toContract(type)), asyncapi),
  ) as [Contract, Contract]
  const start = process.cpuUsage()
  const changes = compareContracts({ base, revision, today: '2026-03-01' })
  expect(process.cpuUsage(start).user).toBeLessThan(MAX_SECONDS * 1_000_000)
  return levelsAndRules(changes)
}

test.each(Object.entries(LINKS))(
  'a chain of 1,000 schemas by %s is compared in linear time',
  (_, toLink) => {
    expect(compareChains((type) => withChain(toLink, type))).toEqual([
      'breaking request-property-type-changed',
      'breaking response-property-type-changed',
    ])
  },
)

/** Alternatives that both change. */
const bothChange = (next: string, type: string): string =>
  `{ oneOf: [${next}, { type: object, properties: { a: { type: ${type} } } }] }`

/** Deeper schemas are more than the parser of YAML can read. */
function withNested(type: string): string {
  let schema = `{ type: ${type} }`
  for (let depth = 0; depth < 300; depth++) schema = bothChange(schema, type)
  return SOUND.replaceAll(/title: {.*}/g, `title: ${schema}`)
}

test.each<[string, (type: string) => string]>([
  ['300 times inside one another', withNested],
  // The names change, too.
  ['in 1,000 schemas', (type) => withChain((next) => bothChange(next, type), type, type)],
])('alternatives that change %s are compared in linear time', (_, toContract) => {
  const rules = compareChains(toContract).filter((rule) => !rule.startsWith('code '))
  expect([...new Set(rules)]).toEqual([
    'breaking request-property-one-of-removed',
    'breaking request-property-type-changed',
    'breaking response-property-one-of-added',
    'breaking response-property-type-changed',
    'safe request-property-one-of-added',
    'safe response-property-one-of-removed',
  ])
})

test('a chain that is too long for the validators is reported', async () => {
  await using muster = await newMuster()
  await using base = await newFolder(SOUND)
  await using revision = await newFolder(withChain(LINKS.properties, 'string'))
  expect(await muster.run(['diff', base.path, '--revision', revision.path])).toMatchObject({
    status: 1,
    stderr: '',
    stdout: expect.stringContaining(
      'openapi.yaml:1 has a chain of references that is too long for the validators: shorten it\n',
    ),
  })
})
