/** Folders with documents of other teams, for the tests of the commands. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'

export const publicDocument = (name: string): string =>
  createRequire(import.meta.url).resolve(`@readme/oas-examples/${name}.json`)
export const PETSTORE = publicDocument('3.0/json/petstore')

export let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-documents-'))
})
afterAll(() => rm(folder, { recursive: true }))

export async function newFolder(name: string, files: Record<string, string>): Promise<string> {
  const directory = join(folder, name)
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, file)), { recursive: true })
    await writeFile(join(directory, file), text)
  }
  return directory
}
