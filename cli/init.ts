import { resolve } from 'node:path'
import type { Command } from 'commander'
import { examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('init')
    .description(
      'Create a service from an OpenAPI 3.0 or 3.1 document: handlers that respond with 501, types, ' +
        'documentation, a mock and contract tests. If the document has something unsupported, the command ' +
        'lists all reasons and writes nothing. docs/documents.md lists what is supported.',
    )
    .argument('<folder>', 'the folder of the new service; it must be empty, or not exist yet')
    .requiredOption('--from <file>', 'the OpenAPI document, YAML or JSON')
    .addHelpText('after', examples('muster init pets --from petstore.yaml', 'cd pets && npm start'))
    .action(
      shell.action(async (folder: string, { from }: { from: string }): Promise<Output> => {
        const { init } = await import('../scripts/generate/init.ts')
        const directory = resolve(folder)
        const { written } = await init(directory, from)
        const handlers = written.filter((file) => file.startsWith('handlers/'))
        return {
          document: { directory, written },
          text: `Wrote ${directory} with ${handlers.length} handlers. Start it:\n\n  cd ${folder} && npm start`,
        }
      }),
    )
}
