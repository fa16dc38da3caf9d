import { expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { ContractError } from '../../scripts/model/source.ts'
import { parseYaml } from '../../scripts/model/yaml.ts'

const SAME_VALUES = `
numbers: [1_000, 012, 0o17, 0x1F, 1e3, .5, 1., +12, 12e03, 123456789012345678901, 1:30, .inf]
days: [2026-03-01, 2026-03-01T00:00:00Z]
words: [yes, on, TRUE, ~, Null, =, '', "a\\u0041", 'it''s', a  b]
folded: >
  one

  two
kept: |+
  one

plain: one
  two
unquoted: { url: https://muster.example/a#b, text: a#b } # a comment
200: a key that is a number
2026-01-01: a key that is a day
base: &base { type: string, minLength: 1 }
copy: *base
merged:
  <<: *base
  minLength: 2
`

test('parseYaml reads the same values as the package yaml, which knows the positions', () => {
  const tree = parseDocument(SAME_VALUES, { merge: true })
  expect(tree.errors).toEqual([])
  expect(parseYaml('openapi.yaml', SAME_VALUES).root).toEqual(tree.toJS())
})

test('parseYaml accepts an unknown tag, which only the package yaml reads', () => {
  const { root, position } = parseYaml('openapi.yaml', 'info:\n  title: !name Muster\n')
  expect(root).toEqual({ info: { title: 'Muster' } })
  expect(position(['info', 'title'])).toEqual({ line: 2, column: 3 })
})

test.each([
  ['a repeated key', 'a: 1\nb: 2\na: 3\n', 'openapi.yaml:3 is not YAML: Map keys must be unique'],
  ['two documents', 'a: 1\n---\na: 2\n', 'openapi.yaml:2 is not YAML'],
  ['an open list', 'a: [b\n', 'end with a ]: correct the text there'],
  [
    'a list',
    '- a\n',
    'openapi.yaml:1 must be a YAML mapping: write keys and their values, for example "openapi: 3.0.3"',
  ],
  ['no text', '', 'openapi.yaml:1 must be a YAML mapping'],
])('parseYaml refuses %s', (_, text, message) => {
  expect(() => parseYaml('openapi.yaml', text)).toThrow(ContractError)
  expect(() => parseYaml('openapi.yaml', text)).toThrow(message)
})

/** YAML with `levels` lists of nine items. Each list repeats the list before. */
function multiply(levels: number): string {
  const lines = Array.from({ length: levels }, (_, level) => {
    const item = level === 0 ? 'value' : `*a${level - 1}`
    return `k${level}: &a${level} [${Array(9).fill(item).join(', ')}]`
  })
  return `${lines.join('\n')}\n`
}

test.each([
  ['js-yaml', ''],
  ['yaml', 'name: !name Muster\n'],
])(
  'parseYaml refuses aliases that multiply the values or the levels, also if only %s reads them',
  (_, line) => {
    const message = 'openapi.yaml:1 has more than 2000000 values once each alias is replaced'
    expect(() => parseYaml('openapi.yaml', line + multiply(40))).toThrow(message)
    expect(() => parseYaml('openapi.yaml', `${line}a: &a { b: [*a] }\n`)).toThrow(message)
    expect(parseYaml('openapi.yaml', line + multiply(4)).root).toHaveProperty('k3')
    const deep = (levels: number): string =>
      Array.from({ length: levels }, (_, n) => `k${n + 1}: &k${n + 1} [*k${n}]\n`).join('')
    expect(() => parseYaml('openapi.yaml', `${line}k0: &k0 []\n${deep(1000)}`)).toThrow(
      'openapi.yaml:1 has more than 1000 levels once each alias is replaced by its target',
    )
    expect(parseYaml('openapi.yaml', `${line}k0: &k0 []\n${deep(900)}`).root).toHaveProperty('k900')
  },
)
