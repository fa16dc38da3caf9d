import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { type Change, diff } from '../../scripts/diff/diff.ts'
import { RULES, SCHEMA_RULES, type SchemaChange, toRuleId } from '../../scripts/diff/rules.ts'
import { newMuster } from '../cli/muster.ts'
import { AFTER_SUNSET, ASYNCAPI, type Edit, event, OPENAPI, TODAY } from './diff-contract.ts'
import { LOST, OLD, POST } from './diff-edits.ts'
import { REQUEST_CASES } from './diff-request-cases.ts'
import { RESPONSE_CASES } from './diff-response-cases.ts'
import { SENTENCES } from './diff-sentences.ts'

const run = promisify(execFile)
/** Without recursion, which only other documents can have. */
const SOUND = OPENAPI.replace(/^ *parent: .*\n/m, '')

async function newFolder(openapi = OPENAPI, asyncapi = ASYNCAPI) {
  const path = await mkdtemp(join(tmpdir(), 'diff-'))
  const write = async (openapiText: string, asyncapiText: string): Promise<void> => {
    await writeFile(join(path, 'openapi.yaml'), openapiText)
    await writeFile(join(path, 'asyncapi.yaml'), asyncapiText)
  }
  await write(openapi, asyncapi)
  return { path, write, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

function replaced(text: string, [from, to]: Edit): string {
  expect(text).toContain(from)
  return text.replace(from, () => to)
}

/** The changes from the contract to the edited one, and back. */
async function bothWays(edits: Edit[], today: Date): Promise<{ there: Change[]; back: Change[] }> {
  const of = (text: string): string =>
    edits.filter(([from]) => text.includes(from)).reduce(replaced, text)
  await using before = await newFolder()
  await using after = await newFolder(of(OPENAPI), of(ASYNCAPI))
  expect(edits.filter(([from]) => !OPENAPI.includes(from) && !ASYNCAPI.includes(from))).toEqual([])
  const there = await diff({ base: before.path, root: after.path, today })
  const back = await diff({ base: after.path, root: before.path, today })
  return { there: there.changes, back: back.changes }
}

const say = (changes: Change[]): string[] => changes.map(({ level, id }) => `${level} ${id}`).sort()

const CASES = { ...REQUEST_CASES, ...RESPONSE_CASES }

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  test.each(cases.map((each) => ({ ...each, name: each.there.join(', ') || 'nothing' })))(
    '$name',
    async ({ edit, also, there, back, today = TODAY }) => {
      const found = await bothWays(also ? [edit, also] : [edit], today)
      expect({ there: say(found.there), back: say(found.back) }).toEqual({ there, back })
    },
  )
})

test.each(SENTENCES)('$name', async ({ edits, want, back }) => {
  const found = await bothWays(edits, TODAY)
  const format = (changes: Change[]): string[] =>
    changes.map(({ level, id, part, what }) => `${level} ${id}: ${part} ${what}`)
  expect({ there: format(found.there), back: format(found.back) }).toEqual({ there: want, back })
})

test('an event that is no longer subscribable: a breaking change', async () => {
  await using before = await newFolder()
  await using after = await newFolder(
    replaced(OPENAPI, ['x-emitted-by-system: [note.lost]\n', '']),
    replaced(ASYNCAPI, [
      '      name: note.lost\n',
      '      name: note.lost\n      x-subscribable: false\n',
    ]),
  )
  expect(say((await diff({ base: before.path, root: after.path })).changes)).toEqual([
    'breaking event-not-subscribable',
  ])
  expect(say((await diff({ base: after.path, root: before.path })).changes)).toEqual([
    'safe event-subscribable',
  ])
})

