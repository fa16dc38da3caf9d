/** `discriminator`: a property whose value chooses one alternative of `oneOf` or `anyOf`. */
import { isDeepStrictEqual } from 'node:util'
import type { Schema } from './schema.ts'
import { isObject } from './source.ts'

export interface Choice {
  /** The values of the property that choose the alternative. */
  values: readonly unknown[]
  alternative: Schema
}

export interface Discriminator {
  /** The name of the property. */
  name: string
  /** The keyword with the alternatives. */
  keyword: 'oneOf' | 'anyOf'
  choices: readonly Choice[]
  /** Whether null is another alternative. */
  hasNull: boolean
}

/** Follows the references of a schema. */
export type Resolve = (schema: Schema) => Schema

/** Undefined if the schema has no discriminator, or if the discriminator leaves open which value
 *  chooses an alternative. In both cases, `oneOf` or `anyOf` alone decides. */
export function readDiscriminator(schema: Schema, resolve: Resolve): Discriminator | undefined {
  const { propertyName, mapping } = readNames(schema)
  const keyword = schema.oneOf ? 'oneOf' : 'anyOf'
  const all = schema[keyword]
  if (propertyName === undefined || !Array.isArray(all) || !all.every(isObject)) return undefined
  const alternatives = all.filter((alternative) => !isNull(resolve(alternative)))
  const named = alternatives.map((alternative) => namesOf(alternative, mapping))
  const listed = alternatives.map((alternative) => listValues(alternative, propertyName, resolve))
  // An alternative has the values that it lists, or else those of `namesOf`. If the values of two
  // alternatives overlap, all alternatives have those of `namesOf`.
  const preferred = listed.map((values, index) => values ?? named[index] ?? [])
  const values = [preferred, named].find(areDistinct)
  if (values === undefined) return undefined
  return {
    name: propertyName,
    keyword,
    choices: alternatives.map((alternative, index) => ({
      values: values[index] ?? [],
      alternative,
    })),
    hasNull: alternatives.length < all.length,
  }
}

/** The alternative that the property of `value` chooses. Undefined if it chooses none. */
export function findChoice({ name, choices }: Discriminator, value: unknown): Choice | undefined {
  if (!isObject(value)) return undefined
  return choices.find(({ values }) => values.includes((value as Record<string, unknown>)[name]))
}

/** The discriminators of the schema and of its `allOf`, `oneOf` and `anyOf`, but not of its
 *  properties or items. */
export function listDiscriminators(
  schema: Schema,
  resolve: Resolve,
  seen = new Set<Schema>(),
): Discriminator[] {
  const target = resolve(schema)
  if (!isObject(target) || seen.has(target)) return []
  seen.add(target)
  const discriminator = readDiscriminator(target, resolve)
  const parts = [target.allOf, target.oneOf, target.anyOf].flatMap((list) => list ?? [])
  return [
    ...(discriminator ? [discriminator] : []),
    ...parts.flatMap((part) => listDiscriminators(part, resolve, seen)),
  ]
}

/** A copy of `inlined` whose alternatives list the values that choose them. `inlined` is `schema`
 *  with its references replaced, so the names of its alternatives are lost. */
export function keepChoices(schema: Schema, inlined: Schema, resolve: Resolve): Schema {
  const discriminator = readDiscriminator(schema, resolve)
  if (discriminator === undefined) return inlined
  const { name, keyword, choices } = discriminator
  const alternatives = inlined[keyword]?.map((alternative, index) => {
    const choice = choices.find((one) => one.alternative === schema[keyword]?.[index])
    const listed = listValues(alternative, name, (same) => same)
    if (!choice || isDeepStrictEqual(listed, choice.values)) return alternative
    const property = { ...alternative.properties?.[name], enum: choice.values }
    return { ...alternative, properties: { ...alternative.properties, [name]: property } }
  })
  return { ...inlined, [keyword]: alternatives }
}

interface DiscriminatorNames {
  propertyName?: string
  mapping: Record<string, string>
}

function readNames({ discriminator }: Schema): DiscriminatorNames {
  if (!isObject(discriminator)) return { mapping: {} }
  const { propertyName, mapping } = discriminator as Partial<DiscriminatorNames>
  return { propertyName, mapping: isObject(mapping) ? mapping : {} }
}

function isNull({ type }: Schema): boolean {
  return type === 'null'
}

/** The values that the discriminator gives an alternative. OpenAPI 3.0.3, Discriminator Object: the
 *  mapping has the reference or the name of the alternative. Without an entry in the mapping, the
 *  name is the value. */
function namesOf({ $ref }: Schema, mapping: Record<string, string>): string[] {
  if ($ref === undefined) return []
  const name = $ref.split('/').at(-1) ?? ''
  const mapped = Object.entries(mapping).filter(([, target]) => [$ref, name].includes(target))
  return mapped.length > 0 ? mapped.map(([value]) => value) : [name]
}

/** The values that the alternative lists for the property. Undefined if it lists none. */
function listValues(
  alternative: Schema,
  name: string,
  resolve: Resolve,
  ancestors: readonly Schema[] = [],
): readonly unknown[] | undefined {
  const target = resolve(alternative)
  if (!isObject(target) || ancestors.includes(target)) return undefined
  const property = resolve(target.properties?.[name] ?? {})
  if (property.const !== undefined) return [property.const]
  if (Array.isArray(property.enum)) return property.enum
  return target.allOf
    ?.map((part) => listValues(part, name, resolve, [...ancestors, target]))
    .findLast((values) => values !== undefined)
}

/** Whether no list is empty and no value occurs twice. */
export function areDistinct(lists: (readonly unknown[])[]): boolean {
  const all = lists.flat()
  return lists.every(({ length }) => length > 0) && new Set(all).size === all.length
}
