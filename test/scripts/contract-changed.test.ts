/** `muster contract --changed`: the operations whose contract or code changed. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listChangedOperations } from '../../scripts/contract/changed.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { operationIds } from '../helpers.ts'
import { copyOfRepository, type Tree } from './tree.ts'

let tree: Tree
const git = (...args: string[]): void => {
  const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com']
  execFileSync('git', [...identity, ...args], { cwd: tree.path('.'), stdio: 'ignore' })
}
beforeAll(async () => {
  tree = await copyOfRepository()
  git('init')
  git('add', '.')
  git('commit', '-m', 'base')
})
afterAll(() => tree[Symbol.asyncDispose]())

const idsWith = (text: string): string[] => operationIds.filter((id) => id.includes(text))

test.each<{ file: string; from: string; to: string; changed: readonly string[] }>([
  { file: 'handlers/getMe.ts', from: 'import', to: '//\nimport', changed: ['getMe'] },
  {
    file: 'records/payments.ts',
    from: 'import',
    to: '//\nimport',
    changed: [...idsWith('Export'), ...idsWith('Payment'), 'createImport'],
  },
  { file: 'records/api-keys.ts', from: 'import', to: '//\nimport', changed: operationIds },
  { file: 'operations/execute.ts', from: 'import', to: '//\nimport', changed: operationIds },
  { file: 'docs/contract-tests.md', from: 'the', to: 'a', changed: [] },
  {
    file: 'openapi.yaml',
    from: 'operationId: createTask',
    to: 'x-note: 1\n      operationId: createTask',
    changed: ['createTask'],
  },
  {
    file: 'openapi.yaml',
    from: 'x-max-record-bytes: ',
    to: 'x-max-record-bytes: 1',
    changed: operationIds,
  },
  {
    file: 'asyncapi.yaml',
    from: 'name: task.completed',
    to: 'x-note: 1\n      name: task.completed',
    changed: ['batchTasks', 'updateTask'],
  },
])('a change of $file concerns $changed', async ({ file, from, to, changed }) => {
  await tree.replace(file, from, to)
  try {
    const root = tree.path('.')
    const ids = await listChangedOperations(root, await readContract(root), 'HEAD')
    expect(new Set(ids)).toEqual(new Set(changed))
  } finally {
    git('checkout', '.')
  }
})

test('tests only these operations; none if nothing changed; refuses an unknown revision', async () => {
  const unchanged = await tree.muster(['contract', '--changed', 'HEAD'])
  expect(unchanged).toEqual({
    status: 0,
    output: 'No contract or code of an operation changed since HEAD.\n',
  })
  const unknown = await tree.muster(['contract', '--changed', 'v0'])
  expect(unknown).toMatchObject({ status: 1, output: expect.stringContaining('v0 is neither') })

  await tree.replace('handlers/getMe.ts', 'import', '//\nimport')
  const { status, output } = await tree.muster(['contract', '--changed', 'HEAD', '--json'])
  const { cases, seed } = JSON.parse(output)
  expect(new Set(cases.map(({ operation }: { operation: string }) => operation))).toEqual(
    new Set(['getMe']),
  )
  expect({ status, seed }).toEqual({ status: 0, seed: expect.any(Number) })
})
