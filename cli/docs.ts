import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { assertGenerated } from '../scripts/model/source-hashes.ts'
import type { Site } from '../web/docs/site.ts'
import { examples, type Output, type Shell } from './shell.ts'
import { ALLOW_STALE_OPTION, describeAllowStale } from './stale.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface DocsOptions {
  out: string
  serverUrl?: string
  allowStale?: boolean
}

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('docs')
    .description(
      'Write the documentation as static files that any host can serve under any path. ' +
        'Each page is also written as Markdown, and llms.txt lists the pages for language models. ' +
        'A running service has the same pages at /docs, with a form to try each operation.',
    )
    .requiredOption('--out <dir>', 'the folder for the files; existing files are replaced')
    .option('--server-url <url>', 'the URL of the service in the samples (default: BASE_URL)')
    .option(ALLOW_STALE_OPTION, describeAllowStale('write the files'))
    .addHelpText(
      'after',
      examples(
        'muster docs --out site',
        'muster docs --out site --server-url https://api.example.com',
      ),
    )
    .action(
      shell.action(async (options: DocsOptions): Promise<Output> => {
        const { out, serverUrl, allowStale = false } = options
        if (!allowStale) await assertGenerated(ROOT)
        const { openSite } = await import('../web/docs/site.ts')
        const baseUrl = (serverUrl ?? (await shell.config()).baseUrl).replace(/\/$/, '')
        const site = openSite({ baseUrl, edition: 'static' })
        const files = listFiles(site)
        const directory = resolve(out)
        for (const [path, content] of files) {
          const file = join(directory, path)
          await mkdir(dirname(file), { recursive: true })
          await writeFile(file, content)
        }
        return {
          document: { directory, pages: site.pages.length, files: files.size },
          text: `Wrote ${site.pages.length} pages to ${directory}. Open index.html first.`,
        }
      }),
    )
}

/** The content of each file, by its path. */
function listFiles(site: Site): Map<string, string | Buffer> {
  const files = new Map<string, string | Buffer>()
  for (const id of site.pages) files.set(`${id}.html`, site.page(id) ?? '')
  for (const [path, text] of site.texts) files.set(path, text().bytes)
  for (const [path, { bytes }] of [...site.assets, ...site.contracts]) files.set(path, bytes)
  return files
}
