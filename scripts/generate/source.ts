/** A YAML file, parsed once, that can say on which line a thing stands. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { Refused } from '../../errors.ts'

export interface Position {
  /** Both count from 1. */
  line: number
  column: number
}

const START: Position = { line: 1, column: 1 }

/** The contract cannot be generated from. The message begins with file and line, and says what to do. */
export class ContractError extends Refused {
  readonly file: string
  readonly position: Position
  /** The message without the place. */
  readonly problem: string

  constructor(file: string, position: Position, problem: string, options?: ErrorOptions) {
    super(`${file}:${position.line} ${problem}`, options)
    this.file = file
    this.position = position
    this.problem = problem
  }
}

export type Path = readonly (string | number)[]

export interface Source {
  file: string
  text: string
  root: unknown
  /** Where the key or item at `path` stands, or its nearest ancestor that exists. */
  position(path: Path): Position
  line(path: Path): number
  /** With comments and the style of each node. */
  document: Document
}

/** Throws `ContractError` if the file is not there or is not one YAML mapping. */
export async function readSource(directory: string, file: string): Promise<Source> {
  const text = await readFile(join(directory, file), 'utf8').catch((cause) => {
    throw new ContractError(
      file,
      START,
      `cannot be read in ${directory}: it is what everything is generated from`,
      { cause },
    )
  })
  return parseSource(file, text)
}

export function parseSource(file: string, text: string): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const [error] = document.errors
  if (error)
    throw new ContractError(file, positionOf(error.pos[0]), `is not YAML: ${error.message}`)
  if (!isMap(document.contents)) throw new ContractError(file, START, 'must be a YAML mapping')
  const contents: Node = document.contents
  const position: Source['position'] = (path) => positionOf(offsetOf(contents, path))
  return {
    file,
    text,
    root: document.toJS(),
    document,
    position,
    line: (path) => position(path).line,
  }
}

export function fail(source: Source, path: Path, problem: string): never {
  throw new ContractError(source.file, source.position(path), problem)
}

/** The value at `path`, or undefined. */
export function at(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, step) => (isObject(node) && Object.hasOwn(node, step) ? node[step] : undefined),
    root,
  )
}

export function isObject(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null
}

function offsetOf(root: Node, path: Path): number {
  let node: unknown = root
  let offset = 0
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      if (!pair || !isScalar(pair.key)) break
      offset = pair.key.range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      const item = node.items[Number(step)] as Node | undefined
      offset = item?.range?.[0] ?? offset
      node = item
    }
  }
  return offset
}

/** What is in the directory, in order; nothing if it is not there. */
export async function namesIn(directory: string, { recursive = false } = {}): Promise<string[]> {
  const names = await readdir(directory, { recursive }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.sort()
}
