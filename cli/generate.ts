import type { Command } from 'commander'
import { type GenerateResult, generate } from '../scripts/generate/generate.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addGenerate(program: Command, shell: Shell): void {
  program
    .command('generate')
    .description(
      'Write generated/ from openapi.yaml and asyncapi.yaml. For each operation without a handler, also ' +
        'create handlers/<operationId>.ts, which responds with 501, and a failing test. ' +
        'List the files and mentions that belong to removed operations; they are never deleted.',
    )
    .option('--check', 'write nothing; list stale and orphaned files')
    .addHelpText(
      'after',
      `${examples('muster generate', 'muster generate --check')}
Exit status of --check: 0 if generated/ is fresh, 1 if a file is stale or orphaned.
`,
    )
    .action(
      shell.action(async ({ check = false }: { check?: boolean }): Promise<Output> => {
        const result = await generate({ check })
        const isStale = result.stale.length > 0 || result.orphans.length > 0
        return {
          document: result,
          text: check ? formatCheck(result) : formatGenerated(result),
          failed: check && isStale,
        }
      }),
    )
}

function formatCheck({ stale, orphans }: GenerateResult): string {
  const lines =
    stale.length === 0
      ? ['generated/ is fresh.']
      : [...stale, 'Run "npm run generate" and commit the files that it writes.']
  return [...lines, ...orphans].join('\n')
}

/** One line for each file. */
export function formatGenerated({ written, removed, orphans }: GenerateResult): string {
  const lines = [
    ...written.map((file) => `wrote ${file}`),
    ...removed.map((file) => `removed ${file}`),
  ]
  return [...(lines.length === 0 ? ['generated/ was already fresh.'] : lines), ...orphans].join(
    '\n',
  )
}
