import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { parseRoot, ROOT_OPTION } from './root.ts'
import { examples, type Output, type Shell } from './shell.ts'

interface DocsOptions {
  out: string
  root?: string
  serverUrl?: string
}

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('docs')
    .description(
      'Write the documentation as static files that any host can serve under any path. ' +
        'Each page is also there as Markdown, and llms.txt lists them for language models. ' +
        'A running service has the same pages at /docs, with forms to try each operation.',
    )
    .requiredOption('--out <dir>', 'the folder for the files; existing files are replaced')
    .option(ROOT_OPTION, 'the folder of the contract (default: this installation)', parseRoot)
    .option('--server-url <url>', 'the URL of the service in the samples (default: BASE_URL)')
    .addHelpText(
      'after',
      examples(
        'muster docs --out site',
        'muster docs --out site --server-url https://api.example.com',
      ),
    )
    .action(
      shell.action(async ({ out, root, serverUrl }: DocsOptions): Promise<Output> => {
        const { openSite } = await import('../web/docs/site.ts')
        const baseUrl = (serverUrl ?? (await shell.config()).baseUrl).replace(/\/$/, '')
        const site = openSite({ baseUrl, root, edition: 'static' })
        const files = new Map<string, string | Buffer>([
          ...site.pages.map((id): [string, string] => [`${id}.html`, site.page(id) ?? '']),
          ...[...site.texts].map(([path, text]): [string, Buffer] => [path, text().bytes]),
          ...[...site.assets, ...site.contracts].map(([path, { bytes }]): [string, Buffer] => [
            path,
            bytes,
          ]),
        ])
        const directory = resolve(out)
        await Promise.all(
          [...files.keys()].map((path) =>
            mkdir(dirname(join(directory, path)), { recursive: true }),
          ),
        )
        await Promise.all(
          [...files].map(([path, content]) => writeFile(join(directory, path), content)),
        )
        return {
          document: { directory, pages: site.pages.length, files: files.size },
          text: `Wrote ${site.pages.length} pages to ${directory}. Open index.html first.`,
        }
      }),
    )
}
