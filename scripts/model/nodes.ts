/** The nodes of a document, and which of its values are data. In data, keys such as `$ref` or
 *  `default` are not keywords. */
import { isObject, type Path } from './source.ts'

/** Values below these keys, and below extensions (`x-…`), are data. */
const DATA_KEYS = ['example', 'examples', 'default', 'enum', 'const', 'value']

/** The keys of a map below one of these keys are names, not keywords: for example, `default` can be
 *  the name of a property or of a response. */
const MAPS_OF_NAMES = [
  ...['properties', 'patternProperties', '$defs', 'responses', 'headers', 'schemas', 'parameters'],
  ...['requestBodies', 'securitySchemes', 'links', 'callbacks', 'paths'],
]

/** Whether the keys of the node at `path` are names, not keywords. */
export function hasNamesAsKeys(path: Path): boolean {
  return MAPS_OF_NAMES.includes(String(path.at(-1)))
}

/** Whether the value of the key is data. `path` leads to the node with the key. */
function isData(key: string, path: Path): boolean {
  return !hasNamesAsKeys(path) && (DATA_KEYS.includes(key) || key.startsWith('x-'))
}

interface Node {
  path: Path
  value: Record<string | number, unknown>
}

/** Every mapping and list that is not data. Each comes before its children. */
export function listNodes(root: unknown): readonly Node[] {
  if (!isObject(root)) return []
  const nodes = nodesByRoot.get(root) ?? collectNodes(root)
  nodesByRoot.set(root, nodes)
  return nodes
}

/** A cache: several rules read the nodes of the same document. */
const nodesByRoot = new WeakMap<object, readonly Node[]>()

function collectNodes(root: object): Node[] {
  const nodes: Node[] = []
  const visit = (value: unknown, path: Path): void => {
    if (!isObject(value)) return
    nodes.push({ path, value })
    for (const [key, child] of Object.entries(value))
      if (!isData(key, path)) visit(child, [...path, key])
  }
  visit(root, [])
  return nodes
}
