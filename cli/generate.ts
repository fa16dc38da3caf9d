import type { Command } from 'commander'
import { type GenerateResult, generate } from '../scripts/generate.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addGenerate(program: Command, shell: Shell): void {
  program
    .command('generate')
    .description(
      'Write generated/ from openapi.yaml and asyncapi.yaml: types, validators, the tables of operations and events, the index of handlers.',
    )
    .option('--check', 'write nothing; list what is stale, and exit with 1 if anything is')
    .addHelpText('after', examples('muster generate', 'muster generate --check'))
    .action(
      shell.action(async ({ check = false }: { check?: boolean }): Promise<Output> => {
        const result = await generate({ check })
        return { document: result, text: check ? sayStale(result) : sayWritten(result), failed: result.stale.length > 0 }
      }),
    )
}

function sayStale({ stale }: GenerateResult): string {
  return stale.length === 0 ? 'generated/ is fresh.' : [...stale, 'Run "npm run generate" and commit what it writes.'].join('\n')
}

function sayWritten({ written, removed }: GenerateResult): string {
  const lines = [...written.map((file) => `wrote ${file}`), ...removed.map((file) => `removed ${file}`)]
  return lines.length === 0 ? 'generated/ was fresh already.' : lines.join('\n')
}
