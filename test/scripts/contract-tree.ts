/** A temporary folder with a small contract, for `generate`. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../scripts/generate/generate.ts'
import { formatRemark } from '../../scripts/report/result.ts'
import { ROOT, replaceOnce } from '../repository.ts'

/** The folder of the small contract. */
export const NOTES = fileURLToPath(new URL('contract', import.meta.url))

/** Copies the folder `from`, by default that of the small contract. Disposal deletes the copy. */
export async function newContractTree(from = NOTES) {
  const root = await mkdtemp(join(tmpdir(), 'generate-'))
  await cp(from, root, { recursive: true, filter: (file) => !file.endsWith('/node_modules') })
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  const path = (file: string) => join(root, file)
  return {
    root,
    path,
    generate: () => generate({ root, check: false }),
    /** The stale, missing and left-over files of generated/, one sentence each. */
    check: async () => (await generate({ root, check: true })).stale.map(formatRemark),
    write: async (file: string, text: string) => {
      await mkdir(dirname(path(file)), { recursive: true })
      await writeFile(path(file), text)
    },
    remove: (file: string) => rm(path(file), { recursive: true }),
    /** Replaces the first `from` of a file. Throws if the file does not contain it. */
    replace: async (file: string, from: string, to: string) => {
      await writeFile(path(file), replaceOnce(await readFile(path(file), 'utf8'), from, to))
    },
    /** The names and texts of the files in generated/. */
    outputs: async () => {
      const files = (await readdir(path('generated'))).sort()
      return Promise.all(
        files.map(async (file) => [file, await readFile(path(`generated/${file}`), 'utf8')]),
      )
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}

export type ContractTree = Awaited<ReturnType<typeof newContractTree>>
