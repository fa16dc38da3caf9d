/** The changes that `diff` finds between two contracts. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { diff, type ListedChange } from '../../scripts/diff/diff.ts'
import { RULES, SCHEMA_RULES, type SchemaChange, toRuleId } from '../../scripts/diff/rules.ts'
import { KNOWN_WORDS, WORD_RULES } from '../../scripts/diff/words.ts'
import { hasNamesAsKeys, listNodes } from '../../scripts/model/nodes.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { ROOT, replaceOnce } from '../repository.ts'
import { AFTER_SUNSET, ASYNCAPI, type Edit, event, OPENAPI, TODAY } from './diff-contract.ts'
import { CREATE_NOTE, NOTE_LOST, OLD_PATH } from './diff-edits.ts'
import { levelsAndRules, newFolder, SOUND } from './diff-folder.ts'
import { REQUEST_CASES } from './diff-request-cases.ts'
import { RESPONSE_CASES } from './diff-response-cases.ts'
import { SCHEMA_WORD_CASES } from './diff-schema-word-cases.ts'
import { SENTENCES } from './diff-sentences.ts'
import { PARTS, WORD_CASES } from './diff-word-cases.ts'

/** The changes from the contract to the edited one, and from the edited one back. */
async function diffBothWays(
  edits: Edit[],
  today: Date,
): Promise<{ forward: ListedChange[]; backward: ListedChange[] }> {
  for (const [from] of edits) expect(OPENAPI + ASYNCAPI).toContain(from)
  const edit = (text: string): string => {
    let edited = text
    for (const [from, to] of edits) if (text.includes(from)) edited = replaceOnce(edited, from, to)
    return edited
  }
  await using before = await newFolder()
  await using after = await newFolder(edit(OPENAPI), edit(ASYNCAPI))
  const forward = await diff({ base: before.path, root: after.path, today })
  const backward = await diff({ base: after.path, root: before.path, today })
  return { forward: forward.changes, backward: backward.changes }
}

const CASES = { ...REQUEST_CASES, ...RESPONSE_CASES }
const ALL_WORD_CASES = [...WORD_CASES, ...SCHEMA_WORD_CASES]

describe.each(Object.entries(CASES))('changes of %s', (_, cases) => {
  test.each(cases.map((each) => ({ ...each, name: each.forward.join(', ') || 'no change' })))(
    '$name',
    async ({ edit, also, forward, backward, today = TODAY }) => {
      const found = await diffBothWays(also ? [edit, also] : [edit], today)
      expect({
        forward: levelsAndRules(found.forward),
        backward: levelsAndRules(found.backward),
      }).toEqual({ forward, backward })
    },
  )
})

test.each(SENTENCES)('describes $name', async ({ edits, forward, backward }) => {
  const found = await diffBothWays(edits, TODAY)
  const describeEach = (changes: ListedChange[]): string[] =>
    changes.map(({ level, id, part, what }) => `${level} ${id}: ${part} ${what}`)
  expect({
    forward: describeEach(found.forward),
    backward: describeEach(found.backward),
  }).toEqual({ forward, backward })
})

/** The contract with the word at the part. */
function withWord(at: keyof typeof PARTS, word: string): [openapi: string, asyncapi: string] {
  const places: Record<typeof at, Edit> = {
    document: ['x-rate-limit:', `${word}\nx-rate-limit:`],
    operation: ['operationId: createNote\n', `operationId: createNote\n      ${word}\n`],
    parameter: ['{ name: page,', `{ ${word}, name: page,`],
    header: ['X-Hint: { ', `X-Hint: { ${word}, `],
    schema: ['    Note:\n', `    Note:\n      ${word}\n`],
    delivery: ['components:\n', `operations: { deliver: { ${word} } }\ncomponents:\n`],
  }
  return at === 'delivery'
    ? [OPENAPI, replaceOnce(ASYNCAPI, ...places[at])]
    : [replaceOnce(OPENAPI, ...places[at]), ASYNCAPI]
}

