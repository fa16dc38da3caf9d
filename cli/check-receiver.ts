import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { readGeneratedContract } from '../scripts/model/contract.ts'
import {
  type CheckResult,
  countDeliveries,
  isConformant,
  isFollowed,
  type RuleResult,
  runRules,
} from '../scripts/receiver/check.ts'
import { listRules, type Rule } from '../scripts/receiver/rules.ts'
import { junitXml, type TestCase } from '../scripts/report/junit.ts'
import { newSecret } from '../webhooks/transport/secret.ts'
import { examples, type Output, parseHttpUrl, parseSigningSecret, type Shell } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Options {
  secret: string
  nextSecret?: string
  strict?: boolean
  junit?: string
}

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('check-receiver')
    .description(
      'Test a webhook receiver: send it valid, forged, unusual and hostile requests, and check its ' +
        'responses. The exit status is 1 if the receiver breaks a required rule. Use a test environment: ' +
        'the deliveries describe records that do not exist.',
    )
    .argument('<url>', "the receiver's URL", parseHttpUrl)
    .requiredOption(
      '--secret <secret>',
      'the signing secret that the receiver uses, or - to read it from standard input',
      parseSigningSecret,
    )
    .option(
      '--next-secret <secret>',
      'the second secret that the receiver accepts during a rotation, or - to read it from standard input',
      parseSigningSecret,
    )
    .option('--strict', 'also exit with 1 if the receiver ignores a recommendation')
    .option('--junit <file>', 'also write the results as JUnit XML')
    // With two secrets, the rule next-secret is among the rules.
    .addHelpText('after', () =>
      formatHelp(listRules(readGeneratedContract(ROOT), newSecret(), newSecret())),
    )
    .action(shell.action(checkReceiver))
}

function formatHelp(rules: Rule[]): string {
  const listTitles = (isRequired: boolean): string =>
    rules
      .filter((rule) => rule.isRequired === isRequired)
      .map(({ id, title }) => `  ${id.padEnd(19)}${title}`)
      .join('\n')
  return `
Required rules:
${listTitles(true)}

Recommendations:
${listTitles(false)}

The rule next-secret is tested with --next-secret. For each broken rule, the output says what to change.

The command cannot see how the receiver processes a delivery. It prints the number of deliveries
that the receiver must have processed. Compare it with the receiver's data: if the data has more
deliveries, the receiver processes repeats, or requests that it refused.
${examples(
  'muster check-receiver http://127.0.0.1:4000/ --secret whsec_…',
  'muster check-receiver http://127.0.0.1:4000/ --secret whsec_… --next-secret whsec_…',
  'printf %s "$SECRET" | muster check-receiver https://staging.example.com/ --secret -',
  'muster check-receiver http://127.0.0.1:4000/ --secret whsec_… --strict --junit receiver.xml',
)}`
}

async function checkReceiver(
  url: string,
  { secret, nextSecret, strict = false, junit }: Options,
): Promise<Output> {
  const rules = listRules(readGeneratedContract(ROOT), secret, nextSecret)
  const results = await runRules(
    url,
    strict ? rules.map((rule) => ({ ...rule, isRequired: true })) : rules,
  )
  const conformant = isConformant(results)
  if (junit !== undefined)
    await writeFile(junit, junitXml(`muster check-receiver ${url}`, results.flatMap(toTestCases)))
  return {
    document: {
      url,
      conformant,
      expected_deliveries: countDeliveries(results),
      rules: results.map(toDocument),
    },
    text: formatResults(url, results),
    failed: !conformant,
  }
}

function toDocument(result: RuleResult) {
  const { rule, checks } = result
  return {
    rule: rule.id,
    title: rule.title,
    required: rule.isRequired,
    passed: checks.some(({ passed }) => passed === null) ? null : isFollowed(result),
    checks: checks.map(({ durationMs, deliveryId: _, ...check }) => ({
      ...check,
      duration_ms: durationMs,
    })),
  }
}

/** A recommendation that the receiver ignores is a skipped case: it does not fail a pipeline. */
function toTestCases({ rule, checks }: RuleResult): TestCase[] {
  const details = `${rule.title}. ${rule.advice}`
  return checks.map((result) => {
    const message = formatCheck(result)
    const hasFailed = result.passed === false && rule.isRequired
    return {
      classname: rule.id,
      name: result.check,
      seconds: result.durationMs / 1000,
      failures: hasFailed ? [{ message, details }] : [],
      skipped: explainSkip(rule, result),
    }
  })
}

function explainSkip({ isRequired, advice }: Rule, result: CheckResult): string | undefined {
  if (result.passed === null) return 'The receiver did not respond to an earlier request.'
  if (result.passed || isRequired) return undefined
  return `Recommendation: ${formatCheck(result)}. ${advice}`
}

function formatCheck({ expected, status, error, durationMs }: CheckResult): string {
  return `expected ${expected}, ${error ?? `got ${status} after ${durationMs} ms`}`
}

function formatResults(url: string, results: RuleResult[]): string {
  const lines = [`POST ${url}`, '', ...results.map(formatRule), '', formatVerdict(results)]
  if (isConformant(results))
    lines.push(
      `Check the receiver's data: it must have processed ${countDeliveries(results)} deliveries, each once.`,
    )
  return lines.join('\n')
}

function formatVerdict(results: RuleResult[]): string {
  if (isUnresponsive(results)) return 'The receiver is not conformant: it does not respond.'
  const failed = results.filter((result) => !isFollowed(result))
  const brokenCount = failed.filter(({ rule }) => rule.isRequired).length
  if (brokenCount > 0)
    return `The receiver is not conformant: it breaks ${brokenCount} of ${results.length} rules.`
  const ignored = failed.length === 1 ? '1 recommendation' : `${failed.length} recommendations`
  return `The receiver is conformant${failed.length === 0 ? '' : `, but ignores ${ignored}`}.`
}

function isUnresponsive(results: RuleResult[]): boolean {
  return results.some(({ checks }) => checks.some(({ passed }) => passed === null))
}

/** One line for a rule that passed or was not tested. For a broken one also the failed requests and
 *  the advice. */
function formatRule({ rule, checks }: RuleResult): string {
  if (checks.every(({ passed }) => passed === null)) return `-     ${rule.title}: not tested`
  const slowestMs = Math.max(...checks.map(({ durationMs }) => durationMs))
  const requests = checks.length === 1 ? '1 request' : `${checks.length} requests, the slowest`
  if (checks.every(({ passed }) => passed))
    return `ok    ${rule.title} (${requests} ${slowestMs} ms)`
  const failed = checks.filter(({ passed }) => passed === false)
  const nameWidth = Math.max(...failed.map(({ check }) => check.length))
  return [
    `${rule.isRequired ? 'FAIL' : 'warn'}  ${rule.title}`,
    ...failed.map((result) => `        ${result.check.padEnd(nameWidth)}  ${formatCheck(result)}`),
    `      → ${rule.advice}`,
  ].join('\n')
}
