/** Creates a service from an OpenAPI document: a folder with the document, generated code and
 *  stubs. */
import { statSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Refused } from '../../errors.ts'
import { copyDocument } from '../model/copy-document.ts'
import { UnsupportedDocument } from '../model/document.ts'
import { findDocument } from '../model/document-folder.ts'
import { ContractError } from '../model/source.ts'
import { type GenerateResult, generate } from './generate.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/muster.js', import.meta.url))

/** Copies the document and the files that it refers to into `directory`, and generates the service
 *  there. Throws `Refused`, and changes nothing, if `directory` has content or there is no
 *  document. Throws `UnsupportedDocument` with every finding. After any error while it copies or
 *  generates, `directory` is empty again or deleted. */
export async function init(directory: string, document: string): Promise<GenerateResult> {
  const target = statSync(directory, { throwIfNoEntry: false })
  if (target && (!target.isDirectory() || (await readdir(directory)).length > 0))
    throw new Refused(
      `${directory} exists already, and is no empty folder. Choose a folder that does not exist yet.`,
    )
  if (!statSync(document, { throwIfNoEntry: false })?.isFile())
    throw new Refused(`There is no file ${document}. Name a file with an OpenAPI document.`)
  // The outermost folder that did not exist.
  const created = await mkdir(directory, { recursive: true })
  try {
    await copyDocument(document, directory)
    const program = relative(directory, PROGRAM)
    for (const [file, text] of Object.entries(projectFiles(basename(directory), program)))
      await writeFile(join(directory, file), text)
    return await generate({ check: false, root: directory })
  } catch (error) {
    const aboutUserFiles = withUserFiles(error, document, findDocument(directory))
    // The directory must be empty when the user tries again with a corrected document.
    if (created === undefined) await empty(directory)
    else await rm(created, { recursive: true })
    throw aboutUserFiles
  }
}

/** A copy of the error that names the files of the user instead of their copies. */
function withUserFiles(error: unknown, document: string, copy: string | undefined): unknown {
  const toUserFile = (file: string): string =>
    file === copy ? document : join(dirname(document), file)
  if (error instanceof UnsupportedDocument)
    return new UnsupportedDocument(
      error.findings.map((finding) => ({
        ...finding,
        source: { ...finding.source, file: toUserFile(finding.source.file) },
      })),
    )
  if (error instanceof ContractError)
    return new ContractError(toUserFile(error.file), error.position, error.problem, {
      cause: error.cause,
    })
  return error
}

async function empty(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true })
}

function projectFiles(name: string, program: string): Record<string, string> {
  const run = (command: string) => `node "${program}" ${command} --root .`
  return {
    'package.json': `${JSON.stringify(
      {
        name: name.toLowerCase().replace(/[^a-z0-9-]+/g, '-'),
        private: true,
        type: 'module',
        scripts: {
          start: run('serve'),
          generate: run('generate'),
          lint: run('lint'),
          mock: run('mock'),
          docs: `${run('docs')} --out site`,
          test: run('contract'),
        },
      },
      null,
      2,
    )}\n`,
    'tsconfig.json': `${JSON.stringify(
      {
        compilerOptions: {
          target: 'esnext',
          module: 'nodenext',
          noEmit: true,
          strict: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
          erasableSyntaxOnly: true,
          verbatimModuleSyntax: true,
        },
        include: ['generated', 'handlers', 'security.ts'],
      },
      null,
      2,
    )}\n`,
    'README.md': README,
  }
}

const README = `# A service from an OpenAPI document

\`\`\`sh
npm start           # serves the operations and the documentation at /docs/
npm run mock        # responds with the examples of the document
npm test            # tests this service against the document
npm run generate    # after each change of the document
\`\`\`

Each operation has a file in \`handlers/\`. It responds with 501 until you write it. \`security.ts\` checks the
credentials of requests; until you write it, operations that need credentials respond with 501.
`
