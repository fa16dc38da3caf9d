/** Alternative schemas of objects (`oneOf`). The value of one property, the tag, tells them apart,
 *  for example the `event_type` of events. */
import { readDefault, type Schema } from './schema.ts'

/** The name of the tag. At most one alternative lacks the tag. The others require it and list its
 *  values, and no value is in two of them. Undefined if no property is such a tag. `resolve`
 *  follows the reference of a property. */
export function findTag(
  alternatives: readonly Schema[],
  resolve: (property: Schema) => Schema = (property) => property,
): string | undefined {
  if (alternatives.length < 2 || !alternatives.every(({ properties }) => properties))
    return undefined
  const names = new Set(alternatives.flatMap(({ properties }) => Object.keys(properties ?? {})))
  return [...names].find((name) => {
    const owners = alternatives.filter(({ properties }) => properties?.[name])
    const options = owners.map((alternative) => listOptions(alternative, name, resolve))
    const isCommon = owners.length >= alternatives.length - 1
    const isRequired = owners.every(({ required }) => required?.includes(name))
    return isCommon && isRequired && areDistinct(options)
  })
}

/** The values that the alternative lists for the tag. Empty if it lists none. */
export function listOptions(
  { properties }: Schema,
  tag: string,
  resolve: (property: Schema) => Schema = (property) => property,
): readonly unknown[] {
  return resolve(properties?.[tag] ?? {}).enum ?? []
}

/** One object with the properties of all alternatives. Where the schemas of a property differ,
 *  `x-depends-on` names the tag, and `x-by-option` has the schema for each value of the tag: `{}`
 *  where an alternative lacks the property. The references in the alternatives must be resolved. */
export function mergeAlternatives(alternatives: readonly Schema[], tag: string): Schema {
  const names = new Set(alternatives.flatMap(({ properties }) => Object.keys(properties ?? {})))
  const isRequired = (name: string): boolean =>
    alternatives.every(({ required }) => required?.includes(name))
  return {
    ...alternatives[0],
    required: [...names].filter(isRequired),
    properties: Object.fromEntries(
      [...names].map((name) => [name, mergeProperty(alternatives, tag, name)]),
    ),
  }
}

function mergeProperty(alternatives: readonly Schema[], tag: string, name: string): Schema {
  const schemas = alternatives.flatMap(({ properties }): Schema[] => {
    const schema = properties?.[name]
    return schema ? [schema] : []
  })
  const [first = {}] = schemas
  if (name === tag)
    return {
      ...first,
      enum: schemas.flatMap((schema) => schema.enum ?? []),
      'x-enum-descriptions': schemas.flatMap((schema) => schema['x-enum-descriptions'] ?? []),
      default: schemas.map(readDefault).find((value) => value !== undefined),
    }
  if (new Set(schemas.map((schema) => JSON.stringify(schema))).size === 1) return first
  const byOption = alternatives.flatMap((alternative) =>
    listOptions(alternative, tag).map((option) => [option, alternative.properties?.[name] ?? {}]),
  )
  return {
    description: first.description,
    'x-depends-on': tag,
    'x-by-option': Object.fromEntries(byOption),
  }
}

/** Whether no list is empty and no value occurs twice. */
function areDistinct(lists: (readonly unknown[])[]): boolean {
  const all = lists.flat()
  return lists.every(({ length }) => length > 0) && new Set(all).size === all.length
}
