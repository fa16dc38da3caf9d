/** Contracts to compare, in temporary folders. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ListedChange } from '../../scripts/diff/diff.ts'
import { ASYNCAPI, OPENAPI } from './diff-contract.ts'

/** The contract without its recursive schema, which `generate` refuses. */
export const SOUND = OPENAPI.replace(/^ *parent: .*\n/m, '')

/** A temporary folder with the two contracts. */
export async function newFolder(openapi = OPENAPI, asyncapi = ASYNCAPI) {
  const path = await mkdtemp(join(tmpdir(), 'diff-'))
  const write = (file: string, text: string) => writeFile(join(path, file), text)
  await write('openapi.yaml', openapi)
  await write('asyncapi.yaml', asyncapi)
  return {
    path,
    write,
    read: (file: string) => readFile(join(path, file), 'utf8'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  }
}

export const levelsAndRules = (changes: ListedChange[]): string[] =>
  changes.map(({ level, id }) => `${level} ${id}`).sort()
