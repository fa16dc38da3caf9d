/** Compares a revision of the contract with its base. */
import { COMPONENT_PATH_LENGTH } from '../model/components.ts'
import { lineOf, type Path } from '../model/source.ts'
import type { Change, Editions } from './change.ts'
import { compareEvents } from './events.ts'
import { compareOperations } from './operations.ts'
import { LEVELS } from './rules.ts'

/** A change with all operations or events that it concerns. */
export interface ListedChange extends Omit<Change, 'place' | 'concerns'> {
  /** The position in the revision, or in the base if the part is gone. */
  file: string
  line: number
  /** The operationIds or event types. */
  concerns: string[]
}

/** All changes, breaking ones first. A change of a shared component is listed once. */
export function compareContracts(editions: Editions): ListedChange[] {
  const changes = [...compareOperations(editions), ...compareEvents(editions)]
  return [...Map.groupBy(changes, toKey).values()]
    .map(merge)
    .sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level))
}

/** Equal for changes that are listed as one: the same change of a component, or changes at the same
 *  position with the same `part` and `what`. */
function toKey({ id, isGone, place, part, what }: Change): string {
  const { source, path } = place
  const { line, column } = source.position(path)
  const where = isInComponent(path) ? path : [line, column, part]
  return JSON.stringify([id, isGone, what, source.file, ...where])
}

function isInComponent(path: Path): boolean {
  return path[0] === 'components' && path.length >= COMPONENT_PATH_LENGTH
}

function merge(changes: Change[]): ListedChange {
  const [{ id, level, place, isGone, part, what }] = changes as [Change]
  return {
    id,
    level,
    file: place.source.file,
    line: lineOf(place),
    isGone,
    concerns: [...new Set(changes.map(({ concerns }) => concerns))],
    // Operations can have different names for a part of a shared component. Then the part gets its
    // name within the component.
    part: changes.every((change) => change.part === part) ? part : nameInComponent(place.path),
    what,
  }
}

const COMPONENT_NOUNS: Record<string, string> = {
  schemas: 'schema',
  responses: 'response',
  headers: 'header',
  parameters: 'parameter',
  requestBodies: 'request body',
}

/** The name of a part in its component, for example ``` `owner.name` of the schema Pet ```. */
function nameInComponent([, kind, name, ...steps]: Path): string {
  const component = `the ${COMPONENT_NOUNS[String(kind)] ?? 'component'} ${name}`
  const owner = steps[0] === 'headers' ? `the header ${steps[1]} of ${component}` : component
  const properties = listProperties(steps)
  return properties.length === 0 ? owner : `\`${properties.join('.')}\` of ${owner}`
}

/** The names of properties on the path. As in compareSchemas, `[]` stands for the items of a list,
 *  and `*` for undeclared properties. */
function listProperties([step, ...others]: Path): string[] {
  if (step === undefined) return []
  if (step === 'properties') return [String(others[0]), ...listProperties(others.slice(1))]
  const name = { items: '[]', additionalProperties: '*' }[step]
  return [...(name ? [name] : []), ...listProperties(others)]
}
