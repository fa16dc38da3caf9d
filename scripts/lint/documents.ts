/** Checks the guides and READMEs: operation IDs that the contract does not have, and broken
 *  links. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { listNames, listPathsBelow } from '../generate/files.ts'
import type { Contract } from '../model/contract.ts'
import { headingIds } from '../model/heading-ids.ts'
import { nearest } from '../model/nearest.ts'
import { findMisspeltOperations } from './misspelt-operations.ts'
import type { LintProblem } from './problem.ts'

interface Document {
  /** Relative to the root. */
  file: string
  /** The lines. Those of code blocks are empty. */
  prose: string[]
  /** The lines of code blocks. Of other lines, only the code between backticks. */
  code: string[]
  /** Like `code`, but lines of code blocks are empty. */
  inlineCode: string[]
}

const FOLDERS = ['docs', 'client', 'deploy']
/** Released contracts are never changed, so they are not checked. */
const RELEASED = 'docs/released/'
/** The changelog may name operations of earlier versions. */
const HISTORY = 'CHANGELOG.md'

export async function findDocumentProblems(
  root: string,
  contract: Contract,
): Promise<LintProblem[]> {
  const names = await listDocuments(root)
  const documents = await Promise.all(names.map((file) => readDocument(root, file)))
  const current = documents.filter(({ file }) => file !== HISTORY)
  const ids = contract.operations.map(({ id }) => id)
  const isUnknownOperation = newUnknownCheck(ids)
  const guides = current.map((document) => ({
    ...document,
    isExempt: (word: string) => isUnknownOperation(word) || isDeclared(word, document),
  }))
  return [
    ...current.flatMap((document) => findUnknownOperations(document, ids, isUnknownOperation)),
    ...(await findMisspeltOperations(root, contract, guides)),
    ...findBrokenLinks(root, documents),
  ]
}

async function listDocuments(root: string): Promise<string[]> {
  const files = [...(await listNames(root)), ...(await listPathsBelow(root, FOLDERS))]
  return files.filter(
    (file) => file.endsWith('.md') && !file.startsWith(RELEASED) && !file.includes('node_modules/'),
  )
}

async function readDocument(root: string, file: string): Promise<Document> {
  const lines = (await readFile(posix.join(root, file), 'utf8')).split('\n')
  const [prose, code, inlineCode]: [string[], string[], string[]] = [[], [], []]
  let isBlock = false
  for (const line of lines) {
    const isFence = /^\s*(```|~~~)/.test(line)
    if (isFence) isBlock = !isBlock
    prose.push(isBlock || isFence ? '' : line)
    code.push(isBlock ? line : onlyCode(line))
    inlineCode.push(isBlock || isFence ? '' : onlyCode(line))
  }
  return { file, prose, code, inlineCode }
}

/** The line with spaces instead of everything that is not between backticks. */
function onlyCode(line: string): string {
  return line
    .split('`')
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/./gs, ' ')))
    .join('`')
}

/** Returns a function that checks whether a word looks like an operation ID, but is none. A word
 *  looks like one if an operation has its verb, and the same or another operation has its noun. */
function newUnknownCheck(ids: string[]): (word: string) => boolean {
  const verbs = new Set(ids.map((id) => partsOf(id).verb))
  const nouns = new Set(ids.map((id) => partsOf(id).noun))
  return (word) => {
    const { verb, noun } = partsOf(word)
    return verbs.has(verb) && nouns.has(noun) && !ids.includes(word)
  }
}

/** Whether the guide declares the operation itself, in the code of an example. */
function isDeclared(word: string, { code }: Document): boolean {
  return code.some((line) => line.trim() === `operationId: ${word}`)
}

function findUnknownOperations(
  document: Document,
  ids: string[],
  isUnknownOperation: (word: string) => boolean,
): LintProblem[] {
  const { file, code } = document
  return code.flatMap((line, index) =>
    [...line.matchAll(/\b[a-z]+[A-Z]\w*/g)]
      .filter(([word]) => isUnknownOperation(word) && !isDeclared(word, document))
      .map(({ 0: word, index: column }) => ({
        file,
        line: index + 1,
        column: column + 1,
        rule: 'unknown-operation',
        message: `openapi.yaml has no operation ${word}: write ${nearest(word, ids)}, or remove the mention`,
      })),
  )
}

/** `listTasks` → `list`, `Task`. */
function partsOf(id: string): { verb: string; noun: string } {
  const verb = /^[a-z]*/.exec(id)?.[0] ?? ''
  return { verb, noun: id.slice(verb.length).replace(/s$/, '') }
}

function findBrokenLinks(root: string, documents: Document[]): LintProblem[] {
  const problems: LintProblem[] = []
  for (const { file, prose } of documents)
    for (const [index, text] of prose.entries())
      for (const { href, column } of linksIn(text)) {
        const message = describeBreak(root, documents, file, href)
        if (message !== undefined)
          problems.push({ file, line: index + 1, column, rule: 'broken-link', message })
      }
  return problems
}

/** Relative links and their columns: `[text](href)`, and `[text]: href` at the start of a line.
 *  Leaves out links with a scheme, because they lead to other sites. */
function linksIn(line: string): { href: string; column: number }[] {
  const withoutCode = line.replace(/`[^`]*`/g, (code) => ' '.repeat(code.length))
  return [...withoutCode.matchAll(/\]\(([^()\s]+)\)|^\[[^\]]+\]: (\S+)/g)]
    .map(({ 0: whole, 1: inline, 2: defined, index }) => {
      const href = inline ?? defined ?? ''
      return { href, column: index + whole.indexOf(href) + 1 }
    })
    .filter(({ href }) => !/^[a-z]+:/.test(href))
}

/** Says why a link in `file` is broken, and what to do. Returns undefined if the link is not
 *  broken. */
function describeBreak(
  root: string,
  documents: Document[],
  file: string,
  href: string,
): string | undefined {
  const [encodedPath = '', heading] = href.split('#')
  const path = decodePath(encodedPath)
  if (path === undefined) return `${encodedPath} has a % that begins no escape: write %25`
  const target = path === '' ? file : posix.join(posix.dirname(file), path)
  const document = documents.find((other) => other.file === target)
  if (document === undefined) {
    if (existsSync(posix.join(root, target))) return undefined
    const files = documents.map((other) => other.file)
    return `${target} does not exist: link to another file, for example ${nearest(target, files)}`
  }
  const ids = headingIdsOf(document)
  if (heading === undefined || ids.includes(heading)) return undefined
  return `${target} has no heading #${heading}: link to #${nearest(heading, ids)}, or add the heading`
}

/** Undefined: the text has an escape that is not valid. */
function decodePath(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The IDs of all headings but the title: the documentation gives the title of a page no ID. */
function headingIdsOf({ prose }: Document): string[] {
  const headings = prose.flatMap((line) => /^##+ +(.*)$/.exec(line)?.[1] ?? [])
  return headingIds(headings.map((text) => text.replaceAll('`', '')))
}
