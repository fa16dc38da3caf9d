/** Faults that span several parts of the contract. The generator refuses them; the linter lists
 *  them. */
import type { Contract } from './contract.ts'
import { dereference, locate } from './references.ts'
import {
  type Finding,
  isObject,
  type Located,
  lineOf,
  type Path,
  type Source,
  valueAt,
} from './source.ts'

export function findInconsistencies(contract: Contract): Finding[] {
  return [...findRepeatedIds(contract), ...findEmitMismatches(contract)]
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

/** Event types that an operation emits but asyncapi.yaml does not offer, and those that nothing
 *  emits. */
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

/** Component kinds that are used by name, or that are themselves the content of the file. */
const USED_WITHOUT_REFERENCE = ['securitySchemes', 'messages']

/** `components`, the kind, the name. */
export const COMPONENT_PATH_LENGTH = 3

/** Components that nothing in the contract uses, for example those of a removed operation. */
export function findUnusedComponents({ sources }: Contract): Finding[] {
  const used = new Set<unknown>()
  const visit = (source: Source, node: unknown): void => {
    if (!isObject(node)) return
    if (typeof node.$ref === 'string') markUsed(locate(sources, source, node.$ref))
    for (const value of Object.values(node)) visit(source, value)
  }
  /** A reference into a component uses the whole component. */
  const markUsed = ({ source, path }: Located): void => {
    const component = valueAt(source.root, path.slice(0, COMPONENT_PATH_LENGTH))
    if (used.has(component)) return
    used.add(component)
    visit(source, component)
  }
  const components = Object.values(sources).flatMap(listComponents)
  for (const source of Object.values(sources))
    for (const [key, value] of Object.entries(source.root as object))
      if (key !== 'components') visit(source, value)
  for (const component of components)
    if (USED_WITHOUT_REFERENCE.includes(String(component.path[1]))) markUsed(component)
  return components
    .filter(({ value }) => !used.has(value))
    .map(({ source, path }) => ({
      source,
      path,
      problem: `nothing refers to ${path.join('.')}: remove it, or refer to it`,
    }))
}

/** All components of the file, of every kind. */
export function listComponents(source: Source): Located[] {
  const kinds = (valueAt(source.root, ['components']) ?? {}) as Record<
    string,
    Record<string, unknown>
  >
  return Object.entries(kinds).flatMap(([kind, members]) =>
    Object.entries(members).map(([name, value]) => ({
      source,
      path: ['components', kind, name],
      value,
    })),
  )
}

/** The messages of all channels of asyncapi.yaml. */
export function listSentMessages({ sources, asyncapi }: Contract): unknown[] {
  const channels = (valueAt(asyncapi.root, ['channels']) ?? {}) as Record<string, unknown>
  return Object.entries(channels).flatMap(([name, channel]) =>
    Object.entries((valueAt(channel, ['messages']) ?? {}) as object).map(([key, value]) => {
      const path = ['channels', name, 'messages', key]
      return dereference(sources, { source: asyncapi, path, value }).value
    }),
  )
}
