/** The contract violations of this process, for the operator of the service: where and how the
 *  contract was broken, never by which value. */
import { readFileSync } from 'node:fs'
import type { DeliveredType } from '../generated/asyncapi.ts'
import type { OperationId } from '../generated/operations.ts'

/** An error of Ajv. */
interface SchemaError {
  instancePath: string
  message?: string
  params: object
}

export interface Problem {
  /** A JSON Pointer, with `*` for an entry of a list or map. Headers are below `/headers`. */
  pointer: string
  /** For example `must be string`. */
  problem: string
}

/** A violation by a response of an operation, or by an event, which has no status. */
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

interface Violations {
  record(violation: Violation, now: Date): void
  /** Most recent first. */
  list(): SeenViolation[]
}

/** When there are more, the least recent one is dropped. */
const MAX_VIOLATIONS = 100

export function newViolations(): Violations {
  /** From the least to the most recent. */
  const seen = new Map<string, SeenViolation>()
  return {
    record(violation, now) {
      const fields = { operation: null, event: null, status: null, ...violation }
      const { operation, event, status, pointer, problem } = fields
      const key = JSON.stringify([operation, event, status, pointer, problem])
      const before = seen.get(key)
      const at = now.toISOString()
      seen.delete(key)
      seen.set(key, {
        ...fields,
        count: (before?.count ?? 0) + 1,
        first_seen_at: before?.first_seen_at ?? at,
        last_seen_at: at,
      })
      const [oldest] = seen.keys()
      if (oldest !== undefined && seen.size > MAX_VIOLATIONS) seen.delete(oldest)
    },
    list: () => [...seen.values()].reverse(),
  }
}

/** The parameters of a schema error that come from the contract or name a property. Others may
 *  contain the invalid value, for example the tag of a union. */
const VALUE_FREE_PARAMETERS = [
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

export const HEADERS = '/headers'

/** Describes the first error, without the value. `root` is the pointer to the validated part of a
 *  response. */
export function problemIn(errors: SchemaError[] | null | undefined, root = ''): Problem {
  const { instancePath = '', message = 'is not valid', params = {} } = errors?.[0] ?? {}
  const details = Object.entries(params)
    .filter(([name]) => VALUE_FREE_PARAMETERS.includes(name))
    // The message often names the property or the limit already.
    .filter(([, value]) => !message.includes(String(value)))
    .map(([, value]) => JSON.stringify(value))
  const path = root === HEADERS ? instancePath : instancePath.split('/').map(declaredName).join('/')
  return { pointer: `${root}${path}`, problem: [message, ...details].join(' ') }
}

/** A name that is not declared in the contract may be a client's data. */
function declaredName(step: string): string {
  return step === '' || DECLARED_NAMES.has(step) ? step : '*'
}

const DECLARED_NAMES = readDeclaredNames()

/** The names of all properties in both contracts. */
function readDeclaredNames(): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, value] of Object.entries(node)) {
      if (key === 'properties' && typeof value === 'object')
        for (const name of Object.keys(value)) names.add(name)
      visit(value)
    }
  }
  for (const file of ['openapi.json', 'asyncapi.json'])
    visit(JSON.parse(readFileSync(new URL(`../generated/${file}`, import.meta.url), 'utf8')))
  return names
}
