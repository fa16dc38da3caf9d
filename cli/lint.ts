import { resolve } from 'node:path'
import type { Command } from 'commander'
import { lint, type Problem, sayProblem } from '../scripts/lint/lint.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addLint(program: Command, shell: Shell): void {
  program
    .command('lint')
    .description(
      'Look for mistakes in openapi.yaml and asyncapi.yaml: each is shown as file:line:column rule — what is wrong, and what to do.',
    )
    .argument('[folder]', 'where the two files are: by default, those of this installation')
    .addHelpText('after', examples('muster lint', 'muster lint ../next --json'))
    .action(
      shell.action(async (folder?: string): Promise<Output> => {
        const problems = await lint(folder === undefined ? undefined : resolve(folder))
        return { document: { problems }, text: say(problems), failed: problems.length > 0 }
      }),
    )
}

function say(problems: Problem[]): string {
  if (problems.length === 0) return 'openapi.yaml and asyncapi.yaml are well made.'
  return [
    ...problems.map(sayProblem),
    '',
    problems.length === 1 ? '1 problem' : `${problems.length} problems`,
  ].join('\n')
}
