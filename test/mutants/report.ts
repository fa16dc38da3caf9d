/** The results as text. */
import { formatTable } from '../../cli/shell.ts'
import type { Mutant } from './instrument.ts'
import type { Result } from './measure.ts'

export interface Counts {
  mutants: number
  /** Only the start of the service reaches them. */
  byStartOnly: number
  byContract: number
  byTestsOnly: number
}

export function describeMutant({ file, line, column, mutator }: Mutant): string {
  return `${file}:${line}:${column} ${mutator}`
}

/** A Markdown document: the scores, and each mutant that only the tests find. */
export function formatReport(seed: number, counts: Counts, results: Result[]): string {
  const missed = results.filter(isMissed)
  const { mutants, byContract, byStartOnly, byTestsOnly } = counts
  const byNone = mutants - byContract - byTestsOnly
  return [
    '# Mutants',
    '',
    `Seed ${seed}. Of ${mutants} mutants, the contract tests reach ${byContract} (${byStartOnly} only at ` +
      `the start of the service), only tests reach ${byTestsOnly}, and neither reaches ${byNone}.`,
    '',
    '```',
    formatScores(results),
    '```',
    '',
    `## Found by tests only: ${missed.length}`,
    ...missed.flatMap(formatMissed),
    '',
  ].join('\n')
}

function isMissed({ contract, tests }: Result): boolean {
  return contract.failure === null && tests !== null && tests.failure !== null
}

function formatMissed({ mutant, isReachedByContract, contract, tests }: Result): string[] {
  return [
    '',
    `### ${describeMutant(mutant)}`,
    ...[
      '',
      '```diff',
      diffLines('-', mutant.original),
      diffLines('+', mutant.replacement),
      '```',
      '',
    ],
    `Test: ${tests?.failure?.split('\n')[0]}`,
    '',
    isReachedByContract ? `Operations: ${contract.ran.join(', ')}` : 'No operation reaches it.',
  ]
}

function diffLines(sign: string, text: string): string {
  return text.replaceAll(/^/gm, `${sign} `)
}

/** The score is the share of the mutants found by tests that the contract tests find, too. */
export function formatScores(results: Result[]): string {
  const byFolder = Map.groupBy(results, ({ mutant }) => mutant.file.replace(/\/[^/]*$/, ''))
  const rows = [...byFolder].sort(([a], [b]) => a.localeCompare(b))
  const reached = results.filter(({ isReachedByContract }) => isReachedByContract)
  return formatTable(
    ['FOLDER', 'MUTANTS', 'CONTRACT', 'TESTS', 'BOTH', 'TESTS ONLY', 'NEITHER', 'SCORE'],
    [...rows, ['reached by contract', reached] as const, ['all', results] as const].map(
      ([name, list]) => [name, ...scoreOf(list)],
    ),
  )
}

function scoreOf(results: Result[]): string[] {
  const byContract = results.filter(({ contract }) => contract.failure !== null)
  const byTests = results.filter(({ tests }) => tests !== null && tests.failure !== null)
  const both = byContract.filter((result) => byTests.includes(result)).length
  const neither = results.length - byContract.length - byTests.length + both
  const share = byTests.length === 0 ? '–' : `${Math.floor((100 * both) / byTests.length)} %`
  const missed = byTests.length - both
  const counts = [results.length, byContract.length, byTests.length, both, missed, neither]
  return [...counts.map(String), share]
}
