/** What `muster rename` refuses, and what it leaves for a person. test/scripts/stubs.test.ts
 *  renames an operation and a field. */
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { readContract } from '../../scripts/model/yaml.ts'
import { renameField } from '../../scripts/rename/field.ts'
import { renameOperation } from '../../scripts/rename/operation.ts'
import { rename } from '../../scripts/rename/rename.ts'
import { assertCleanWorkTree } from '../../scripts/rename/work-tree.ts'
import { ROOT } from '../repository.ts'
import { contractWithVenues } from './venues.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'rename-'))
  for (const file of ['openapi.yaml', 'asyncapi.yaml', 'docs/released/openapi.yaml'])
    await cp(join(ROOT, file), join(root, file))
  for (const folder of ['test', 'handlers']) await mkdir(join(root, folder))
  for (const id of ['getTask', 'oldTask']) await writeFile(join(root, `handlers/${id}.ts`), '')
  await writeFile(
    join(root, 'test/tasks.test.ts'),
    "import { otherTask } from './x.ts'\n// getTask\n",
  )
})
afterAll(() => rm(root, { recursive: true }))

test.each([
  [
    'getTsk',
    'otherTask',
    'openapi.yaml has no operation getTsk: did you mean getTask? Write Schema.field for a field.',
  ],
  ['getTask', 'task', 'task is not a verb and a noun: write it like listParticipants'],
  ['getTask', 'getJob', 'openapi.yaml has getJob already: choose another name'],
  [
    'getTask',
    'otherTask',
    'test/tasks.test.ts:1 uses otherTask for something else: choose another name',
  ],
  ['getTask', 'oldTask', 'handlers/oldTask.ts exists: move it away, or choose another name'],
  ['Tsk.title', 'heading', 'The contracts have no schema Tsk: did you mean Task?'],
  ['Task.titel', 'heading', 'Task has no field titel: did you mean title?'],
  ['Task.title', 'Heading', 'Heading is not a name of a field: write it like created_at'],
  ['Task.title', 'status', 'Task has a field status already: choose another name'],
  [
    'TaskCreate.title',
    'completed_at',
    'Task has a field completed_at already: choose another name',
  ],
  [
    'Task.due_at',
    'deadline',
    'due_at is a time, and lists filter it with due_after and due_before: write a name that ends with _at',
  ],
])('muster rename %s %s is refused: %s', async (name, newName, want) => {
  const before = await readFile(join(root, 'openapi.yaml'), 'utf8')
  await expect(rename(name, newName, { force: true, root })).rejects.toMatchObject({
    message: want,
  })
  expect(await readFile(join(root, 'openapi.yaml'), 'utf8')).toBe(before)
})

const HAS_CHANGES =
  'The work tree has changes: commit them or run "git stash -u" first, or add --force'

test('without --force, refuses outside git, with uncommitted changes, and for a released field', async () => {
  const withoutForce = () => rename('Task.title', 'heading', { force: false, root })
  await expect(withoutForce()).rejects.toMatchObject({
    message: 'This folder is not in a git work tree, so the changes cannot be undone: add --force',
  })
  const git = (...args: string[]): unknown =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], {
      cwd: root,
    })
  git('init', '--quiet')
  await expect(withoutForce()).rejects.toMatchObject({ message: HAS_CHANGES })
  git('add', '.')
  git('commit', '--quiet', '--message', 'all')
  await expect(withoutForce()).rejects.toMatchObject({
    message:
      'docs/released/openapi.yaml has Task.title, so clients use it: add a field and deprecate this one, or add --force',
  })
})

test.each([
  { what: 'git is not installed', variable: 'PATH', value: '', reason: 'spawn git ENOENT' },
  {
    what: 'the folder belongs to another user',
    variable: 'GIT_TEST_ASSUME_DIFFERENT_OWNER',
    value: '1',
    reason: 'fatal: detected dubious ownership in repository at ',
  },
])('without --force, says why git cannot list the changes: $what', async (failure) => {
  await using folder = await newRepository()
  vi.stubEnv(failure.variable, failure.value)
  await expect(
    assertCleanWorkTree(folder.path).finally(() => vi.unstubAllEnvs()),
  ).rejects.toMatchObject({
    message: expect.stringMatching(
      new RegExp(
        `^git cannot list the changes: ${failure.reason}.*\nCorrect this, or add --force$`,
      ),
    ),
  })
})

test('without --force, refuses a work tree with thousands of new files', async () => {
  await using folder = await newRepository()
  // The list of the names is longer than 1 MiB, the most output of a program by default.
  const name = 'x'.repeat(220)
  for (let count = 0; count < 5_000; count += 1)
    await writeFile(join(folder.path, `${name}${count}`), '')
  await expect(assertCleanWorkTree(folder.path)).rejects.toThrow(HAS_CHANGES)
})

async function newRepository() {
  const path = await mkdtemp(join(tmpdir(), 'rename-'))
  execFileSync('git', ['init', '--quiet'], { cwd: path })
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

test('does not rename the made-up resource of docs/new-resource.md', async () => {
  const venues = await mkdtemp(join(tmpdir(), 'rename-venues-'))
  await using _ = { [Symbol.asyncDispose]: () => rm(venues, { recursive: true }) }
  for (const file of ['openapi.yaml', 'asyncapi.yaml'])
    await writeFile(join(venues, file), await contractWithVenues(file))
  const contract = await readContract(venues)
  const guide = await readFile(join(ROOT, 'docs/new-resource.md'), 'utf8')
  const files = [
    { file: 'docs/new-resource.md', text: guide },
    {
      file: 'docs/guide.md',
      text: 'Call `getVenue` or `getTask`. All venues have a `capacity`.\n',
    },
    { file: 'cli/rename.ts', text: '// getVenue, getTask, the capacity of venues\n' },
    { file: 'test/scripts/stubs.test.ts', text: '// getVenue\n' },
    { file: 'test/handlers/venues.test.ts', text: '// getVenue\n' },
  ]
  const venue = renameOperation(contract, files, 'getVenue', 'readVenue')
  expect([...venue.texts.keys()]).toEqual(['docs/guide.md', 'test/handlers/venues.test.ts'])
  expect(venue.left).toContain(
    'cli/rename.ts:1 means getVenue of the example in docs/new-resource.md: change it if it means your operation',
  )
  const task = renameOperation(contract, files, 'getTask', 'readTask')
  expect(task.texts.get('cli/rename.ts')).toContain('getVenue, readTask')

  const field = { schema: 'Venue', field: 'capacity', newField: 'seats' }
  const { texts } = await renameField(venues, contract, files, field)
  expect(texts.get('docs/guide.md')).toContain('`seats`')
  expect([texts.get('docs/new-resource.md'), texts.get('cli/rename.ts')]).toEqual([
    undefined,
    undefined,
  ])
})
