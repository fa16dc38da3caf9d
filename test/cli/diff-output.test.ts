/** The output of `muster diff` against a git revision, and its changelog. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { withEntry } from '../../scripts/diff/changelog.ts'
import type { ListedChange } from '../../scripts/diff/diff.ts'
import { replaceOnce } from '../repository.ts'
import { TODAY } from '../scripts/diff-contract.ts'
import { CREATE_NOTE } from '../scripts/diff-edits.ts'
import { newFolder, SOUND } from '../scripts/diff-folder.ts'
import { newMuster } from './muster.ts'

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
    expect(await tree.read('CHANGELOG.md')).toBe(`# Changelog\n\n${BREAKING_ENTRY}\n${SAFE_ENTRY}`)
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

test.each([
  { id: 'response-header-pattern-added', want: '- 5 operations: the header has the pattern ^x.' },
  { id: 'event-header-pattern-added', want: '- 5 events: the header has the pattern ^x.' },
  { id: 'x-equals-changed', want: '- 5 events: the header has the pattern ^x.' },
])('the changelog has the number of many names: $id', ({ id, want }) => {
  const change: ListedChange = {
    ...{ id, level: 'safe', file: 'asyncapi.yaml', line: 1, isGone: false },
    ...{ concerns: ['a', 'b', 'c', 'd', 'e'], part: 'the header', what: 'has the pattern ^x' },
  }
  const difference = { from: '1.0.0', to: '1.1.0', changes: [change], problems: [], warnings: [] }
  expect(withEntry('', difference, TODAY)).toContain(`\n${want}\n`)
})
