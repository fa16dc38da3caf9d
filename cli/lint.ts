import { resolve } from 'node:path'
import type { Command } from 'commander'
import { formatProblem, lint } from '../scripts/lint/lint.ts'
import type { LintProblem } from '../scripts/lint/problem.ts'
import { addReportOptions, type CheckReport, type ReportOptions, reportResults } from './reports.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  const command = program
    .command('lint')
    .description(
      'Check openapi.yaml and asyncapi.yaml for mistakes, and the guides and READMEs for operations that do ' +
        'not exist and for broken links. Each line of the output is ' +
        '"file:line:column rule — problem: how to correct it".',
    )
    .argument('[folder]', 'the folder of the two files (default: this copy of Muster)')
  addReportOptions(command)
    .addHelpText(
      'after',
      `${examples('muster lint', 'muster lint ../next --json')}
Exit status: 0 without problems, 1 with problems or if the files cannot be read, 2 for wrong usage.
`,
    )
    .action(
      shell.action(
        (folder: string | undefined, options: ReportOptions): Promise<Output> =>
          reportResults('muster lint', options, () =>
            check(folder === undefined ? undefined : resolve(folder)),
          ),
      ),
    )
}

async function check(root: string | undefined): Promise<CheckReport> {
  const problems = await lint(root)
  return {
    output: {
      document: { problems },
      text: formatProblems(problems),
      failed: problems.length > 0,
    },
    results: problems.map(({ column: _, ...problem }) => ({ ...problem, level: 'error' })),
  }
}

function formatProblems(problems: LintProblem[]): string {
  if (problems.length === 0) return 'openapi.yaml and asyncapi.yaml have no problems.'
  return [
    ...problems.map(formatProblem),
    '',
    problems.length === 1 ? '1 problem' : `${problems.length} problems`,
  ].join('\n')
}
