/** Checks responses against the contract. The setting VALIDATE_RESPONSES is the mode. */
import type { Logger } from 'pino'
import type { OperationId } from '../generated/operations.ts'
import { responses } from '../generated/validators.js'
import { HEADERS, type Problem, problemIn, type Violation } from './violations.ts'

interface ResponseCheckOptions {
  /** `off`: no checks. `log`: checks a sample of the responses and logs violations. `enforce`:
   *  checks every response and throws on a violation. */
  mode: 'off' | 'log' | 'enforce'
  log: Logger
  onViolation?: (violation: Violation) => void
}

/** The parts of a response that are to be checked. */
interface ResponseParts {
  status: number
  headers?: unknown
  body?: unknown
}

/** The checks of one operation and part (headers or body) within one second. */
interface Tally {
  /** Seconds since 1970. */
  second: number
  checks: number
  /** The time that they took. */
  spentMs: number
}

/** Throws `ContractViolation` in mode `enforce`. */
export type ResponseChecker = (id: OperationId, response: ResponseParts, requestId?: string) => void

/** A response breaks the contract: a fault of the service. */
class ContractViolation extends Error {
  override name = 'ContractViolation'
}

/** Limits of mode `log`, for each second, operation and part (headers or body). After one of them
 *  is reached, the mode checks no more in that second: to check a page of a list takes as long as
 *  to read it from the database. */
const CHECKS_PER_SECOND = 10
const MAX_MS_PER_SECOND = 5

export function newResponseChecker({
  mode,
  log,
  onViolation,
}: ResponseCheckOptions): ResponseChecker {
  const tallies = new Map<string, Tally>()

  /** The checks of the current second. */
  function currentTally(key: string): Tally {
    const second = Math.floor(Date.now() / 1000)
    let tally = tallies.get(key)
    if (tally?.second !== second) tally = { second, checks: 0, spentMs: 0 }
    tallies.set(key, tally)
    return tally
  }

  /** Checks the response unless a limit of this second is reached. */
  function findProblemWithinLimits(id: OperationId, response: ResponseParts): Problem | undefined {
    const tally = currentTally(`${id} ${'body' in response ? 'body' : 'headers'}`)
    if (tally.checks >= CHECKS_PER_SECOND || tally.spentMs >= MAX_MS_PER_SECOND) return undefined
    const startedAt = performance.now()
    const problem = findProblem(id, response)
    tally.checks++
    tally.spentMs += performance.now() - startedAt
    return problem
  }

  return (id, response, requestId) => {
    if (mode === 'off') return
    const found = mode === 'log' ? findProblemWithinLimits(id, response) : findProblem(id, response)
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
