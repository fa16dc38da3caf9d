/** What broke the contract in this process, for its operator: where and how, never a value. */
import { readFileSync } from 'node:fs'
import type { DeliveredType } from '../generated/asyncapi.ts'
import type { OperationId } from '../generated/operations.ts'

/** What Ajv says of a value, as far as we look at it. */
export interface SchemaError {
  instancePath: string
  message?: string
  params: object
}

export interface Problem {
  /** A JSON Pointer, with `*` for whichever entry of a list or map. Headers are below `/headers`. */
  pointer: string
  /** Such as `must be string`. */
  problem: string
}

/** Of the answer to an operation, or of an event, which has no status. */
export type Violation = Problem &
  ({ operation: OperationId; status: number } | { event: DeliveredType })

export interface SeenViolation {
  operation: OperationId | null
  event: DeliveredType | null
  status: number | null
  pointer: string
  problem: string
  count: number
  first_seen_at: string
  last_seen_at: string
}

export interface Violations {
  saw(violation: Violation, now: Date): void
  /** The latest first. */
  list(): SeenViolation[]
}

/** Distinct ones. Of more, those that were not seen for longest are forgotten. */
const MAX_KEPT = 100

export function newViolations(): Violations {
  const kept = new Map<string, SeenViolation>()
  return {
    saw(violation, now) {
      const known = { operation: null, event: null, status: null, ...violation }
      const key = JSON.stringify([
        known.operation,
        known.event,
        known.status,
        known.pointer,
        known.problem,
      ])
      const before = kept.get(key)
      const at = now.toISOString()
      // Put in anew, so that the map is in the order of last sight.
      kept.delete(key)
      kept.set(key, {
        ...known,
        count: (before?.count ?? 0) + 1,
        first_seen_at: before?.first_seen_at ?? at,
        last_seen_at: at,
      })
      for (const oldest of kept.keys()) if (kept.size > MAX_KEPT) kept.delete(oldest)
    },
    list: () => [...kept.values()].reverse(),
  }
}

/** What the contract says of the thing. Others would be the value itself, such as the tag of a union or the name of an entry. */
const TOLD = [
  'type',
  'limit',
  'allowedValue',
  'allowedValues',
  'format',
  'pattern',
  'missingProperty',
  'additionalProperty',
  'multipleOf',
]

/** The first of the errors. `root` is where the value stands in the answer. */
export function problemIn(errors: SchemaError[] | null | undefined, root = ''): Problem {
  const { instancePath = '', message = 'is not valid', params = {} } = errors?.[0] ?? {}
  const told = Object.entries(params).filter(([name]) => TOLD.includes(name))
  // The message names what is missing, and says the limits.
  const detail = told.filter(([, value]) => !message.includes(String(value)))
  return {
    pointer:
      root === HEADERS
        ? `${root}${instancePath}`
        : `${root}${instancePath.split('/').map(declaredName).join('/')}`,
    problem: [message, ...detail.map(([, value]) => JSON.stringify(value))].join(' '),
  }
}

export const HEADERS = '/headers'

function declaredName(step: string): string {
  return step === '' || declaredNames().has(step) ? step : '*'
}

let names: Set<string> | undefined

/** Of the properties in both files. Read when something is broken for the first time. */
function declaredNames(): Set<string> {
  if (names) return names
  names = new Set<string>()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, value] of Object.entries(node)) {
      if (key === 'properties' && typeof value === 'object')
        for (const name of Object.keys(value)) names?.add(name)
      visit(value)
    }
  }
  for (const file of ['openapi.json', 'asyncapi.json'])
    visit(JSON.parse(readFileSync(new URL(`../generated/${file}`, import.meta.url), 'utf8')))
  return names
}