test.each(ALL_WORD_CASES)('$rule: from $words.0 to $words.1', async (each) => {
  const { at, words, forward, backward } = each
  await using before = await newFolder(...withWord(at, words[0]))
  await using after = await newFolder(...withWord(at, words[1]))
  const changesOf = async (base: string, root: string): Promise<string[]> => {
    const { changes } = await diff({ base, root, today: TODAY })
    return changes.map(({ level, id, part, what }) => `${level} ${id}: ${part} ${what}`)
  }
  const withPart = (sentence: string): string => sentence.replace(': ', `: ${PARTS[at]} `)
  expect({
    forward: await changesOf(before.path, after.path),
    backward: await changesOf(after.path, before.path),
  }).toEqual({ forward: forward.map(withPart), backward: backward.map(withPart) })
})

test('every rule of a word has a test', () => {
  expect([...new Set(ALL_WORD_CASES.map(({ rule }) => rule))].sort()).toEqual(
    Object.keys(WORD_RULES).sort(),
  )
})

test('every word of the contracts and of the toolchain has a rule, or a reason to have none', async () => {
  const contract = await readContract(ROOT)
  const inContracts = Object.values(contract.sources).flatMap(({ root }) =>
    listNodes(root).flatMap(({ path, value }) => (hasNamesAsKeys(path) ? [] : Object.keys(value))),
  )
  const files = ['words', 'model', 'contract'].map((folder) => join(ROOT, 'scripts', folder))
  const texts = await Promise.all(files.map(readTypeScript))
  const inScripts = texts.join('').match(/(?<=['`])x-[a-z-]+(?=['`])/g) ?? []
  // The model writes these two itself.
  const own = ['x-depends-on', 'x-by-option']
  const words = [...inContracts, ...inScripts].filter((key) => key.startsWith('x-'))
  expect([...new Set(words)].filter((word) => ![...KNOWN_WORDS, ...own].includes(word))).toEqual([])
})

async function readTypeScript(folder: string): Promise<string> {
  const names = await readdir(folder, { recursive: true })
  const files = names.filter((name) => name.endsWith('.ts'))
  return (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('')
}

test('a change to x-subscribable: false is breaking, and the change back is safe', async () => {
  await using before = await newFolder()
  await using after = await newFolder(
    replaceOnce(OPENAPI, 'x-emitted-by-system: [note.lost]\n', ''),
    replaceOnce(
      ASYNCAPI,
      '      name: note.lost\n',
      '      name: note.lost\n      x-subscribable: false\n',
    ),
  )
  expect(levelsAndRules((await diff({ base: before.path, root: after.path })).changes)).toEqual([
    'breaking event-not-subscribable',
  ])
  expect(levelsAndRules((await diff({ base: after.path, root: before.path })).changes)).toEqual([
    'safe event-subscribable',
  ])
})

test('a removal is breaking without a deprecation, and safe after its sunset', async () => {
  await using before = await newFolder(SOUND)
  await using after = await newFolder(
    replaceOnce(replaceOnce(SOUND, OLD_PATH, ''), CREATE_NOTE, ''),
    ASYNCAPI.replace(event('NoteCreated', 'note.created'), '')
      .replace(NOTE_LOST, '')
      .replace('  messages:', '  messages: {}'),
  )
  const found = await diff({ base: before.path, root: after.path, today: AFTER_SUNSET })
  expect(levelsAndRules(found.changes)).toEqual([
    'breaking api-removed-without-deprecation',
    'breaking event-removed-without-deprecation',
    'safe api-path-removed-with-deprecation',
    'safe event-removed-with-deprecation',
  ])
  expect(found.problems).toEqual([
    {
      file: 'openapi.yaml',
      line: 5,
      problem:
        'the system emits note.lost, which asyncapi.yaml does not have: add the message or correct the name',
    },
  ])
})

test('every rule has a test', () => {
  const inCases = Object.values(CASES)
    .flat()
    .flatMap(({ forward, backward }) => [...forward, ...backward])
  const inSentences = SENTENCES.flatMap(({ forward, backward }) => [...forward, ...backward])
  const inOtherTests = [
    'breaking event-removed-without-deprecation',
    'breaking event-not-subscribable',
    'safe event-subscribable',
  ]
  const tested = new Set(
    [...inCases, ...inSentences, ...inOtherTests].map((text) => /^\w+ ([\w-]+)/.exec(text)?.[1]),
  )
  expect(Object.keys(RULES).filter((id) => !tested.has(id))).toEqual([])
  const subjects = [
    'request-parameter',
    'request-body',
    'request-property',
    'response-body',
    'response-property',
    'event-property',
    'event-header',
  ]
  const changes = Object.keys(SCHEMA_RULES) as SchemaChange[]
  expect(
    changes.filter((change) => !subjects.some((subject) => tested.has(toRuleId(subject, change)))),
  ).toEqual([])
})

test('a change of a shared schema is listed once, with its line and its operations', async () => {
  await using before = await newFolder()
  const tags = '        tags: { type: array, items: { type: string }, uniqueItems: true }\n'
  await using after = await newFolder(replaceOnce(OPENAPI, tags, ''))
  const line = OPENAPI.slice(0, OPENAPI.indexOf(tags)).split('\n').length
  expect((await diff({ base: before.path, root: after.path })).changes).toEqual([
    {
      id: 'response-optional-property-removed',
      level: 'breaking',
      file: 'openapi.yaml',
      line,
      isGone: true,
      concerns: ['listNotes', 'getNote'],
      part: '`tags` of the response 200',
      what: 'is gone',
    },
  ])
})

test('a change of a component names the component if operations have it in different parts', async () => {
  const note = "schema: { $ref: '#/components/schemas/Note' }"
  const list = "schema: { type: array, items: { $ref: '#/components/schemas/Note' } }"
  const edits: Edit[] = [
    [note, list],
    ["'404': { description: None. }", "'404': { $ref: '#/components/responses/None' }"],
    [
      "'201': { description: Done. }",
      "'201': { description: Done. }\n        '410': { $ref: '#/components/responses/None' }",
    ],
    [
      'components:\n',
      `components:
  headers:
    Left: { schema: { type: integer } }
  responses:
    None:
      description: None.
      headers: { X-Left: { $ref: '#/components/headers/Left' }, X-Own: { schema: { type: string } } }
      content: { application/json: { schema: { type: object, properties: { message: { type: string } } } } }
`,
    ],
  ]
  const base = edits.reduce((text, [from, to]) => replaceOnce(text, from, to), OPENAPI)
  const changed: Edit[] = [
    ['        tags: { type: array, items: { type: string }, uniqueItems: true }\n', ''],
    ['Left: { schema: { type: integer }', 'Left: { schema: { type: integer, format: int32 }'],
    ['X-Own: { schema: { type: string }', 'X-Own: { schema: { type: string, format: date }'],
    ['properties: { message: { type: string } }', 'properties: {}'],
  ]
  const revision = changed.reduce((text, [from, to]) => replaceOnce(text, from, to), base)
  await using before = await newFolder(base)
  await using after = await newFolder(revision)
  const { changes } = await diff({ base: before.path, root: after.path })
  expect(
    changes.map(({ concerns, part, what }) => `${concerns.join(', ')}: ${part} ${what}`).sort(),
  ).toEqual([
    'listNotes, createNote: `message` of the response None is gone',
    'listNotes, createNote: the header Left has the format int32',
    'listNotes, createNote: the header X-Own of the response None has the format date',
    'listNotes, getNote: `tags` of the schema Note is gone',
  ])
})

test('true is a schema of JSON Schema, which allows any value', async () => {
  const shade = 'shade: { type: integer, multipleOf: 3 }'
  await using before = await newFolder(OPENAPI, replaceOnce(ASYNCAPI, shade, 'shade: true'))
  await using after = await newFolder()
  const found = await diff({ base: before.path, root: after.path })
  expect(levelsAndRules(found.changes)).toEqual([
    'safe event-property-constraint-added',
    'safe event-property-type-specialized',
  ])
})

test('changes of two parts on one line are both listed', async () => {
  // JSON is YAML.
  const toLine = (text: string): string => JSON.stringify(parse(text))
  const [colour, tags] = [
    '        colour: { type: string, enum: [red, green] }\n        state',
    '        tags: { type: array, items: { type: string }, uniqueItems: true }\n',
  ]
  await using before = await newFolder(toLine(OPENAPI))
  const edited = replaceOnce(replaceOnce(OPENAPI, tags, ''), colour, '        state')
  await using after = await newFolder(toLine(edited))
  const { changes } = await diff({ base: before.path, root: after.path })
  expect(changes.map(({ line, part, what }) => `${line}: ${part} ${what}`)).toEqual([
    '1: `colour` of the response 200 is gone',
    '1: `tags` of the response 200 is gone',
  ])
})
