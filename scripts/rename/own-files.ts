/** Renames fields in the files of one resource. There, the names mean nothing else. */
import { type TextFile, wordPattern } from './text-files.ts'
import type { Renames } from './yaml-names.ts'

/** What a schema belongs to. A schema that is no record and no body of a resource has no slug. */
export interface Owner {
  slug: string | undefined
  type: string
  operations: string[]
  /** The record, and the bodies of its create and update requests. */
  schemas: string[]
}

/** What every response of a test has: these words do not mean the field there. */
const PARTS_OF_RESPONSES = ['status', 'headers', 'body', 'text']

/** The files of the resource that have the names, with their new texts. */
export function renameInOwnFiles(
  owner: Owner,
  files: TextFile[],
  renames: Renames,
): [file: string, text: string][] {
  return files.flatMap((file): [string, string][] => {
    const text = renameInOwnFile(owner, file, renames)
    return text === file.text ? [] : [[file.file, text]]
  })
}

/** The handlers, the records file and the tests of the resource, and its test data. */
function renameInOwnFile(
  { slug, type, operations }: Owner,
  { file, text }: TextFile,
  renames: Renames,
): string {
  const isTest = file.startsWith('test/')
  if (slug === undefined || (isTest && PARTS_OF_RESPONSES.some((part) => renames.has(part))))
    return text
  const names = [slug, ...operations]
  const own = [`records/${slug}.ts`, ...operations.map((id) => `handlers/${id}.ts`)]
  const tests = names.map((name) => `test/handlers/${name}.test.ts`)
  if ([...own, ...tests].includes(file)) return renameWords(text, renames)
  if (file !== 'test/resources.ts') return text
  return text.replace(new RegExp(`^ {2}${type}: \\{\\n[\\s\\S]*?^ {2}\\},\\n`, 'm'), (entry) =>
    renameWords(entry, renames),
  )
}

function renameWords(text: string, renames: Renames): string {
  let renamed = text
  for (const [name, newName] of renames) renamed = renamed.replace(wordPattern(name), newName)
  return renamed
}

/** In the text of a guide, only code is renamed. */
export function renameMentions({ file, text }: TextFile, renames: Renames): string {
  if (!file.endsWith('.md')) return renameWords(text, renames)
  return text.replace(/^```[\s\S]*?^```|`[^`\n]+`/gm, (code) => renameWords(code, renames))
}
