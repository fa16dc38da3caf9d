/** A field that a discriminator names has one name in all alternatives. So a rename changes the
 *  field in all alternatives, and in the discriminator. */
import type { Contract } from '../model/contract.ts'
import { listNodes, type Node } from '../model/nodes.ts'
import { locate } from '../model/references.ts'
import { isObject, type Place, type Source, type Sources, valueAt } from '../model/source.ts'

interface SharedField {
  /** The schemas that have the field, including the `schema` of `findSharedField`. */
  schemas: string[]
  /** Where discriminators name the field. */
  places: Place[]
}

export function findSharedField({ sources }: Contract, schema: string, field: string): SharedField {
  const schemas = new Set([schema])
  const places = new Set<Place>()
  const unions = Object.values(sources).flatMap((source) => listUnions(source, sources, field))
  // A schema that was added can be an alternative of another discriminator, so this repeats until
  // nothing is added.
  for (let size = 0; size < schemas.size; ) {
    size = schemas.size
    for (const { place, members } of unions) {
      if (members.isDisjointFrom(schemas)) continue
      for (const member of members) if (hasField(sources, member, field)) schemas.add(member)
      places.add(place)
    }
  }
  return { schemas: [...schemas], places: [...places] }
}

interface Union {
  /** The place of `propertyName`. */
  place: Place
  /** The names of the schema with the discriminator, of its alternatives, and of the schemas that
   *  these combine, for example with `allOf`. */
  members: Set<string>
}

function listUnions(source: Source, sources: Sources, field: string): Union[] {
  return listNodes(source.root)
    .filter(({ value }) => valueAt(value, ['discriminator', 'propertyName']) === field)
    .map(({ path, value }) => {
      const members = new Set<string>()
      addMembers(members, sources, source, value)
      const isComponent = path.length === 3 && path[1] === 'schemas'
      if (isComponent) members.add(String(path[2]))
      return { place: { source, path: [...path, 'discriminator', 'propertyName'] }, members }
    })
}

function addMembers(
  members: Set<string>,
  sources: Sources,
  source: Source,
  { $ref, oneOf, anyOf, allOf }: Node['value'],
): void {
  for (const part of [oneOf, anyOf, allOf].flat())
    if (isObject(part)) addMembers(members, sources, source, part as Node['value'])
  if (typeof $ref !== 'string') return
  const target = locate(sources, source, $ref)
  const name = String(target.path.at(-1))
  if (members.has(name) || !isObject(target.value)) return
  members.add(name)
  addMembers(members, sources, target.source, target.value as Node['value'])
}

function hasField(sources: Sources, schema: string, field: string): boolean {
  return Object.values(sources).some(({ root }) => {
    const properties = valueAt(root, ['components', 'schemas', schema, 'properties'])
    return isObject(properties) && Object.hasOwn(properties, field)
  })
}
