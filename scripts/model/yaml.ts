/** Reads openapi.yaml and asyncapi.yaml, with the position of every node. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CORE_SCHEMA, load, Type } from 'js-yaml'
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import { findInconsistencies } from './consistency.ts'
import { buildContract, type Contract } from './contract.ts'
import {
  ContractError,
  fail,
  isObject,
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

/** Like `readContract`, without the checks of consistency.ts and supported.ts. */
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

/** Throws `ContractError` for text that is not one YAML mapping. */
export function parseYaml(file: string, text: string): Source {
  return newSource(file, text, () => load(text, { schema: YAML_SCHEMA }))
}

/** YAML 1.2 with merge keys (`<<`). */
const YAML_SCHEMA = CORE_SCHEMA.extend({
  implicit: [
    new Type('tag:yaml.org,2002:merge', { kind: 'scalar', resolve: (key) => key === '<<' }),
  ],
})

/** `parse` reads the values. The parser that knows the positions takes six times as long, so it
 *  runs only to locate a problem, or if `parse` reads no mapping. In the second case, the slow
 *  parser reads the values or throws `ContractError`. */
export function newSource(file: string, text: string, parse: () => unknown): Source {
  let tree: Tree | undefined
  const readTree = (): Tree => {
    tree ??= parseTree(file, text)
    return tree
  }
  const position = (path: Path): Position => {
    const { contents, toPosition } = readTree()
    return toPosition(findOffset(contents, path))
  }
  return { file, text, root: parseOrUndefined(parse) ?? readTree().toJS(), position }
}

/** The mapping, or undefined if the text has none. */
function parseOrUndefined(parse: () => unknown): object | undefined {
  try {
    const root = parse()
    return isObject(root) && !Array.isArray(root) ? root : undefined
  } catch {
    return undefined
  }
}

interface Tree {
  contents: YAMLMap
  toPosition(offset: number): Position
  toJS(): unknown
}

function parseTree(file: string, text: string): Tree {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true })
  const toPosition = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
  const [error] = document.errors
  if (error)
    throw new ContractError(
      file,
      toPosition(error.pos[0]),
      `is not YAML: ${error.message}: correct the text there`,
    )
  if (!isMap(document.contents))
    throw new ContractError(
      file,
      START,
      'must be a YAML mapping: write keys and their values, for example "openapi: 3.0.3"',
    )
  return { contents: document.contents, toPosition, toJS: () => document.toJS() }
}

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

/** Scalars without quotes inside `{…}` of YAML, such as `{ type: string }`. */
export function listUnquotedFlowScalars(source: Source): Located[] {
  const found: Located[] = []
  visit(parseDocument(source.text), {
    Scalar(_, node, ancestors) {
      const isInFlow = ancestors.some((ancestor) => isMap(ancestor) && ancestor.flow)
      if (node.type === 'PLAIN' && isInFlow)
        found.push({ source, path: toPath([...ancestors, node]), value: node.value })
    },
  })
  return found
}

/** The path of the last of `nodes`. The others are its ancestors, from the root down. */
function toPath(nodes: readonly unknown[]): Path {
  return nodes.flatMap((node, index): Path => {
    if (isPair(node) && isScalar(node.key)) return [String(node.key.value)]
    return isSeq(node) ? [node.items.indexOf(nodes[index + 1])] : []
  })
}
