/** The results as text. */
import { formatTable } from '../../cli/shell.ts'
import type { Mutant } from './instrument.ts'
import type { MutantReach, Result } from './measure.ts'

export function describeMutant({ file, line, column, mutator }: Mutant): string {
  return `${file}:${line}:${column} ${mutator}`
}

/** A Markdown document: the scores, and each mutant that only the tests find. `reaches` has all
 *  mutants of the source. */
export function formatReport(seed: number, reaches: MutantReach[], results: Result[]): string {
  const missed = results.filter(isMissed)
  const count = (reach: MutantReach) => reaches.filter((one) => one === reach).length
  return [
    '# Mutants',
    '',
    `Seed ${seed}. Of ${reaches.length} mutants, operations reach ${count('operations')}, only the start of ` +
      `the service reaches ${count('start')}, only tests reach ${count('tests')}, and nothing reaches ` +
      `${count('nothing')}.`,
    '',
    '```',
    formatScores(results),
    '```',
    '',
    describeControls(results),
    '',
    `## Found by tests only: ${missed.length}`,
    ...missed.flatMap(formatMissed),
    '',
  ].join('\n')
}

/** How often the contract tests failed without a mutant: so many of the found ones are mistakes. */
export function describeControls(results: Result[]): string {
  const controls = results.flatMap(({ control }) => control ?? [])
  const failed = controls.filter(({ failure }) => failure !== null)
  const failures = failed.map(({ failure }) => `\n- ${failure}`).join('')
  return `Without a mutant, ${failed.length} of ${controls.length} runs failed.${failures}`
}

function isMissed({ contract, tests }: Result): boolean {
  return contract.failure === null && tests !== null && tests.failure !== null
}

function formatMissed({ mutant, reach, contract, tests }: Result): string[] {
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
    `Reached by: ${reach}${reach === 'operations' ? ` ${contract.ran.join(', ')}` : ''}`,
  ]
}

function diffLines(sign: string, text: string): string {
  return text.replaceAll(/^/gm, `${sign} `)
}

/** The score is the share of the mutants found by tests that the contract tests find, too. */
export function formatScores(results: Result[]): string {
  const byFolder = Map.groupBy(results, ({ mutant }) => mutant.file.replace(/\/[^/]*$/, ''))
  const rows = [...byFolder].sort(([a], [b]) => a.localeCompare(b))
  const byReach = Map.groupBy(results, ({ reach }) => `reached by ${reach}`)
  return formatTable(
    ['FOLDER', 'MUTANTS', 'CONTRACT', 'TESTS', 'BOTH', 'TESTS ONLY', 'NEITHER', 'SCORE'],
    [...rows, ...byReach, ['all', results] as const].map(([name, list]) => [
      name,
      ...scoreOf(list),
    ]),
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
