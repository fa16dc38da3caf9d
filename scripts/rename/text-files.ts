/** The files that people write by hand, and the changes that a rename makes to them. */
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CODE_FOLDERS, listNames, listPathsBelow } from '../generate/files.ts'

export interface TextFile {
  /** Relative to the root. */
  file: string
  text: string
}

export interface Changes {
  /** The new text by file. */
  texts: Map<string, string>
  /** The new path by file. */
  moves: Map<string, string>
  /** What a person must still do, one sentence each. */
  left: string[]
  /** The files in which the old name means the resource that docs/new-resource.md makes up. */
  madeUp?: string[]
}

const FOLDERS = [...CODE_FOLDERS, 'docs', 'deploy', 'test']
const IS_TEXT = /\.([cm]?[jt]s|ya?ml|md|py|php|go|rb|rs|java|sh|jq)$/
/** Packages, released contracts and migrations. A rename never changes them. */
const IS_FROZEN = /(^|\/)node_modules\/|^docs\/released\/|^records\/migrations\//

/** The changelog describes earlier versions, so a rename does not change it. */
export const HISTORY = 'CHANGELOG.md'

export async function readTextFiles(root: string): Promise<TextFile[]> {
  const files = [...(await listNames(root)), ...(await listPathsBelow(root, FOLDERS))]
  return readAll(
    root,
    files.filter((file) => !IS_FROZEN.test(file)),
  )
}

/** Folders of a service made from an OpenAPI document. Nobody writes their files by hand. */
const IS_OUTPUT = /^(node_modules|generated|\..*)$/

/** The files of a service that is made from an OpenAPI document. Leaves out `documents`, the files
 *  of the document. */
export async function readServiceFiles(root: string, documents: string[]): Promise<TextFile[]> {
  const entries = await readdir(root, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory() && !IS_OUTPUT.test(entry.name))
  const files = [
    ...entries.filter((entry) => entry.isFile()).map(({ name }) => name),
    ...(await listPathsBelow(
      root,
      folders.map(({ name }) => name),
    )),
  ]
  return readAll(
    root,
    files.filter((file) => !documents.includes(file) && !/(^|\/)node_modules\//.test(file)),
  )
}

/** Reads the text files among `files`. */
function readAll(root: string, files: string[]): Promise<TextFile[]> {
  return Promise.all(
    files
      .filter((file) => IS_TEXT.test(file))
      .map(async (file) => ({ file, text: await readFile(join(root, file), 'utf8') })),
  )
}

/** One string with the lines that contain the word, for example `docs/errors.md:4,17`. Empty if
 *  there are none. */
export function findMentions({ file, text }: TextFile, word: string): string[] {
  const lines = text
    .split('\n')
    .flatMap((line, index) => (wordPattern(word).test(line) ? [index + 1] : []))
  return lines.length === 0 ? [] : [`${file}:${lines.join(',')}`]
}

export function wordPattern(word: string): RegExp {
  return new RegExp(`\\b${word}\\b`, 'g')
}

/** Writes the files whose text differs, then moves files. Returns the paths that the written files
 *  have after the moves. */
export async function writeChanges(
  root: string,
  files: TextFile[],
  { texts, moves }: Changes,
): Promise<string[]> {
  const before = new Map(files.map(({ file, text }) => [file, text]))
  const differing = [...texts].filter(([file, text]) => before.get(file) !== text)
  for (const [file, text] of differing) await writeFile(join(root, file), text)
  for (const [file, name] of moves) await rename(join(root, file), join(root, name))
  return differing.map(([file]) => moves.get(file) ?? file)
}
