/** The lines of the contracts that describe one schema or resource and nothing else. */
import type { Contract } from '../model/contract.ts'
import { locate } from '../model/references.ts'
import { isObject, type Path, type Place, type Source, valueAt } from '../model/source.ts'

/** An operation or a message, and the components that it uses, for example `openapi.yaml components schemas Task`. */
interface Usage extends Place {
  components: Set<string>
}

/** The numbers of the lines, by file. They are those of the schemas, of the operations and messages that use them,
 *  and of the components that no other operation or message uses. */
export function findOwnLines(
  contract: Contract,
  schemas: string[],
  isOwnOperation: (id: string) => boolean,
): Map<string, Set<number>> {
  const own = new Set(
    Object.keys(contract.sources).flatMap((file) =>
      schemas.map((schema) => [file, 'components', 'schemas', schema].join(' ')),
    ),
  )
  const messages = contract.events.map(({ place }) => withComponents(contract, place))
  const operations = contract.operations.map(({ id, place }) => ({
    ...withComponents(contract, place),
    isOwn: isOwnOperation(id),
  }))
  const usesOwn = ({ components }: Usage): boolean => [...components].some((name) => own.has(name))
  const usages = [
    ...operations,
    ...messages.map((message) => ({ ...message, isOwn: usesOwn(message) })),
  ]
  const elsewhere = new Set(
    usages.filter(({ isOwn }) => !isOwn).flatMap(({ components }) => [...components]),
  )
  const places: Place[] = usages.filter(({ isOwn }) => isOwn)
  const used = usages.filter(({ isOwn }) => isOwn).flatMap(({ components }) => [...components])
  for (const name of new Set([...own, ...used])) {
    const [file = '', ...path] = name.split(' ')
    const source = contract.sources[file]
    if (
      source &&
      valueAt(source.root, path) !== undefined &&
      (own.has(name) || !elsewhere.has(name))
    )
      places.push({ source, path })
  }
  return linesOf(places)
}

function withComponents({ sources }: Contract, place: Place): Usage {
  const components = new Set<string>()
  const visit = (source: Source, node: unknown): void => {
    if (!isObject(node)) return
    for (const value of Object.values(node)) visit(source, value)
    if (typeof node.$ref !== 'string') return
    const target = locate(sources, source, node.$ref)
    const path: Path = target.path.slice(0, 3)
    const name = [target.source.file, ...path].join(' ')
    if (components.has(name)) return
    components.add(name)
    visit(target.source, valueAt(target.source.root, path))
  }
  visit(place.source, valueAt(place.source.root, place.path))
  return { ...place, components }
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

/** The line of the key and the deeper ones below it. */
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
