/** The changes that `diff` finds between two contracts, and the output of `muster diff`. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { withEntry } from '../../scripts/diff/changelog.ts'
import { compareContracts } from '../../scripts/diff/compare.ts'
import { diff, type ListedChange } from '../../scripts/diff/diff.ts'
import { RULES, SCHEMA_RULES, type SchemaChange, toRuleId } from '../../scripts/diff/rules.ts'
import { buildContract, type Contract } from '../../scripts/model/contract.ts'
import { parseYaml } from '../../scripts/model/yaml.ts'
import { newMuster } from '../cli/muster.ts'
import { replaceOnce } from '../repository.ts'
import { AFTER_SUNSET, ASYNCAPI, type Edit, event, OPENAPI, TODAY } from './diff-contract.ts'
import { CREATE_NOTE, NOTE_LOST, OLD_PATH } from './diff-edits.ts'
import { REQUEST_CASES } from './diff-request-cases.ts'
import { RESPONSE_CASES } from './diff-response-cases.ts'
import { SENTENCES } from './diff-sentences.ts'

/** The contract without its recursive schema, which `generate` refuses. */
const SOUND = OPENAPI.replace(/^ *parent: .*\n/m, '')

async function newFolder(openapi = OPENAPI, asyncapi = ASYNCAPI) {
  const path = await mkdtemp(join(tmpdir(), 'diff-'))
  const write = (file: string, text: string) => writeFile(join(path, file), text)
  await write('openapi.yaml', openapi)
  await write('asyncapi.yaml', asyncapi)
  return {
    path,
    write,
    read: (file: string) => readFile(join(path, file), 'utf8'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

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

const levelsAndRules = (changes: ListedChange[]): string[] =>
  changes.map(({ level, id }) => `${level} ${id}`).sort()

const CASES = { ...REQUEST_CASES, ...RESPONSE_CASES }

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

describe('allOf', () => {
  const SCHEMAS = `  schemas:
    Short: { type: string, maxLength: 9, nullable: true }
    Named: { type: object, additionalProperties: false, properties: { name: { type: string } } }
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

test.each([
  { id: 'response-header-pattern-added', want: '- 5 operations: the header has the pattern ^x.' },
  { id: 'event-header-pattern-added', want: '- 5 events: the header has the pattern ^x.' },
])('the changelog has the number of many names: $want', ({ id, want }) => {
  const change: ListedChange = {
    ...{ id, level: 'safe', file: 'asyncapi.yaml', line: 1, isGone: false },
    ...{ concerns: ['a', 'b', 'c', 'd', 'e'], part: 'the header', what: 'has the pattern ^x' },
  }
  const difference = { from: '1.0.0', to: '1.1.0', changes: [change], problems: [], warnings: [] }
  expect(withEntry('', difference, TODAY)).toContain(`\n${want}\n`)
})

describe('muster diff', () => {
  const SAFE = replaceOnce(SOUND, 'version: 1.0.0', 'version: 1.1.0').replace(
    CREATE_NOTE,
    `${CREATE_NOTE}    delete: { operationId: deleteNotes, responses: { '204': { description: Done. } } }\n`,
  )
  const BREAKING = replaceOnce(SOUND, 'version: 1.0.0', 'version: 2.0.0').replace(
    'required: [title]\n',
    'required: [title, size]\n',
  )
  const BREAKING_SENTENCE = 'createNote: `size` of the request body is required.'
  const TODAY_UTC = new Date().toISOString().slice(0, 10)
  const SAFE_ENTRY = `## 1.1.0 · ${TODAY_UTC}\n\n### Compatible\n\n- \`deleteNotes\`: DELETE /notes is new.\n`
  const BREAKING_ENTRY = `## 2.0.0 · ${TODAY_UTC}\n\n### Breaking\n\n- \`createNote\`: \`size\` of the request body is required.\n`

  /** A git work tree whose last commit has the contract, and `muster diff HEAD` for it. */
  async function newWorkTree() {
    const folder = await newFolder(SOUND)
    const muster = await newMuster()
    const user = ['-c', 'user.name=A', '-c', 'user.email=a@example.com']
    for (const command of ['init --quiet', 'add .', 'commit --quiet --message first'])
      await promisify(execFile)('git', [...user, ...command.split(' ')], { cwd: folder.path })
    const run = (base: string, options: string[]) =>
      muster.run(['diff', base, '--revision', folder.path, ...options])
    return {
      ...folder,
      file: (name: string) => join(folder.path, name),
      diff: (...options: string[]) => run('HEAD', options),
      diffWith: (base: string, ...options: string[]) => run(base, options),
      async [Symbol.asyncDispose]() {
        await muster[Symbol.asyncDispose]()
        await folder[Symbol.asyncDispose]()
      },
    }
  }

  test('finds no change in an unchanged contract', async () => {
    await using tree = await newWorkTree()
    expect(await tree.diff()).toMatchObject({
      status: 0,
      stdout: 'No change for clients or receivers.\n',
    })
  })

  test('reports a chain of schemas that is too long for the validators', async () => {
    await using tree = await newWorkTree()
    await tree.write('openapi.yaml', withChain(LINKS.properties, 'string'))
    expect(await tree.diff()).toMatchObject({
      status: 1,
      stderr: '',
      stdout: expect.stringContaining(
        'openapi.yaml:1 has a chain of references that is too long for the validators: shorten it\n',
      ),
    })
  })

  test('lists a safe change, and exits with 0', async () => {
    await using tree = await newWorkTree()
    await tree.write('openapi.yaml', SAFE)
    expect(await tree.diff('--junit', tree.file('diff.xml'))).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        /^safe {6}openapi\.yaml:\d+ endpoint-added — deleteNotes: DELETE \/notes is new\.\n\n0 breaking, 0 risky, 0 code, 1 safe\n$/,
      ),
    })
    expect(await tree.read('diff.xml')).toContain('tests="1" failures="0"')
  })

  test('exits with 1 for a breaking change, and names it in every format', async () => {
    await using tree = await newWorkTree()
    await tree.write('openapi.yaml', BREAKING)
    const { status, stdout } = await tree.diff(
      '--github',
      ...['--junit', tree.file('diff.xml')],
      ...['--report', tree.file('diff.html')],
      ...['--markdown', tree.file('diff.md')],
    )
    expect(status).toBe(1)
    expect(stdout).toContain(`request-property-became-required — ${BREAKING_SENTENCE}`)
    expect(stdout).toMatch(
      /\n::error file=openapi\.yaml,line=\d+,title=request-property-became-required::createNote: /,
    )
    expect(await tree.read('diff.xml')).toMatch(
      /failures="1">\s+<testcase classname="openapi\.yaml" name="request-property-became-required: .*"><failure type="request-property-became-required" message="/,
    )
    expect(await tree.read('diff.html')).toContain(`<td>${BREAKING_SENTENCE}</td>`)
    expect(await tree.read('diff.md')).toMatch(
      /^## muster diff\n\n1 error, 0 warnings, 0 notices\.\n\n\| level .*\n.*\n\| error \| openapi\.yaml:\d+ /,
    )
    expect(JSON.parse((await tree.diff('--json')).stdout)).toMatchObject({
      from: '1.0.0',
      to: '2.0.0',
      changes: [{ id: 'request-property-became-required', level: 'breaking' }],
    })
  })

  test('--changelog adds one entry for each version, the newest first', async () => {
    await using tree = await newWorkTree()
    await tree.write('openapi.yaml', SAFE)
    await tree.diff('--changelog')
    expect(await tree.read('CHANGELOG.md')).toBe(`# Changelog\n\n${SAFE_ENTRY}`)
    await tree.write('openapi.yaml', BREAKING)
    // The second time, the entry is there already.
    for (let time = 0; time < 2; time++) {
      await tree.diff('--changelog')
      expect(await tree.read('CHANGELOG.md')).toBe(
        `# Changelog\n\n${BREAKING_ENTRY}\n${SAFE_ENTRY}`,
      )
    }
  })

  test('refuses an unknown base, also in JSON and JUnit XML', async () => {
    await using tree = await newWorkTree()
    const refused = await tree.diffWith('nowhere', '--json', '--junit', tree.file('diff.xml'))
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^nowhere is neither a folder nor a git revision/),
    })
    expect(JSON.parse(refused.stdout)).toMatchObject({
      error: expect.stringMatching(/^nowhere is neither/),
      results: [{ level: 'error', rule: 'cannot-run', file: null }],
    })
    expect(await tree.read('diff.xml')).toContain('failures="1"')
  })
})
