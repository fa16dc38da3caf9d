/** `$ref`, within and between the two files. */
import { mapSubschemas, type Schema } from './schema.ts'
import { at, fail, isObject, type Path, type Source } from './source.ts'

/** By file name. */
export type Sources = Record<string, Source>

export interface Place {
  source: Source
  path: Path
}

/** A value and where it stands, which is what its references are relative to. */
export interface Placed<T = unknown> extends Place {
  value: T
}

/** Follows `$ref` from the value until there is none. */
export function follow<T>(sources: Sources, placed: Placed<T>): Placed<T> {
  const ref = isObject(placed.value) ? placed.value.$ref : undefined
  return typeof ref === 'string'
    ? follow(sources, locate(sources, placed.source, ref) as Placed<T>)
    : placed
}

/** What `ref`, found in `from`, points to. RFC 6901 §§3 and 6: a JSON Pointer in a URI fragment. */
export function locate(sources: Sources, from: Source, ref: string): Placed {
  const [file = '', pointer = ''] = ref.split('#')
  const path = pointer
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  const source = file === '' ? from : sources[file.replace(/^\.\//, '')]
  if (!source)
    throw new Error(
      `refers to ${ref}, but the contract is ${Object.keys(sources).join(' and ')} alone`,
    )
  const value = at(source.root, path)
  if (value === undefined)
    throw new Error(
      `refers to ${ref}, which does not exist: correct the reference or add its target`,
    )
  return { source, path, value }
}

/** Fails for the first reference in the file that leads nowhere. Everything after it may follow them blindly. */
export function checkReferences(sources: Sources, source: Source): void {
  const visit = (node: unknown, path: Path): void => {
    if (!isObject(node)) return
    if (typeof node.$ref === 'string') {
      try {
        locate(sources, source, node.$ref)
      } catch (error) {
        fail(source, [...path, '$ref'], (error as Error).message)
      }
    }
    for (const [key, value] of Object.entries(node)) visit(value, [...path, key])
  }
  visit(source.root, [])
}

/** A copy of the schema in which each reference is what `rename` makes of its target. */
export function renameReferences(
  sources: Sources,
  placed: Placed<Schema>,
  rename: (target: Placed<Schema>) => string,
): Schema {
  const { source, path, value } = placed
  if (value.$ref) return { $ref: rename(locate(sources, source, value.$ref) as Placed<Schema>) }
  return mapSubschemas(value, (subschema, steps) =>
    renameReferences(sources, { source, path: [...path, ...steps], value: subschema }, rename),
  )
}

/** A copy of the schema with the targets in the place of references. Fails for a schema that contains itself. */
export function inlineReferences(
  sources: Sources,
  placed: Placed<Schema>,
  inside: readonly unknown[] = [],
): Schema {
  const { source, path, value } = placed
  if (value.$ref) {
    const target = locate(sources, source, value.$ref) as Placed<Schema>
    if (inside.includes(target.value))
      fail(source, path, `${value.$ref} contains itself: an event payload cannot`)
    return inlineReferences(sources, target, [...inside, target.value])
  }
  return mapSubschemas(value, (subschema, steps) =>
    inlineReferences(sources, { source, path: [...path, ...steps], value: subschema }, inside),
  )
}

/** Referred to by a name, or the beginning of everything. */
const NEEDS_NO_REFERENCE = ['securitySchemes', 'messages']

/** Components that nothing in the contract leads to, such as the examples of an operation that is gone. */
export function unreferenced(sources: Sources): (Place & { problem: string })[] {
  const used = new Set<unknown>()
  const visit = (source: Source, node: unknown): void => {
    if (!isObject(node)) return
    if (typeof node.$ref === 'string') use(locate(sources, source, node.$ref))
    for (const value of Object.values(node)) visit(source, value)
  }
  /** A reference into a component uses all of it. */
  const use = ({ source, path }: Placed): void => {
    const component = at(source.root, path.slice(0, COMPONENT_STEPS))
    if (used.has(component)) return
    used.add(component)
    visit(source, component)
  }
  const components = Object.values(sources).flatMap(componentsOf)
  for (const source of Object.values(sources))
    for (const [key, value] of Object.entries(source.root as object))
      if (key !== 'components') visit(source, value)
  for (const component of components)
    if (NEEDS_NO_REFERENCE.includes(String(component.path[1]))) use(component)
  return components
    .filter(({ value }) => !used.has(value))
    .map(({ source, path }) => ({
      source,
      path,
      problem: `nothing refers to ${path.join('.')}: remove it, or refer to it`,
    }))
}

/** `components`, the kind, the name. */
const COMPONENT_STEPS = 3

function componentsOf(source: Source): Placed[] {
  const kinds = (at(source.root, ['components']) ?? {}) as Record<string, Record<string, unknown>>
  return Object.entries(kinds).flatMap(([kind, members]) =>
    Object.entries(members).map(([name, value]) => ({
      source,
      path: ['components', kind, name],
      value,
    })),
  )
}
