/** The lines of the contracts that describe one schema or resource and nothing else. */
import { COMPONENT_PATH_LENGTH } from '../model/components.ts'
import type { Contract } from '../model/contract.ts'
import { locate } from '../model/references.ts'
import { isObject, type Path, type Place, type Source, valueAt } from '../model/source.ts'

/** A component as one text, for example `openapi.yaml components schemas Task`. */
type ComponentName = string

/** An operation or a message, and the components that it uses. */
interface Usage extends Place {
  components: Set<ComponentName>
  /** Whether the operation or message belongs to the schema or resource. */
  isOwn: boolean
}

/** The numbers of the lines, by file. They are the lines of the schemas, of the operations, of
 *  messages that use the schemas, of components that only these operations and messages use, and of
 *  `places`. */
export function findOwnLines(
  contract: Contract,
  schemas: string[],
  operationIds: string[],
  places: Place[],
): Map<string, Set<number>> {
  const owned = Object.keys(contract.sources).flatMap((file) =>
    schemas.map((schema) => `${file} components schemas ${schema}`),
  )
  const usages = [
    ...contract.operations.map(({ id, place }): Usage => {
      const components = findComponents(contract, place)
      return { ...place, components, isOwn: operationIds.includes(id) }
    }),
    ...contract.events.map(({ place }): Usage => {
      const components = findComponents(contract, place)
      return { ...place, components, isOwn: owned.some((name) => components.has(name)) }
    }),
  ]
  const namesOf = (isOwn: boolean): ComponentName[] =>
    usages.filter((usage) => usage.isOwn === isOwn).flatMap(({ components }) => [...components])
  const shared = new Set(namesOf(false))
  const components = [...owned, ...namesOf(true).filter((name) => !shared.has(name))]
  return linesOf([
    ...usages.filter(({ isOwn }) => isOwn),
    ...components.flatMap((name) => placeOf(contract, name)),
    ...places,
  ])
}

/** Empty for a component that the file does not have. */
function placeOf({ sources }: Contract, name: ComponentName): Place[] {
  const [file = '', ...path] = name.split(' ')
  const source = sources[file]
  return source && valueAt(source.root, path) !== undefined ? [{ source, path }] : []
}

/** The components that the node at the place refers to, directly or through other components. */
export function findComponents({ sources }: Contract, place: Place): Set<ComponentName> {
  const names = new Set<ComponentName>()
  const visit = (source: Source, node: unknown): void => {
    if (!isObject(node)) return
    for (const value of Object.values(node)) visit(source, value)
    if (typeof node.$ref !== 'string') return
    const target = locate(sources, source, node.$ref)
    const path = target.path.slice(0, COMPONENT_PATH_LENGTH)
    const name = [target.source.file, ...path].join(' ')
    if (names.has(name)) return
    names.add(name)
    visit(target.source, valueAt(target.source.root, path))
  }
  visit(place.source, valueAt(place.source.root, place.path))
  return names
}

function linesOf(places: Place[]): Map<string, Set<number>> {
  const lines = new Map<string, Set<number>>()
  for (const { source, path } of places) {
    const numbers = lines.get(source.file) ?? new Set()
    for (const number of blockAt(source, path)) numbers.add(number)
    lines.set(source.file, numbers)
  }
  return lines
}

/** The numbers of the line with the key at the path, and of the lines below it that are indented
 *  deeper. */
function blockAt(source: Source, path: Path): number[] {
  const lines = source.text.split('\n')
  const first = source.position(path).line
  const indent = indentOf(lines[first - 1] ?? '')
  const length = lines
    .slice(first)
    .findIndex((line) => line.trim() !== '' && indentOf(line) <= indent)
  const last = length === -1 ? lines.length : first + length
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

const indentOf = (line: string): number => line.length - line.trimStart().length
