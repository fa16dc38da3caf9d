import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { request as httpRequest } from 'undici'
import { junitXml, type TestCase } from '../scripts/diff/junit.ts'
import { parseSigningSecret } from './listen.ts'
import {
  type ExpectedStatus,
  listRules,
  RESPONSE_TIMEOUT_MS,
  type ReceiverCheck,
  type Rule,
} from './receiver-rules.ts'
import { examples, type Output, parseHttpUrl, type Shell } from './shell.ts'

interface Options {
  secret: string
  junit?: string
}

interface CheckResult {
  check: string
  expected: ExpectedStatus
  /** Null: no response. */
  status: number | null
  durationMs: number
  error: string | null
  /** Null: not sent, because the receiver did not respond to an earlier request. */
  passed: boolean | null
}

interface RuleResult {
  rule: Rule
  results: CheckResult[]
}

export function addCheckReceiver(program: Command, shell: Shell): void {
  program
    .command('check-receiver')
    .description(
      'Test a webhook receiver: post genuine and forged deliveries and check its responses. It ' +
        'must respond 2xx within 15 seconds to every correctly signed delivery, and 403 to all ' +
        'others. Exits with 1 if it breaks a rule. The deliveries describe records that do not exist.',
    )
    .argument('<url>', "the receiver's URL", parseHttpUrl)
    .requiredOption(
      '--secret <secret>',
      'the signing secret that the receiver uses, or - to read it from standard input',
      parseSigningSecret,
    )
    .option('--junit <file>', 'also write the results as JUnit XML')
    .addHelpText(
      'after',
      `${examples(
        'muster check-receiver http://127.0.0.1:4000/ --secret whsec_…',
        'printf %s "$SECRET" | muster check-receiver https://staging.example.com/ --secret -',
        'muster check-receiver http://127.0.0.1:4000/ --secret whsec_… --junit receiver.xml',
      )}
This cannot check two rules from outside: a receiver must not process a request to which it
responds 403, and must process each delivery only once.
`,
    )
    .action(
      shell.action(async (url: string, { secret, junit }: Options): Promise<Output> => {
        const results = await runRules(url, listRules(secret))
        const conformant = results.every(isFollowed)
        if (junit !== undefined)
          await writeFile(
            junit,
            junitXml(`muster check-receiver ${url}`, results.flatMap(toTestCases)),
          )
        return {
          document: { url, conformant, rules: results.map(toDocument) },
          text: formatResults(url, results),
          failed: !conformant,
        }
      }),
    )
}

/** Sends the requests one after another, because some repeat an earlier one.
 *  Stops when the receiver does not respond. */
async function runRules(url: string, rules: Rule[]): Promise<RuleResult[]> {
  const finished: RuleResult[] = []
  let isUnresponsive = false
  for (const rule of rules) {
    const results: CheckResult[] = []
    for (const check of rule.checks) {
      const result: CheckResult = isUnresponsive
        ? skipCheck(rule, check)
        : await runCheck(url, rule, check)
      isUnresponsive ||= result.status === null
      results.push(result)
    }
    finished.push({ rule, results })
  }
  return finished
}

function skipCheck({ expected }: Rule, { name }: ReceiverCheck): CheckResult {
  return { check: name, expected, status: null, durationMs: 0, error: 'not sent', passed: null }
}

async function runCheck(
  url: string,
  { expected }: Rule,
  { name, request }: ReceiverCheck,
): Promise<CheckResult> {
  const { headers, body } = request()
  const startedAt = performance.now()
  const toResult = (status: number | null, error: string | null, passed: boolean): CheckResult => ({
    check: name,
    expected,
    status,
    durationMs: Math.round(performance.now() - startedAt),
    error,
    passed,
  })
  try {
    const response = await httpRequest(url, {
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    })
    await response.body.dump()
    const status = response.statusCode
    const is2xx = status >= 200 && status < 300
    return toResult(status, null, expected === '2xx' ? is2xx : status === 403)
  } catch (error) {
    return toResult(null, formatError(error), false)
  }
}

function formatError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no response within ${RESPONSE_TIMEOUT_MS / 1000} s`
  return error.message || String((error as NodeJS.ErrnoException).code)
}

function isFollowed({ results }: RuleResult): boolean {
  return results.every(({ passed }) => passed)
}

function toDocument(result: RuleResult) {
  const { rule, results } = result
  return {
    rule: rule.id,
    title: rule.title,
    passed: results.some(({ passed }) => passed === null) ? null : isFollowed(result),
    checks: results.map(({ durationMs, ...check }) => ({ ...check, duration_ms: durationMs })),
  }
}

function toTestCases({ rule, results }: RuleResult): TestCase[] {
  const details = `${rule.title}. ${rule.advice}`
  return results.map((result) => ({
    classname: rule.id,
    name: result.check,
    seconds: result.durationMs / 1000,
    failures: result.passed === false ? [{ message: formatCheck(result), details }] : [],
    skipped:
      result.passed === null ? 'The receiver did not respond to an earlier request.' : undefined,
  }))
}

function formatCheck({ expected, status, error, durationMs }: CheckResult): string {
  return `expected ${expected}, ${error ?? `got ${status} after ${durationMs} ms`}`
}

function formatResults(url: string, results: RuleResult[]): string {
  const brokenCount = results.filter((result) => !isFollowed(result)).length
  const isUnresponsive = results.some(({ results: checks }) =>
    checks.some(({ passed }) => passed === null),
  )
  const reason = isUnresponsive
    ? 'it does not respond'
    : `it breaks ${brokenCount} of ${results.length} rules`
  const verdict =
    brokenCount === 0 ? 'The receiver is conformant.' : `The receiver is not conformant: ${reason}.`
  return [`POST ${url}`, '', ...results.map(formatRule), '', verdict].join('\n')
}

/** One line for a rule that passed; for a broken one also the failed requests and the advice. */
function formatRule({ rule, results }: RuleResult): string {
  if (results.every(({ passed }) => passed === null)) return `-     ${rule.title}: not tested`
  const slowestMs = Math.max(...results.map(({ durationMs }) => durationMs))
  const requests = results.length === 1 ? '1 request' : `${results.length} requests, the slowest`
  if (results.every(({ passed }) => passed))
    return `ok    ${rule.title} (${requests} ${slowestMs} ms)`
  const failed = results.filter(({ passed }) => passed === false)
  const nameWidth = Math.max(...failed.map(({ check }) => check.length))
  return [
    `FAIL  ${rule.title}`,
    ...failed.map((result) => `        ${result.check.padEnd(nameWidth)}  ${formatCheck(result)}`),
    `      → ${rule.advice}`,
  ].join('\n')
}
