/** Folders with documents of other teams and their services, for the tests of the commands. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import type { startHandlers } from '../../cli/document-service.ts'

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

export const LOCAL = { host: '127.0.0.1', port: 0 }

/** Runs a service or a mock, and disposes of it at the end of the test. */
export async function serve(starting: Promise<Awaited<ReturnType<typeof startHandlers>>>) {
  const { url, stop } = await starting
  return { url, [Symbol.asyncDispose]: () => stop(0) }
}
