/** Reads openapi.yaml and asyncapi.yaml, with the position of every node. */
import { readFile, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
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

/** Throws `ContractError` if the file is missing, is a link that leads out of the directory, or is
 *  not one YAML mapping. */
export async function readYaml(directory: string, file: string): Promise<Source> {
  const read = async (): Promise<string> => {
    const [folder = '', path = ''] = await Promise.all(
      [directory, join(directory, file)].map((name) => realpath(name)),
    )
    if (!path.startsWith(folder + sep))
      throw new ContractError(file, START, `is a link to ${path}: copy the file to ${directory}`)
    return readFile(path, 'utf8')
  }
  const text = await read().catch((cause) => {
    if (cause instanceof ContractError) throw cause
    throw new ContractError(
      file,
      START,
      `cannot be read in ${directory}: run this in a directory that has the file`,
      { cause },
    )
  })
  return parseYaml(file, text)
}

/** YAML 1.2 with merge keys (`<<`). */
const YAML_SCHEMA = CORE_SCHEMA.extend({
  implicit: [
    new Type('tag:yaml.org,2002:merge', { kind: 'scalar', resolve: (key) => key === '<<' }),
  ],
})

/** Throws `ContractError` for text that is not one YAML mapping, or whose aliases make it too large
 *  or too deep. The parser that knows the positions takes six times as long as js-yaml, so it runs only
 *  to locate a problem, or if js-yaml reads no mapping. In the second case, the slow parser reads
 *  the values or throws `ContractError`. */
export function parseYaml(file: string, text: string): Source {
  let tree: Tree | undefined
  const readTree = (): Tree => {
    tree ??= parseTree(file, text)
    return tree
  }
  const position = (path: Path): Position => {
    const { contents, toPosition } = readTree()
    return toPosition(findOffset(contents, path))
  }
  const root = loadOrUndefined(text) ?? readTree().toJS()
  const { values, levels } = measure(root)
  const excess = values > MAX_VALUES ? `${MAX_VALUES} values` : `${MAX_LEVELS} levels`
  if (values > MAX_VALUES || levels > MAX_LEVELS)
    throw new ContractError(
      file,
      START,
      `has more than ${excess} once each alias is replaced by its target: use fewer aliases`,
    )
  return { file, text, root, position }
}

/** The mapping, or undefined if the text has none. */
function loadOrUndefined(text: string): object | undefined {
  try {
    const root = load(text, { schema: YAML_SCHEMA })
    return isObject(root) && !Array.isArray(root) ? root : undefined
  } catch {
    return undefined
  }
}

const MAX_VALUES = 2_000_000
/** The functions that read deeper ones would overflow the stack. */
const MAX_LEVELS = 1_000

interface Size {
  /** The number of mappings, lists and scalars. */
  values: number
  levels: number
}

/** Counts the target of an alias for each alias. The number of values is infinite if it contains
 *  the alias. `sizes` has the finished mappings and lists. */
function measure(value: unknown, sizes = new Map<object, Size>()): Size {
  if (!isObject(value)) return { values: 1, levels: 0 }
  const known = sizes.get(value)
  if (known !== undefined) return known
  sizes.set(value, { values: Number.POSITIVE_INFINITY, levels: 0 })
  const children = Object.values(value).map((child) => measure(child, sizes))
  const size = {
    values: children.reduce((sum, { values }) => sum + values, 1),
    levels: children.reduce((most, { levels }) => Math.max(most, levels + 1), 1),
  }
  sizes.set(value, size)
  return size
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
  return {
    contents: document.contents,
    toPosition,
    toJS: () => document.toJS({ maxAliasCount: -1 }),
  }
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
