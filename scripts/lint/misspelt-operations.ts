/** Finds words that are almost an operation ID, in the inline code of guides. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CODE_FOLDERS, listPathsBelow } from '../generate/files.ts'
import type { Contract } from '../model/contract.ts'
import { distanceBetween, nearest } from '../model/nearest.ts'
import type { LintProblem } from './problem.ts'

interface Guide {
  file: string
  /** Each line with spaces instead of everything that is not between backticks, so that columns
   *  stay. Empty for a line of a code block. */
  inlineCode: string[]
  /** Whether findStaleOperations in documents.ts reports the word, or the guide declares it. */
  isExempt(word: string): boolean
}

/** A misspelt word has at most this many wrong letters. A word with more is another word. */
const MAX_DISTANCE = 2
/** A shorter word may have only one wrong letter: with two, it is often another word. */
const MIN_LONG_WORD_LENGTH = 8

export async function findMisspeltOperations(
  root: string,
  { operations, sources }: Contract,
  guides: Guide[],
): Promise<LintProblem[]> {
  const ids = operations.map(({ id }) => id)
  const found = guides.flatMap((guide) =>
    listWords(guide).flatMap((place) => {
      const intended = guide.isExempt(place.word) ? undefined : findIntended(place.word, ids)
      return intended === undefined ? [] : [{ ...place, intended }]
    }),
  )
  if (found.length === 0) return []
  const contracts = Object.values(sources).map(({ text }) => text)
  const identifiers = await readIdentifiers(root, contracts)
  return found
    .filter(({ word }) => !identifiers.has(word))
    .map(({ word, intended, ...place }) => ({
      ...place,
      rule: 'unknown-operation',
      message: `openapi.yaml has no operation ${word}: did you mean ${intended}?`,
    }))
}

function listWords({ file, inlineCode }: Guide) {
  return inlineCode.flatMap((code, index) =>
    [...code.matchAll(/\b[A-Za-z]\w+/g)].map(({ 0: word, index: column }) => ({
      ...{ word, file },
      ...{ line: index + 1, column: column + 1 },
    })),
  )
}

/** The operation ID that the word is meant to be. Undefined if the word is an operation ID, or if
 *  it is far from all of them. */
function findIntended(word: string, ids: string[]): string | undefined {
  const maxDistance = word.length < MIN_LONG_WORD_LENGTH ? 1 : MAX_DISTANCE
  const close = ids.filter((id) => Math.abs(id.length - word.length) <= maxDistance)
  const closest = nearest(word, close)
  if (closest === undefined || closest === word) return undefined
  return distanceBetween(word, closest) <= maxDistance ? closest : undefined
}

/** The words of the contracts and of the code, for example a function `listTasksPage`. Such words
 *  are not misspelt. */
async function readIdentifiers(root: string, contracts: string[]): Promise<Set<string>> {
  const files = (await listPathsBelow(root, CODE_FOLDERS)).filter(
    (file) => /\.[cm]?[jt]s$/.test(file) && !file.includes('node_modules/'),
  )
  const texts = await Promise.all(files.map((file) => readFile(join(root, file), 'utf8')))
  return new Set([...contracts, ...texts].flatMap((text) => text.match(/\b[A-Za-z]\w+/g) ?? []))
}
