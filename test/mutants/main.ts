/** `npm run test:mutants`: measures the contract tests with random small changes of the source
 *  (mutants). Runs each mutant against the contract tests and against the tests. */
import { randomInt } from 'node:crypto'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, InvalidArgumentError, Option } from 'commander'
import { parseInteger, parseList } from '../../cli/shell.ts'
import { operations } from '../../generated/operations.ts'
import { readContract } from '../../scripts/model/yaml.ts'
import { newRandom } from '../chaos/random.ts'
import type { Mutant } from './instrument.ts'
import { type Learned, learn } from './learn.ts'
import {
  type MutantReach,
  measure,
  type Outcome,
  type Result,
  reachOf,
  type TestChoice,
} from './measure.ts'
import { describeControls, describeMutant, formatReport, formatScores } from './report.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OPERATION_IDS = Object.keys(operations)
const MAX_SEED = 2 ** 31 - 1
/** So many mutants that a working tool finds one of them. */
const CONCLUSIVE_COUNT = 10

interface Options {
  count: number
  seed: number
  parallel: number
  part: { index: number; of: number }
  at?: string
  operations?: string[]
  tests: TestChoice
  reachedBy: MutantReach[]
  folder: string
}

const options: Options = new Command('npm run test:mutants --')
  .description(
    'Changes the source in random small ways, one at a time, and counts the changes that the\n' +
      'contract tests find, and those that the tests find.',
  )
  .option('--count <n>', 'the number of mutants', parseInteger(1, 1_000_000), 300)
  .option(
    '--seed <n>',
    'determines the mutants; a run with the same seed and sources continues the last',
    parseInteger(0, MAX_SEED),
    randomInt(MAX_SEED),
  )
  .option('--parallel <n>', 'mutants at once', parseInteger(1, 64), 2)
  .option('--part <k/n>', 'only part k of n of the sample', parsePart, { index: 0, of: 1 })
  .option('--at <file:line>', 'take the mutants of this line only')
  .option('--operations <ids>', 'run the contract tests of these only', parseList(...OPERATION_IDS))
  .addOption(
    new Option('--tests <which>', 'which mutants to run against the tests')
      .choices(['all', 'missed', 'none'])
      .default('all'),
  )
  .addOption(
    new Option('--reached-by <what>', 'take mutants that this reaches')
      .argParser(parseList('operations', 'start', 'tests'))
      .default(['operations', 'start', 'tests'], 'operations, start or tests'),
  )
  .option('--folder <path>', 'for copies of the source and reports', 'coverage/mutants')
  .addHelpText(
    'after',
    '\nThe first run after a change of the source learns which tests reach which mutant, which takes\n' +
      'ten minutes. Exit status: 0 if the tool works, whatever it found.',
  )
  .parse()
  .opts()

const withTests = options.tests !== 'none'
const parent = resolve(ROOT, options.folder)
const learned = await learn(parent, options.operations, OPERATION_IDS, withTests)
const { seed } = options
const name = join(learned.folder, String(seed))
console.log(`Seed ${seed}, results in ${name}.jsonl`)
await runSample(chooseSample(learned))
const results = await readResults()
const reaches = learned.mutants.map((mutant) => reachOf(learned, mutant))
await writeFile(`${name}.md`, formatReport(seed, reaches, results))
console.log(`\n${formatScores(results)}\n\n${describeControls(results)}\n\nReport: ${name}.md`)
const isFound = ({ contract }: Result) => contract.failure !== null
if (results.length >= CONCLUSIVE_COUNT && !results.some(isFound)) {
  console.error('The contract tests found no mutant at all: this tool is broken.')
  process.exitCode = 1
}

function parsePart(text: string): Options['part'] {
  const [k, n] = (/^(\d+)\/(\d+)$/.exec(text) ?? []).slice(1).map(Number)
  if (!k || !n || k > n) throw new InvalidArgumentError('Use for example 1/4.')
  return { index: k - 1, of: n }
}

function chooseSample(from: Learned): Mutant[] {
  const { at, count, part, reachedBy } = options
  if (at !== undefined) {
    const own = from.mutants.filter((mutant) => describeMutant(mutant).startsWith(`${at}:`))
    if (own.length === 0)
      throw new Error(`No mutant begins at ${at}. The report names their lines.`)
    return own
  }
  const reached = from.mutants.filter((mutant) => reachedBy.includes(reachOf(from, mutant)))
  return newRandom(String(seed))
    .shuffled(reached)
    .slice(0, count)
    .filter((_, index) => index % part.of === part.index)
}

/** The last result of each mutant. */
async function readResults(): Promise<Result[]> {
  const lines = await readFile(`${name}.jsonl`, 'utf8').catch(() => '')
  const all: Result[] = lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  return [...new Map(all.map((result) => [result.mutant.id, result])).values()]
}

/** An earlier run can have left out the tests. */
function isComplete({ contract, tests }: Result): boolean {
  if (options.tests === 'missed' && contract.failure !== null) return true
  return options.tests === 'none' || tests !== null
}

/** Runs the mutants without a result, and writes each result at once. */
async function runSample(sample: Mutant[]): Promise<void> {
  const { operations: openapiOperations } = await readContract(ROOT)
  const tags = new Map(openapiOperations.map(({ id, tag }) => [id, tag]))
  const done = new Set((await readResults()).filter(isComplete).map(({ mutant }) => mutant.id))
  const waiting = sample.filter(({ id }) => !done.has(id))
  let count = sample.length - waiting.length
  const runNext = async (): Promise<void> => {
    const mutant = waiting.shift()
    if (mutant === undefined) return
    const result = await measure(learned, mutant, options.tests, tags)
    await appendFile(`${name}.jsonl`, `${JSON.stringify(result)}\n`)
    count += 1
    console.log(`${count}/${sample.length} ${describeResult(result)}`)
    await runNext()
  }
  await Promise.all(Array.from({ length: options.parallel }, runNext))
}

function describeResult({ mutant, contract, tests }: Result): string {
  const verdict = ({ failure, ran, seconds }: Outcome) => {
    if (ran.length === 0) return 'do not reach it'
    return `${failure === null ? 'miss' : 'find'} it (${seconds} s)`
  }
  const ofTests = tests ? `, tests ${verdict(tests)}` : ''
  return `${describeMutant(mutant)}: contract tests ${verdict(contract)}${ofTests}`
}
