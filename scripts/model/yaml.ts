/** Reads openapi.yaml and asyncapi.yaml, with the position of every node. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Document,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml'
import { findInconsistencies } from './consistency.ts'
import { buildContract, type Contract } from './contract.ts'
import {
  ContractError,
  fail,
  type Located,
  type Path,
  type Position,
  type Source,
  START,
} from './source.ts'
import { findUnsupportedParts } from './supported.ts'

/** Reads openapi.yaml and asyncapi.yaml of `directory`. Throws `ContractError` at the first
 *  fault. */
export async function readContract(directory: string): Promise<Contract> {
  const contract = await readModel(directory)
  const [fault] = [...findInconsistencies(contract), ...findUnsupportedParts(contract)]
  if (fault) fail(fault.source, fault.path, fault.problem)
  return contract
}

/** Like `readContract`, without the faults that span several parts. */
export async function readModel(directory: string): Promise<Contract> {
  const openapi = await readYaml(directory, 'openapi.yaml')
  const asyncapi = await readYaml(directory, 'asyncapi.yaml')
  return buildContract(openapi, asyncapi)
}

/** Throws `ContractError` if the file is missing or is not one YAML mapping. */
export async function readYaml(directory: string, file: string): Promise<Source> {
  const text = await readFile(join(directory, file), 'utf8').catch((cause) => {
    throw new ContractError(
      file,
      START,
      `cannot be read in ${directory}: run this in a directory that has the file`,
      { cause },
    )
  })
  return parseYaml(file, text)
}

export function parseYaml(file: string, text: string): Source {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  const toPosition = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const [error] = document.errors
  if (error)
    throw new ContractError(file, toPosition(error.pos[0]), `is not YAML: ${error.message}`)
  if (!isMap(document.contents)) throw new ContractError(file, START, 'must be a YAML mapping')
  const contents: Node = document.contents
  const source: Source = {
    file,
    text,
    root: document.toJS(),
    position: (path) => toPosition(findOffset(contents, path)),
  }
  documents.set(source, document)
  return source
}

/** The parsed files: a contract with 400 operations takes half a second to parse. */
const documents = new WeakMap<Source, Document>()

/** The offset of the last node on the path that exists. */
function findOffset(root: Node, path: Path): number {
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

/** Scalars without quotes inside `{…}`. */
export function listUnquotedFlowScalars(source: Source): Located[] {
  const found: Located[] = []
  visit(documents.get(source) ?? parseDocument(source.text), {
    Scalar(_, node, ancestors) {
      const isInFlow = ancestors.some((ancestor) => isMap(ancestor) && ancestor.flow)
      if (node.type === 'PLAIN' && isInFlow)
        found.push({ source, path: toPath([...ancestors, node]), value: node.value })
    },
  })
  return found
}

/** `nodes`: from the root to a scalar, each inside the one before. */
/** The path of the last node. `nodes` are its ancestors from the root, and the node. */
export function toPath(nodes: readonly unknown[]): Path {
  return nodes.flatMap((node, index): Path => {
    if (isPair(node) && isScalar(node.key)) return [String(node.key.value)]
    return isSeq(node) ? [node.items.indexOf(nodes[index + 1])] : []
  })
}
