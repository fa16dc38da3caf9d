/** A YAML file, parsed once, that can say on which line a thing stands. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { Refused } from '../../records/refused.ts'

/** The contract cannot be generated from. The message begins with file and line, and says what to do. */
export class ContractError extends Refused {}

export type Path = readonly (string | number)[]

export interface Source {
  file: string
  text: string
  root: unknown
  /** The line of the key or item at `path`, or of its nearest ancestor that exists. Counts from 1. */
  line(path: Path): number
}

/** Throws `ContractError` if the file is not there or is not one YAML mapping. */
export async function readSource(directory: string, file: string): Promise<Source> {
  const text = await readFile(join(directory, file), 'utf8').catch((cause) => {
    throw new ContractError(`${file}: cannot be read in ${directory}: it is what everything is generated from`, { cause })
  })
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [error] = document.errors
  if (error) throw new ContractError(`${file}:${lines.linePos(error.pos[0]).line} is not YAML: ${error.message}`)
  if (!isMap(document.contents)) throw new ContractError(`${file}:1 must be a YAML mapping`)
  const contents: Node = document.contents
  return { file, text, root: document.toJS(), line: (path) => lines.linePos(offsetOf(contents, path)).line }
}

export function fail(source: Source, path: Path, problem: string): never {
  throw new ContractError(`${source.file}:${source.line(path)} ${problem}`)
}

/** The value at `path`, or undefined. */
export function at(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((node, step) => (isObject(node) && Object.hasOwn(node, step) ? node[step] : undefined), root)
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
