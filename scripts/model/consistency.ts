/** Faults that span several parts of the contract. The generator refuses them; the linter lists
 *  them. */
import type { Contract } from './contract.ts'
import { type Finding, lineOf, type Path } from './source.ts'

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
