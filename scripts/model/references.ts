/** `$ref`, within and between the two files. */
import { mapSubschemas, type Schema } from './schema.ts'
import { at, fail, isObject, type Path, type Placed, type Source, type Sources } from './source.ts'

/** The value, or the end of its chain of references. */
export function follow<T>(sources: Sources, placed: Placed<T>): Placed<T> {
  const ref = isObject(placed.value) ? placed.value.$ref : undefined
  return typeof ref === 'string'
    ? follow(sources, locate(sources, placed.source, ref) as Placed<T>)
    : placed
}

/** The target of `ref`, which stands in `from`. RFC 6901 §§3 and 6: a JSON Pointer in a URI fragment.
 *  Throws for a target that does not exist. */
export function locate(sources: Sources, from: Source, ref: string): Placed {
  const [file = '', pointer = ''] = ref.split('#')
  const path = pointer
    .split('/')
    .slice(1)
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  const source = file === '' ? from : sources[file.replace(/^\.\//, '')]
  if (!source)
    throw new Error(`refers to ${ref}: refer to ${Object.keys(sources).join(' or ')} only`)
  const value = at(source.root, path)
  if (value === undefined)
    throw new Error(
      `refers to ${ref}, which does not exist: correct the reference or add its target`,
    )
  return { source, path, value }
}

/** Throws `ContractError` for the first reference without a target. Later code need not check references. */
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

/** A copy of the schema with each reference replaced by the text that `rename` returns for its target. */
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

/** A copy of the schema with each reference replaced by its target.
 *  Throws `ContractError` for a schema that contains itself. */
export function inlineReferences(
  sources: Sources,
  placed: Placed<Schema>,
  ancestors: readonly unknown[] = [],
): Schema {
  const { source, path, value } = placed
  if (value.$ref) {
    const target = locate(sources, source, value.$ref) as Placed<Schema>
    if (ancestors.includes(target.value))
      fail(source, path, `${value.$ref} contains itself: write it without recursion`)
    return inlineReferences(sources, target, [...ancestors, target.value])
  }
  return mapSubschemas(value, (subschema, steps) =>
    inlineReferences(sources, { source, path: [...path, ...steps], value: subschema }, ancestors),
  )
}
