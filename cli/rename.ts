import type { Command } from 'commander'
import { type Renamed, rename } from '../scripts/rename/rename.ts'
import { parseRoot, ROOT_OPTION } from './root.ts'
import { examples, type Output, type Shell } from './shell.ts'

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('rename')
    .description(
      'Rename an operation or a field in both contracts, the code, the tests and the guides, and generate. ' +
        'Print what changed, and what you must change yourself.',
    )
    .argument('<old>', 'an operation ID, or a field as Schema.field')
    .argument('<new>', 'the new operation ID, or the new name of the field')
    .option('--force', 'allow uncommitted changes, and a field that a release has')
    .option(ROOT_OPTION, 'the folder of the contract (default: this copy of Muster)', parseRoot)
    .addHelpText(
      'after',
      `
An operation ID is renamed wherever it is a word, except in the changelog, in docs/released and in
records/migrations. Files with its name are renamed, too. docs/new-resource.md, the help of commands and the tests of
the tool chain have a made-up resource. A name stays where it means that resource.

A field is renamed in the schemas of its record and of the bodies to create and update it, in their examples, in
filters and sorts, and in the handlers, the records file, the tests and the test data of the resource. A new
migration renames the column. A field that a discriminator names is renamed there, too, and in all alternatives.
Other resources can have a field of the same name, so mentions in other files about the record are only listed.

In a service that muster init created, an operation that is a common word, such as login, is renamed in the document, in its
handler, and where that handler is imported. Its other mentions are listed. A field is renamed in its schema, and in the handlers that
use the schema if no other schema has the field. Its other mentions are listed, examples among them.
${examples(
  'muster rename getVenue readVenue',
  'muster rename Venue.capacity seats',
  'muster rename Pet.name title --root pets',
)}`,
    )
    .action(
      shell.action(
        async (
          name: string,
          newName: string,
          { force = false, root }: { force?: boolean; root?: string },
        ): Promise<Output> => {
          const renamed = await rename(name, newName, { force, root })
          return { document: renamed, text: format(renamed) }
        },
      ),
    )
}

function format({ changed, moved, left }: Renamed): string {
  return [
    ...moved.map(({ from, to }) => `renamed ${from} to ${to}`),
    ...changed.map((file) => `changed ${file}`),
    ...left.map((task) => `left for you: ${task}`),
  ].join('\n')
}
