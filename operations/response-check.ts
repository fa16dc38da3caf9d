/** Checks responses against the contract. VALIDATE_RESPONSES decides what follows from a violation. */
import type { Logger } from 'pino'
import type { OperationId } from '../generated/operations.ts'
import { responses } from '../generated/validators.js'
import { HEADERS, type Problem, problemIn, type Violation } from './violations.ts'

export interface ResponseCheckOptions {
  /** `off`: no checks. `log`: checks a sample of the responses and logs violations. `enforce`: checks every
   *  response and throws on a violation. */
  mode: 'off' | 'log' | 'enforce'
  log: Logger
  onViolation?: (violation: Violation) => void
}

/** The parts of a response that are to be checked. */
export interface ResponseParts {
  status: number
  headers?: unknown
  body?: unknown
}

/** Throws `ContractViolation` in mode `enforce`. */
export type ResponseChecker = (id: OperationId, response: ResponseParts, requestId?: string) => void

/** A response breaks the contract: a fault of the service. */
class ContractViolation extends Error {
  override name = 'ContractViolation'
}

/** In mode `log`: for each operation and part (headers or body). The check of a page of 25 records costs as
 *  much as fetching it. */
const SAMPLES_PER_SECOND = 10

export function newResponseChecker({
  mode,
  log,
  onViolation,
}: ResponseCheckOptions): ResponseChecker {
  const samples = new Map<string, { second: number; count: number }>()

  function takeSample(key: string): boolean {
    const second = Math.floor(Date.now() / 1000)
    const current = samples.get(key)
    const count = current?.second === second ? current.count + 1 : 1
    samples.set(key, { second, count })
    return count <= SAMPLES_PER_SECOND
  }

  return (id, response, requestId) => {
    if (mode === 'off') return
    const part = 'body' in response ? 'body' : 'headers'
    if (mode === 'log' && !takeSample(`${id} ${part}`)) return
    const found = findProblem(id, response)
    if (found === undefined) return
    const { status } = response
    const { pointer, problem } = found
    onViolation?.({ operation: id, status, ...found })
    if (mode === 'enforce') throw new ContractViolation(`${id} ${status}: ${pointer} ${problem}`)
    log.error(
      { operationId: id, status, pointer, problem, requestId },
      'A response breaks the contract',
    )
  }
}

function findProblem(
  id: OperationId,
  { status, headers, body }: ResponseParts,
): Problem | undefined {
  const expected = responses[id][status]
  if (expected === undefined)
    return { pointer: '', problem: `status ${status} is not in the contract` }
  if (headers && expected.headers && !expected.headers(headers))
    return problemIn(expected.headers.errors, HEADERS)
  const validator = expected.body?.['application/json']
  if (body !== undefined && validator && !validator(body)) return problemIn(validator.errors)
  return undefined
}
