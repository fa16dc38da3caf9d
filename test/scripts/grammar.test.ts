/** What becomes of each kind of change: lint, generate, diff and serve accept and refuse the same
 *  contracts. */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { diff } from '../../scripts/diff/diff.ts'
import { findOwnProblems } from '../../scripts/lint/lint.ts'
import { assertGenerated, writeHashes } from '../../scripts/model/source-hashes.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { formatRemark } from '../../scripts/report/result.ts'
import { ACCEPTED } from './accepted-changes.ts'
import { type ContractTree, newContractTree } from './contract-tree.ts'
import { FAULTY } from './grammar-cases.ts'

const BASE = fileURLToPath(new URL('contract', import.meta.url))

/** What each command says about the contract in the folder. Empty for a sound contract. */
async function refusals(root: string, generate: () => Promise<unknown>) {
  const failure = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => '',
      (error: Error) => error.message,
    )
  const problems = async (): Promise<never> => {
    const found = await findOwnProblems(root)
    throw new Error(found.map(({ file, line, message }) => `${file}:${line} ${message}`).join('\n'))
  }
  const compare = async (): Promise<never> => {
    const found = await diff({ base: BASE, root })
    throw new Error(
      found.problems.map((each) => `${each.file}:${each.line} ${each.problem}`).join('\n'),
    )
  }
  return {
    generate: await failure(generate()),
    lint: await failure(problems()),
    diff: await failure(compare()),
    serve: await failure(assertGenerated(root)),
  }
}

test.each(FAULTY)('$name', async ({ file = 'openapi.yaml', change, line, want }) => {
  await using tree = await newContractTree()
  await tree.write('generated/sources.json', writeHashes(await readContract(BASE)))
  await tree.replace(file, ...change)
  const lines = (await readFile(tree.path(file), 'utf8')).split('\n')
  const number = lines.findIndex((text) => text.includes(line)) + 1
  const place = line === '' ? `${file}:` : `${file}:${number} `
  const found = await refusals(tree.path('.'), tree.generate)
  const refusal = expect.stringMatching(
    new RegExp(`^${escapeRegExp(place)}.*${escapeRegExp(want)}`, 'm'),
  )
  expect(found).toEqual({
    generate: refusal,
    lint: refusal,
    diff: refusal,
    serve: `${file} was changed after generated/ was written. Run "npx muster generate" first.`,
  })
})

/** The style rules of lint find more in the contract of these tests. */
const REFUSING = ['generates', 'supported', 'defaults', 'operation-id-unique', 'emits']

describe('accepted', () => {
  let generated: ContractTree
  beforeAll(async () => {
    generated = await newContractTree()
    await generated.generate()
  })
  afterAll(() => generated[Symbol.asyncDispose]())

  test.each(ACCEPTED)('$name', async (accepted) => {
    const { edits, eventEdits = [], handlers = [], orphans = [], diff: changes } = accepted
    await using tree = await newContractTree(generated.path('.'))
    const root = tree.path('.')
    for (const edit of edits) await tree.replace('openapi.yaml', ...edit)
    for (const edit of eventEdits) await tree.replace('asyncapi.yaml', ...edit)
    await expect(assertGenerated(root)).rejects.toThrow('was changed after generated/ was written')
    const result = await tree.generate()
    await assertGenerated(root)
    const found = await diff({ base: BASE, root, today: new Date('2026-03-01') })
    expect({
      handlers: result.written.flatMap((file) => /^handlers\/(\w+)\.ts$/.exec(file)?.[1] ?? []),
      orphans: result.orphans.map(formatRemark),
      lint: (await findOwnProblems(root)).filter(({ rule }) => REFUSING.includes(rule)),
      diff: found.changes.map(({ level, id }) => `${level} ${id}`),
      problems: found.problems,
    }).toEqual({ handlers, orphans, lint: [], diff: changes, problems: [] })
  })
})

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
