import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { generate } from '../../scripts/generate/generate.ts'
import { formatRemark } from '../../scripts/report/result.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CONTRACT = fileURLToPath(new URL('contract', import.meta.url))

/** A temporary folder with a copy of `from`, or of a small contract. Disposal deletes it. */
export async function newContractTree(from = CONTRACT) {
  const root = await mkdtemp(join(tmpdir(), 'generate-'))
  await cp(from, root, { recursive: true, filter: (file) => !file.endsWith('/node_modules') })
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  const path = (file: string) => join(root, file)
  return {
    path,
    generate: () => generate({ root, check: false }),
    check: async () => (await generate({ root, check: true })).stale.map(formatRemark),
    write: async (file: string, text: string) => {
      await mkdir(join(path(file), '..'), { recursive: true })
      await writeFile(path(file), text)
    },
    remove: (file: string) => rm(path(file), { recursive: true }),
    replace: async (file: string, from: string, to: string) => {
      const text = await readFile(path(file), 'utf8')
      expect(text).toContain(from)
      await writeFile(
        path(file),
        text.replace(from, () => to),
      )
    },
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
