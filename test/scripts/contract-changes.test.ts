/** `lint`, `generate` and `diff` accept the same changes of a contract, and refuse the same ones.
 *  `serve` refuses every contract that was changed after `generate`. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { diff } from '../../scripts/diff/diff.ts'
import { findOwnProblems } from '../../scripts/lint/lint.ts'
import { assertGenerated, renderHashes } from '../../scripts/model/source-hashes.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { formatRemark } from '../../scripts/report/result.ts'
import { ACCEPTED } from './accepted-changes.ts'
import { type ContractTree, NOTES, newContractTree } from './contract-tree.ts'
import { REFUSED } from './refused-changes.ts'

/** The output of each command for the contract of the tree, one line for each problem. */
async function outputs({ root, generate }: ContractTree) {
  const findProblems = async (): Promise<string> => {
    const found = await findOwnProblems(root)
    return found.map(({ file, line, message }) => `${file}:${line} ${message}`).join('\n')
  }
  const compare = async (): Promise<string> => {
    const { problems } = await diff({ base: NOTES, root })
    return problems.map(({ file, line, problem }) => `${file}:${line} ${problem}`).join('\n')
  }
  const messageOf = (error: Error): string => error.message
  return {
    generate: await generate().catch(messageOf),
    lint: await findProblems().catch(messageOf),
    diff: await compare().catch(messageOf),
    serve: await assertGenerated(root).catch(messageOf),
  }
}

test.each(REFUSED)('refuses $name', async (refused) => {
  const { file = 'openapi.yaml', change, reportedIn = file, line = change[1], want } = refused
  await using tree = await newContractTree()
  await tree.write('generated/sources.json', renderHashes(await readContract(NOTES)))
  await tree.replace(file, ...change)
  const text = await readFile(tree.path(reportedIn), 'utf8')
  expect(text).toContain(line)
  const place = `${reportedIn}:${text.slice(0, text.indexOf(line)).split('\n').length} `
  const refusal = expect.stringMatching(
    new RegExp(`^${escapeRegExp(place)}.*${escapeRegExp(want)}`, 'm'),
  )
  expect(await outputs(tree)).toEqual({
    generate: refusal,
    lint: refusal,
    diff: refusal,
    serve: `${file} was changed after generated/ was written. Run "npx muster generate" first.`,
  })
})

/** The rules of `lint` that `generate` enforces, too. The small contract breaks other rules. */
const RULES_OF_GENERATE = [
  ...['generates', 'supported', 'defaults', 'operation-id-unique', 'emits'],
  ...['required-defined', 'contradictions'],
]

describe('accepts', () => {
  let generated: ContractTree
  beforeAll(async () => {
    generated = await newContractTree()
    await generated.generate()
  })
  afterAll(() => generated[Symbol.asyncDispose]())

  test.each(ACCEPTED)('$name', async (accepted) => {
    const { edits, eventEdits = [], handlers = [], orphans = [], diff: changes } = accepted
    await using tree = await newContractTree(generated.root)
    const { root } = tree
    for (const edit of edits) await tree.replace('openapi.yaml', ...edit)
    for (const edit of eventEdits) await tree.replace('asyncapi.yaml', ...edit)
    await expect(assertGenerated(root)).rejects.toThrow('was changed after generated/ was written')
    const result = await tree.generate()
    await assertGenerated(root)
    const found = await diff({ base: NOTES, root, today: new Date('2026-03-01') })
    expect({
      handlers: result.written.flatMap((file) => /^handlers\/(\w+)\.ts$/.exec(file)?.[1] ?? []),
      orphans: result.orphans.map(formatRemark),
      lint: (await findOwnProblems(root)).filter(({ rule }) => RULES_OF_GENERATE.includes(rule)),
      diff: found.changes.map(({ level, id }) => `${level} ${id}`),
      problems: found.problems,
    }).toEqual({ handlers, orphans, lint: [], diff: changes, problems: [] })
  })
})

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
