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
function withChain(toLink: (next: string) => string, type: string): string {
  const ref = (index: number): string => `{ $ref: '#/components/schemas/S${index}' }`
  const links = Array.from({ length: 999 }, (_, index) => `S${index}: ${toLink(ref(index + 1))}`)
  const schemas = [...links, `S999: { type: ${type} }`].map((line) => `    ${line}\n`).join('')
  const chained = replaceOnce(SOUND, '  schemas:\n', `  schemas:\n${schemas}`)
  return chained.replaceAll(/title: {.*}/g, `title: ${ref(0)}`)
}

test.each(Object.entries(LINKS))(
  'a chain of 1,000 schemas by %s is compared within a second',
  (_, toLink) => {
    const asyncapi = parseYaml('asyncapi.yaml', ASYNCAPI)
    const [base, revision] = ['string', 'boolean'].map((type) =>
      buildContract(parseYaml('openapi.yaml', withChain(toLink, type)), asyncapi),
    ) as [Contract, Contract]
    const start = process.cpuUsage()
    const changes = compareContracts({ base, revision, today: '2026-03-01' })
    expect(process.cpuUsage(start).user).toBeLessThan(1_000_000)
    expect(levelsAndRules(changes)).toEqual([
      'breaking request-property-type-changed',
      'breaking response-property-type-changed',
    ])
  },
)

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
