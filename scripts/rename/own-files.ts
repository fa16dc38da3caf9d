/** Renames fields in the files of one resource. In these files, the name of a field means the
 *  field, except for `PARTS_OF_RESPONSES` in tests. */
import { type TextFile, wordPattern } from './text-files.ts'
import type { Renames } from './yaml-names.ts'

/** The resource to which a schema belongs. */
export interface Owner {
  /** The name of the records file, `records/<slug>.ts`. Undefined if the schema is not a record or
   *  a body of a resource. */
  slug: string | undefined
  /** The key of the resource in test/resources.ts. */
  type: string
  operations: string[]
  /** The record, and the bodies of its create and update requests. */
  schemas: string[]
}

/** The properties of responses in tests. If a field has one of these names, tests do not change:
 *  the word may mean the property. */
const PARTS_OF_RESPONSES = ['status', 'headers', 'body', 'text']

/** The files of the resource that change, with their new texts. */
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

/** The new text of a handler, the records file, a test or the test data of the resource. Other
 *  files stay as they are. */
function renameInOwnFile(
  { slug, type, operations }: Owner,
  { file, text }: TextFile,
  renames: Renames,
): string {
  const isTest = file.startsWith('test/')
  if (slug === undefined || (isTest && PARTS_OF_RESPONSES.some((part) => renames.has(part))))
    return text
  const names = [slug, ...operations]
  const code = [`records/${slug}.ts`, ...operations.map((id) => `handlers/${id}.ts`)]
  const tests = names.map((name) => `test/handlers/${name}.test.ts`)
  if ([...code, ...tests].includes(file)) return renameWords(text, renames)
  if (file !== 'test/resources.ts') return text
  const entryOfResource = new RegExp(`^ {2}${type}: \\{\\n[\\s\\S]*?^ {2}\\},\\n`, 'm')
  return text.replace(entryOfResource, (entry) => renameWords(entry, renames))
}

function renameWords(text: string, renames: Renames): string {
  let renamed = text
  for (const [name, newName] of renames) renamed = renamed.replace(wordPattern(name), newName)
  return renamed
}

/** The text of the file with renamed fields. In a guide, only code changes. */
export function renameMentions({ file, text }: TextFile, renames: Renames): string {
  if (!file.endsWith('.md')) return renameWords(text, renames)
  return text.replace(/^```[\s\S]*?^```|`[^`\n]+`/gm, (code) => renameWords(code, renames))
}