test('the removal of an operation and an event without notice: breaking changes', async () => {
  await using before = await newFolder(SOUND)
  await using after = await newFolder(
    replaced(replaced(SOUND, [OLD, '']), [POST, '']),
    ASYNCAPI.replace(event('NoteCreated', 'note.created'), '')
      .replace(LOST, '')
      .replace('  messages:', '  messages: {}'),
  )
  const found = await diff({ base: before.path, root: after.path, today: AFTER_SUNSET })
  expect(say(found.changes)).toEqual([
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
  const inCases = Object.values(CASES).flatMap((cases) =>
    cases.flatMap(({ there, back }) => [...there, ...back]),
  )
  const sentences = SENTENCES.flatMap(({ want, back }) =>
    [...want, ...back].map((text) => text.replace(/:.*/, '')),
  )
  const below = [
    'event-removed-without-deprecation',
    'event-not-subscribable',
    'event-subscribable',
  ]
  const seen = new Set([
    ...[...inCases, ...sentences].map((text) => text.replace(/^\w+ /, '')),
    ...below,
  ])
  expect(Object.keys(RULES).filter((id) => !seen.has(id))).toEqual([])
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
    changes.filter((change) => !subjects.some((subject) => seen.has(toRuleId(subject, change)))),
  ).toEqual([])
})

test('a part that operations share: one change, with its line and the operations', async () => {
  await using before = await newFolder()
  await using after = await newFolder(
    replaced(OPENAPI, [
      '        tags: { type: array, items: { type: string }, uniqueItems: true }\n',
      '',
    ]),
  )
  const line = OPENAPI.slice(
    0,
    OPENAPI.indexOf('        tags: { type: array, items: { type: string }, uniqueItems'),
  ).split('\n').length
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

test('muster diff: compares with a git revision, writes JUnit and a changelog, and exits with 1 for breaking changes', async () => {
  await using muster = await newMuster()
  await using folder = await newFolder(SOUND)
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd: folder.path,
    })
  await git('init', '--quiet')
  await git('add', '.')
  await git('commit', '--quiet', '--message', 'first')
  const args = ['diff', 'HEAD', '--revision', folder.path]
  expect(await muster.run(args)).toMatchObject({
    status: 0,
    stdout: 'No change for clients or receivers.\n',
  })

  await folder.write(
    replaced(SOUND, ['version: 1.0.0', 'version: 1.1.0']).replace(
      POST,
      `${POST}    delete: { operationId: deleteNotes, responses: { '204': { description: Done. } } }\n`,
    ),
    ASYNCAPI,
  )
  const report = join(folder.path, 'diff.xml')
  const safe = await muster.run([...args, '--changelog', '--junit', report])
  expect(safe).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(
      /^safe {6}openapi\.yaml:\d+ endpoint-added — deleteNotes: DELETE \/notes is new\.\n\n0 breaking, 0 risky, 0 code, 1 safe\n$/,
    ),
  })
  expect(await readFile(report, 'utf8')).toContain('tests="1" failures="0"')
  const day = new Date().toISOString().slice(0, 10)
  const entry = `## 1.1.0 · ${day}\n\n### Compatible\n\n- \`deleteNotes\`: DELETE /notes is new.\n`
  expect(await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')).toBe(`# Changelog\n\n${entry}`)

  await folder.write(
    replaced(replaced(SOUND, ['version: 1.0.0', 'version: 2.0.0']), [
      'required: [title]\n',
      'required: [title, size]\n',
    ]),
    ASYNCAPI,
  )
  const breaking = await muster.run([...args, '--changelog', '--junit', report])
  expect(breaking).toMatchObject({
    status: 1,
    stdout: expect.stringContaining(
      'request-property-became-required — createNote: `size` of the request body is required.',
    ),
  })
  expect(await readFile(report, 'utf8')).toMatch(
    /failures="1">\s+<testcase classname="openapi\.yaml" name="request-property-became-required: .*"><failure type="request-property-became-required" message="/,
  )
  const sentence = 'createNote: `size` of the request body is required.'
  const formats = [join(folder.path, 'diff.html'), join(folder.path, 'diff.md')] as const
  const annotated = await muster.run([
    ...args,
    '--github',
    '--report',
    formats[0],
    '--markdown',
    formats[1],
  ])
  expect(annotated.stdout).toMatch(
    /\n::error file=openapi\.yaml,line=\d+,title=request-property-became-required::createNote: /,
  )
  expect(await readFile(formats[0], 'utf8')).toContain(`<td>${sentence}</td>`)
  expect(await readFile(formats[1], 'utf8')).toMatch(
    /^## muster diff\n\n1 error, 0 warnings, 0 notices\.\n\n\| level .*\n.*\n\| error \| openapi\.yaml:\d+ /,
  )
  const changelog = await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')
  expect(changelog).toBe(
    `# Changelog\n\n## 2.0.0 · ${day}\n\n### Breaking\n\n- \`createNote\`: \`size\` of the request body is required.\n\n${entry}`,
  )
  await muster.run([...args, '--changelog'])
  expect(await readFile(join(folder.path, 'CHANGELOG.md'), 'utf8')).toBe(changelog)

  const document = JSON.parse((await muster.run([...args, '--json'])).stdout)
  expect(document).toMatchObject({
    from: '1.0.0',
    to: '2.0.0',
    changes: [{ id: 'request-property-became-required', level: 'breaking' }],
  })
  const lost = await muster.run([
    ...['diff', 'nowhere', '--revision', folder.path, '--json', '--junit', report],
  ])
  expect(lost).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^nowhere is neither a folder nor a git revision/),
  })
  expect(JSON.parse(lost.stdout)).toMatchObject({
    error: expect.stringMatching(/^nowhere is neither/),
    results: [{ level: 'error', rule: 'cannot-run', file: null }],
  })
  expect(await readFile(report, 'utf8')).toContain('failures="1"')
})
