/** Faults that span several parts of the contract. The generator refuses them; the linter lists
 *  them. */
import type { Contract } from './contract.ts'
import { hasNamesAsKeys, listNodes } from './nodes.ts'
import { dereference } from './references.ts'
import type { Schema } from './schema.ts'
import {
  type Finding,
  isObject,
  type Located,
  lineOf,
  type Path,
  type Sources,
  valueAt,
} from './source.ts'

export function findInconsistencies(contract: Contract): Finding[] {
  return [
    ...findRepeatedIds(contract),
    ...findEmitMismatches(contract),
    ...findUndefinedRequired(contract),
    ...findContradictions(contract),
  ]
}

/** Operations with the operationId of an earlier one. */
export function findRepeatedIds({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, place }, index) => {
    const first = operations.findIndex((operation) => operation.id === id)
    if (first === index) return []
    const line = lineOf(operations[first]?.place ?? place)
    const problem = `repeats the operationId ${id} of line ${line}: give each operation its own`
    return [{ ...place, problem }]
  })
}

/** Event types that openapi.yaml emits but asyncapi.yaml does not offer, and event types that
 *  nothing emits. */
export function findEmitMismatches(contract: Contract): Finding[] {
  const { openapi, operations, events, emittedBySystem } = contract
  const emitted = new Set([...emittedBySystem, ...operations.flatMap(({ emits }) => emits)])
  const check = (types: string[], path: Path, emitter: string): Finding[] =>
    types.flatMap((type) => {
      const event = events.find((candidate) => candidate.type === type)
      if (event?.isSubscribable) return []
      const problem = event
        ? `${emitter} emits ${type}, which is x-subscribable: false in asyncapi.yaml: correct one of them`
        : `${emitter} emits ${type}, which asyncapi.yaml does not have: add the message or correct the name`
      return [{ source: openapi, path, problem }]
    })
  const silent = events.filter(({ type, isSubscribable }) => isSubscribable && !emitted.has(type))
  return [
    ...check(emittedBySystem, ['x-emitted-by-system'], 'the system'),
    ...operations.flatMap(({ id, place, emits }) =>
      check(emits, [...place.path, 'x-emits'], `operation ${id}`),
    ),
    ...silent.map(({ type, payload }) => ({
      ...payload,
      problem: `nothing emits ${type}: add it to x-emits or x-emitted-by-system in openapi.yaml`,
    })),
  ]
}

const COMPOSITIONS = ['allOf', 'anyOf', 'oneOf'] as const

/** Names in `required` without a property of that name. In a composition, another of its schemas
 *  can have the property. */
export function findUndefinedRequired({ sources }: Contract): Finding[] {
  return listSchemaNodes(sources).flatMap(({ source, path, value: { required } }) => {
    if (!Array.isArray(required)) return []
    let owner = path
    while (COMPOSITIONS.some((keyword) => keyword === owner.at(-2))) owner = owner.slice(0, -2)
    const whole = { source, path: owner, value: valueAt(source.root, owner) as Schema }
    return required.flatMap((name, index) => {
      if (hasProperty(sources, whole, name)) return []
      const problem = `required lists ${name}, which is not a property: add the property, or correct the name`
      return [{ source, path: [...path, 'required', index], problem }]
    })
  })
}

function hasProperty(
  sources: Sources,
  schema: Located<Schema>,
  name: string,
  ancestors: readonly unknown[] = [],
): boolean {
  const { source, path, value } = dereference(sources, schema)
  if (!isObject(value) || ancestors.includes(value)) return false
  if (Object.hasOwn(value.properties ?? {}, name)) return true
  const parts = COMPOSITIONS.flatMap((keyword) => value[keyword] ?? [])
  return parts.some((part) =>
    hasProperty(sources, { source, path, value: part }, name, [...ancestors, value]),
  )
}

/** Schemas with a lower bound above the upper bound. */
export function findContradictions({ sources }: Contract): Finding[] {
  return listSchemaNodes(sources).flatMap(({ source, path, value }) =>
    BOUNDS.flatMap(([lower, upper]) => {
      const [low, high] = [value[lower], value[upper]]
      if (typeof low !== 'number' || typeof high !== 'number' || low <= high) return []
      const problem = `${lower} ${low} is above ${upper} ${high}: correct one of them`
      return [{ source, path: [...path, lower], problem }]
    }),
  )
}

const BOUNDS: readonly (readonly [lower: string, upper: string])[] = [
  ['minimum', 'maximum'],
  ['minimum', 'exclusiveMaximum'],
  ['exclusiveMinimum', 'maximum'],
  ['exclusiveMinimum', 'exclusiveMaximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['minProperties', 'maxProperties'],
]

/** Every mapping that can be a schema. */
function listSchemaNodes(sources: Sources): Located<Schema>[] {
  return Object.values(sources).flatMap((source) =>
    listNodes(source.root)
      .filter(({ path }) => !hasNamesAsKeys(path))
      .map(({ path, value }) => ({ source, path, value: value as Schema })),
  )
}
