/** Merges a schema with the schemas of its `allOf`: a value must meet all of them. */
import { isDeepStrictEqual } from 'node:util'
import { dereference } from '../model/references.ts'
import { ANNOTATIONS, type Schema } from '../model/schema.ts'
import { type Located, type Path, type Sources, valueAt } from '../model/source.ts'
import { BOUNDS } from './keywords.ts'

export interface MergedSchema extends Located<Schema> {
  /** The schemas that `value` is merged from: the parts of `value` have their places there. */
  members: readonly Located<Schema>[]
}

/** Keeps the `allOf` if no single schema says the same. */
export function mergeAllOf(sources: Sources, schema: Located<Schema>): MergedSchema {
  if (!schema.value.allOf) return unmerged(schema)
  const members = [...listMembers(sources, schema).values()]
  const value = merge(members.map((member) => member.value))
  return value ? { ...schema, value, members } : unmerged(schema)
}

export function unmerged(schema: Located<Schema>): MergedSchema {
  return { ...schema, members: [schema] }
}

/** The part of the schema at `steps`, at its own place. */
export function childOf({ members }: MergedSchema, steps: Path): Located<Schema> {
  const isOwner = ({ value }: Located<Schema>) => valueAt(value, steps) !== undefined
  const { source, path, value } = (members.find(isOwner) ?? members[0]) as Located<Schema>
  return { source, path: [...path, ...steps], value: valueAt(value, steps) as Schema }
}

/** The schema without its `allOf`, and the schemas of its `allOf`, each of them once. */
function listMembers(
  sources: Sources,
  schema: Located<Schema>,
  members = new Map<Schema, Located<Schema>>(),
): Map<Schema, Located<Schema>> {
  if (members.has(schema.value)) return members
  const { allOf = [], ...value } = schema.value
  members.set(schema.value, { ...schema, value })
  for (const index of allOf.keys())
    listMembers(sources, dereference(sources, childOf(unmerged(schema), ['allOf', index])), members)
  return members
}

function merge(members: readonly Schema[]): Schema | undefined {
  const merged: Record<string, unknown> = {}
  const properties: Record<string, unknown> = {}
  for (const { properties: own = {}, required: _, nullable: _nullable, ...keywords } of members) {
    const isMerged =
      addAll(merged, keywords, combine) &&
      addAll(properties, own, (_name, a, b) => (isDeepStrictEqual(a, b) ? a : undefined))
    if (!isMerged) return undefined
  }
  const names = Object.keys(properties)
  const refusesProperties = members.some(
    ({ additionalProperties = true, properties: own = {} }) =>
      additionalProperties !== true && names.some((name) => !Object.hasOwn(own, name)),
  )
  const hasAlternatives = merged.oneOf !== undefined || merged.anyOf !== undefined
  if (refusesProperties || (hasAlternatives && members.filter(isLimiting).length > 1))
    return undefined
  // OpenAPI 3.0.3, Schema Object: `nullable` counts only beside a `type`.
  const typed = members.filter(({ type }) => type !== undefined)
  return {
    ...merged,
    properties: properties as Schema['properties'],
    required: [...new Set(members.flatMap(({ required = [] }) => required))],
    nullable: typed.length > 0 && typed.every(({ nullable }) => nullable),
  }
}

/** Whether the schema refuses values of its type. */
function isLimiting({ type: _, nullable: _nullable, ...keywords }: Schema): boolean {
  return Object.keys(keywords).some((keyword) => !isAnnotation(keyword))
}

function isAnnotation(keyword: string): boolean {
  return ANNOTATIONS.includes(keyword) || keyword.startsWith('x-')
}

/** Returns the value that demands what `a` and `b` demand. Undefined if there is none. */
type Combine = (name: string, a: unknown, b: unknown) => unknown

/** False if two values under one name cannot be combined. */
function addAll(target: Record<string, unknown>, entries: object, combineTwo: Combine): boolean {
  return Object.entries(entries).every(([name, value]) => {
    target[name] = Object.hasOwn(target, name) ? combineTwo(name, target[name], value) : value
    return target[name] !== undefined
  })
}

const combine: Combine = (keyword, a, b) => {
  const bound = BOUNDS.find((each) => each.keyword === keyword)
  if (bound) return (bound.isUpper ? Math.min : Math.max)(Number(a), Number(b))
  if (isAnnotation(keyword) || isDeepStrictEqual(a, b)) return a
  if (keyword === 'type' && isNumeric(a) && isNumeric(b)) return 'integer'
  if (keyword !== 'additionalProperties') return undefined
  return a === true ? b : b === true ? a : undefined
}

function isNumeric(type: unknown): boolean {
  return type === 'integer' || type === 'number'
}
