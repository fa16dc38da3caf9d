/** The nodes of a document, and which of them are data: a `$ref` or `default` there means
 *  nothing. */
import { isObject, type Path } from './source.ts'

/** Values below these keys, and below extensions (`x-…`), are data. */
const DATA_KEYS = ['example', 'examples', 'default', 'enum', 'const', 'value']

/** A map below one of these keys has names of its own: a property can be called `default`, and a
 *  response is. */
const MAPS_OF_NAMES = [
  ...['properties', 'patternProperties', '$defs', 'responses', 'headers', 'schemas', 'parameters'],
  ...['requestBodies', 'securitySchemes', 'links', 'callbacks', 'paths'],
]

/** Whether the keys of the node at `path` are names, not keywords. */
export function isMapOfNames(path: Path): boolean {
  return MAPS_OF_NAMES.includes(String(path.at(-1)))
}

/** Whether the value of the key is data. `path` leads to the node with the key. */
export function isData(key: string, path: Path): boolean {
  return !isMapOfNames(path) && (DATA_KEYS.includes(key) || key.startsWith('x-'))
}

export interface Node {
  path: Path
  value: Record<string | number, unknown>
}

/** Every mapping and list that is no data, each before those below it. */
export function listNodes(root: unknown): readonly Node[] {
  if (!isObject(root)) return []
  const nodes = nodesByRoot.get(root) ?? collectNodes(root)
  nodesByRoot.set(root, nodes)
  return nodes
}

/** Several rules read the nodes of a document. */
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
