/** Reads the words of the contracts: the keys that begin with `x-`. docs/contract-tests.md lists
 *  them. */
import { type Place, valueAt } from '../model/source.ts'

/** The value of the word at the place. Undefined if the contract does not have it. */
export function readWord<T>({ source, path }: Place, word: string): T | undefined {
  return valueAt(source.root, [...path, word]) as T | undefined
}

/** The value at a JSON Pointer. Undefined if there is none. */
export function readPointer(value: unknown, pointer: string): unknown {
  return readSteps(value, pointer.split('/').slice(1))
}

/** The value of a field. Dots in the name lead into nested objects. */
export function readField(record: unknown, field: string): unknown {
  return readSteps(record, field.split('.'))
}

function readSteps(value: unknown, steps: string[]): unknown {
  return steps.reduce(
    (current, step) => (current as Record<string, unknown> | null | undefined)?.[step],
    value,
  )
}
