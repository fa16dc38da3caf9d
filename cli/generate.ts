import type { Command } from 'commander'
import { type GenerateResult, generate } from '../scripts/generate/generate.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addGenerate(program: Command, shell: Shell): void {
  program
    .command('generate')
    .description(
      'Write generated/ from openapi.yaml and asyncapi.yaml: types, validators, the tables of operations and events, the index of handlers. An operation without a handler gets a stand-in that answers 501, and a test. What belonged to an operation that is gone is named.',
    )
    .option(
      '--check',
      'write nothing; list what is stale or orphaned, and exit with 1 if anything is',
    )
    .addHelpText('after', examples('muster generate', 'muster generate --check'))
    .action(
      shell.action(async ({ check = false }: { check?: boolean }): Promise<Output> => {
        const result = await generate({ check })
        const isAmiss = result.stale.length > 0 || result.orphans.length > 0
        return {
          document: result,
          text: check ? sayAmiss(result) : sayGenerated(result),
          failed: check && isAmiss,
        }
      }),
    )
}

function sayAmiss({ stale, orphans }: GenerateResult): string {
  const lines =
    stale.length === 0
      ? ['generated/ is fresh.']
      : [...stale, 'Run "npm run generate" and commit what it writes.']
  return [...lines, ...orphans].join('\n')
}

/** What was done, a line for each file. */
export function sayGenerated({ written, removed, orphans }: GenerateResult): string {
  const lines = [
    ...written.map((file) => `wrote ${file}`),
    ...removed.map((file) => `removed ${file}`),
  ]
  return [...(lines.length === 0 ? ['generated/ was fresh already.'] : lines), ...orphans].join(
    '\n',
  )
}
