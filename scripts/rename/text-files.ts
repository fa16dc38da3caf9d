/** The files that a person writes, and the changes to them. */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { listFiles, listFilesBelow } from '../generate/files.ts'

/** Relative to the root. */
export interface TextFile {
  file: string
  text: string
}

export interface Changes {
  /** The new text by file. */
  texts: Map<string, string>
  /** The new name by file. */
  moves: Map<string, string>
  /** What a person still does, one sentence each. */
  left: string[]
}

const FOLDERS = [
  ...['bin', 'cli', 'server', 'web', 'operations', 'handlers', 'webhooks', 'auth', 'records'],
  ...['scripts', 'client', 'docs', 'deploy', 'test'],
]
const IS_TEXT = /\.([cm]?[jt]s|ya?ml|md|py|php|go|rb|rs|java|sh|jq)$/
/** Packages, and what has landed or was released: it is never changed. */
const IS_FROZEN = /(^|\/)node_modules\/|^docs\/released\/|^records\/migrations\//

/** It describes earlier versions. */
export const HISTORY = 'CHANGELOG.md'

export async function readTextFiles(root: string): Promise<TextFile[]> {
  const files = [...(await listFiles(root)), ...(await listFilesBelow(root, FOLDERS))]
  return Promise.all(
    files
      .filter((file) => IS_TEXT.test(file) && !IS_FROZEN.test(file))
      .map(async (file) => ({ file, text: await readFile(join(root, file), 'utf8') })),
  )
}

/** The lines that contain the word, for example `docs/errors.md:4,17`. */
export function findMentions({ file, text }: TextFile, word: string): string[] {
  const lines = text
    .split('\n')
    .flatMap((line, index) => (wordPattern(word).test(line) ? [index + 1] : []))
  return lines.length === 0 ? [] : [`${file}:${lines.join(',')}`]
}

export function wordPattern(word: string): RegExp {
  return new RegExp(`\\b${word}\\b`, 'g')
}

/** Returns the files that differ now, by their new names. */
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
