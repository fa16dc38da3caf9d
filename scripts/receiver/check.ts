/** Checks a webhook receiver: sends the requests of the rules, and judges the responses. */
import { deliveryId } from './deliveries.ts'
import { type ExpectedStatus, RESPONSE_TIMEOUT_MS, type ReceiverCheck, type Rule } from './rules.ts'

export interface CheckResult {
  check: string
  expected: ExpectedStatus
  /** Null: no response. */
  status: number | null
  durationMs: number
  error: string | null
  /** Null: not sent, because the receiver did not respond to an earlier request. */
  passed: boolean | null
  /** The delivery that the receiver must process. Null: it must refuse the request, or the request
   *  was not sent. */
  deliveryId: string | null
}

export interface RuleResult {
  rule: Rule
  checks: CheckResult[]
}

/** Sends the requests one after another, because some repeat an earlier one. After a request
 *  without a response, sends no more: the remaining checks get the error "not sent". */
export async function runRules(url: string, rules: Rule[]): Promise<RuleResult[]> {
  const finished: RuleResult[] = []
  let isResponding = true
  for (const rule of rules) {
    const checks: CheckResult[] = []
    for (const check of rule.checks) {
      const result = isResponding ? await runCheck(url, check) : skipCheck(check)
      // A closed connection passes where `tolerateClose` (requests.ts) permits it.
      if (result.status === null && !result.passed) isResponding = false
      checks.push(result)
    }
    finished.push({ rule, checks })
  }
  return finished
}

function skipCheck({ name, expected }: ReceiverCheck): CheckResult {
  return {
    check: name,
    expected,
    status: null,
    durationMs: 0,
    error: 'not sent',
    passed: null,
    deliveryId: null,
  }
}

async function runCheck(
  url: string,
  { name, expected, request, send }: ReceiverCheck,
): Promise<CheckResult> {
  const delivery = request()
  const startedAt = performance.now()
  const outcome = await send(url, delivery, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)).then(
    (status) => ({
      status,
      error: status === null ? 'the receiver closed the connection' : null,
      passed: isExpected(expected, status),
    }),
    (error: unknown) => ({ status: null, error: formatError(error), passed: false }),
  )
  return {
    check: name,
    expected,
    ...outcome,
    durationMs: Math.round(performance.now() - startedAt),
    deliveryId: expected === '2xx' ? deliveryId(delivery) : null,
  }
}

function isExpected(expected: ExpectedStatus, status: number | null): boolean {
  if (expected === '413') return status === null || (status >= 400 && status < 500)
  if (expected === '403') return status === 403
  return status !== null && status >= 200 && status < 300
}

function formatError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no response within ${RESPONSE_TIMEOUT_MS / 1000} s`
  return error.message || String((error as NodeJS.ErrnoException).code)
}

/** False also for a rule that was not tested. */
export function isFollowed({ checks }: RuleResult): boolean {
  return checks.every(({ passed }) => passed)
}

export function isConformant(results: RuleResult[]): boolean {
  return results.every((result) => isFollowed(result) || !result.rule.isRequired)
}

/** How many deliveries the receiver must have processed. Repeats count once. */
export function countDeliveries(results: RuleResult[]): number {
  const ids = results.flatMap(({ checks }) => checks.map((check) => check.deliveryId))
  return new Set(ids.filter((id) => id !== null)).size
}
