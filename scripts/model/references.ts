/** Resolves, lists and replaces `$ref`, within and between files. */
import { listNodes } from './nodes.ts'
import { mapSubschemas, type Schema } from './schema.ts'
import {
  fail,
  isObject,
  type Located,
  type Path,
  type Source,
  type Sources,
  valueAt,
} from './source.ts'

/** The value itself, or the end of the chain if the value is a reference. */
export function dereference<T>(sources: Sources, placed: Located<T>): Located<T> {
  const ref = isObject(placed.value) ? placed.value.$ref : undefined
  return typeof ref === 'string'
    ? dereference(sources, locate(sources, placed.source, ref) as Located<T>)
    : placed
}

/** Resolves `ref`, found in file `from`, as a JSON Pointer in a URI fragment (RFC 6901 §§3 and 6).
 *  Throws if the target does not exist. */
export function locate(sources: Sources, from: Source, ref: string): Located {
  const cached = targets.get(from) ?? new Map<string, Located>()
  targets.set(from, cached)
  const target = cached.get(ref) ?? findTarget(sources, from, ref)
  cached.set(ref, target)
  return target
}

/** A cache of the targets of each file's references: most references occur in many places. */
const targets = new WeakMap<Source, Map<string, Located>>()

function findTarget(sources: Sources, from: Source, ref: string): Located {
  const [file = ''] = ref.split('#')
  const pointer = ref.slice(file.length + 1)
  if (pointer !== '' && !pointer.startsWith('/'))
    throw new Error(`refers to ${ref}: write # and a path that begins with /, or no #`)
  const path = pointer
    .split('/')
    .slice(1)
    .map((token) => decode(token, ref).replaceAll('~1', '/').replaceAll('~0', '~'))
  // Nothing is decoded or joined here: Redocly must see the same file.
  const source = file === '' ? from : sources[file.replace(/^\.\//, '')]
  if (!source)
    throw new Error(`refers to ${ref}: refer to ${Object.keys(sources).join(' or ')} only`)
  const value = valueAt(source.root, path)
  if (value === undefined)
    throw new Error(
      `refers to ${ref}, which does not exist: correct the reference or add its target`,
    )
  return { source, path, value }
}

/** Every `$ref` of the file with its path, except those in data, such as the value of an example. */
export function listReferences({ root }: Source): { path: Path; ref: string }[] {
  return listNodes(root).flatMap(({ path, value: { $ref } }) =>
    typeof $ref === 'string' ? [{ path: [...path, '$ref'], ref: $ref }] : [],
  )
}

function decode(text: string, ref: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error(`refers to ${ref}, which has a % that begins no escape: write %25`)
  }
}

/** Throws `ContractError` for the first reference without a target. Later code need not check
 *  references. */
export function assertReferences(sources: Sources, source: Source): void {
  const path: (string | number)[] = []
  const visit = (node: unknown): void => {
    if (!isObject(node)) return
    for (const { ref, steps } of listTargets(node)) {
      try {
        locate(sources, source, ref)
      } catch (error) {
        fail(source, [...path, ...steps], (error as Error).message)
      }
    }
    for (const [key, value] of Object.entries(node)) {
      path.push(key)
      visit(value)
      path.pop()
    }
  }
  visit(source.root)
}

/** The references of a node, with the steps that lead to each. Includes all places in which Redocly
 *  looks for references. */
function listTargets(node: Record<string, unknown>): { ref: string; steps: Path }[] {
  const { $ref, externalValue, discriminator } = node
  const ofNode = Object.entries({ $ref, externalValue }).flatMap(([key, ref]) =>
    typeof ref === 'string' ? [{ ref, steps: [key] }] : [],
  )
  if (!isObject(discriminator)) return ofNode
  const mapping = Object.entries(discriminator.mapping ?? {}).map(([value, ref]) => ({
    ref: String(ref),
    steps: ['discriminator', 'mapping', value],
  }))
  return [...ofNode, ...mapping]
}

/** A copy of the schema with each `$ref` set to what `rename` returns for its target. */
export function renameReferences(
  sources: Sources,
  placed: Located<Schema>,
  rename: (target: Located<Schema>) => string,
): Schema {
  const { source, path, value } = placed
  if (value.$ref) return { $ref: rename(locate(sources, source, value.$ref) as Located<Schema>) }
  return mapSubschemas(value, (subschema, steps) =>
    renameReferences(sources, { source, path: [...path, ...steps], value: subschema }, rename),
  )
}

/** A copy of the schema with each reference replaced by its target. `ancestors` are the targets that contain the
 *  schema. Throws `ContractError` for a recursive schema. */
export function inlineReferences(
  sources: Sources,
  placed: Located<Schema>,
  ancestors: readonly unknown[] = [],
): Schema {
  const { source, path, value } = placed
  if (value.$ref) {
    const target = locate(sources, source, value.$ref) as Located<Schema>
    if (ancestors.includes(target.value))
      fail(source, path, `${value.$ref} contains itself: write it without recursion`)
    return inlineReferences(sources, target, [...ancestors, target.value])
  }
  return mapSubschemas(value, (subschema, steps) =>
    inlineReferences(sources, { source, path: [...path, ...steps], value: subschema }, ancestors),
  )
}
