import { resolve } from 'node:path'
import type { Command } from 'commander'
import { formatProblem, lint } from '../scripts/lint/lint.ts'
import type { LintProblem } from '../scripts/lint/problem.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addLint(program: Command, shell: Shell): void {
  program
    .command('lint')
    .description(
      'Check openapi.yaml and asyncapi.yaml for mistakes, and the guides and READMEs for operations that do ' +
        'not exist and for broken links. Each line of the output is ' +
        '"file:line:column rule — problem: how to correct it".',
    )
    .argument('[folder]', 'the folder of the two files (default: this installation)')
    .addHelpText(
      'after',
      `${examples('muster lint', 'muster lint ../next --json')}
Exit status: 0 without problems, 1 with problems.
`,
    )
    .action(
      shell.action(async (folder?: string): Promise<Output> => {
        const problems = await lint(folder === undefined ? undefined : resolve(folder))
        return {
          document: { problems },
          text: formatProblems(problems),
          failed: problems.length > 0,
        }
      }),
    )
}

function formatProblems(problems: LintProblem[]): string {
  if (problems.length === 0) return 'openapi.yaml and asyncapi.yaml have no problems.'
  return [
    ...problems.map(formatProblem),
    '',
    problems.length === 1 ? '1 problem' : `${problems.length} problems`,
  ].join('\n')
}
