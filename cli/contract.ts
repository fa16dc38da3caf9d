import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { type Command, InvalidArgumentError } from 'commander'
import { type OperationId, operations } from '../generated/operations.ts'
import { isMissing, newCoverage } from '../scripts/contract/coverage.ts'
import type { DreddResult } from '../scripts/contract/dredd-suite.ts'
import { ORACLES } from '../scripts/contract/oracles.ts'
import type { Servers } from '../scripts/contract/provoke-status.ts'
import { startContractReceiver, type TestedWebhook } from '../scripts/contract/receiver.ts'
import {
  contractJunit,
  contractPage,
  isFailed,
  listStatuses,
  type Report,
} from '../scripts/contract/report.ts'
import { listResults } from '../scripts/contract/results.ts'
import { type Case, runSuite } from '../scripts/contract/suite.ts'
import type { Target } from '../scripts/contract/test-run.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { readContract } from '../scripts/model/yaml.ts'
import { toContractCurl } from './contract-curl.ts'
import type { ProveOptions } from './contract-prove.ts'
import { parseSigningSecret } from './listen.ts'
import { addReportOptions, type Checked, type ReportOptions, reportResults } from './reports.ts'
import {
  examples,
  formatTable,
  type Output,
  parseHttpUrl,
  parseList,
  parsePort,
  readSecret,
  type Shell,
  UsageError,
} from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const IDS = Object.keys(operations) as OperationId[]
const DEFAULT_RUNS = 20
const MAX_SEED = 2 ** 31 - 1

interface Options extends ReportOptions {
  url?: string
  key?: string
  restrictedKey?: string
  otherKey?: string
  webhookSecret?: string
  receiverPort?: number
  seed?: number
  runs: number
  only?: OperationId[]
  prove?: ProveOptions['prove']
}

const EXAMPLES = examples(
  'muster contract',
  'muster contract --only createTask,getTask --seed 42',
  'muster contract --prove',
  'muster contract --url https://api.example.com --key - --junit contract.xml --report contract.html',
)

export function addContract(program: Command, shell: Shell): void {
  addReportOptions(program.command('contract'))
    .description(
      'Test a service against openapi.yaml: send valid and invalid requests to each operation, with ' +
        'boundary and random values, and check every response. Without --url, the command starts the ' +
        'service of this installation on a temporary database. For a deployed service use a dedicated ' +
        'account with no other traffic.',
    )
    .option('--url <url>', 'the URL of a deployed service', (argument) =>
      parseHttpUrl(argument).replace(/\/+$/, ''),
    )
    .option(
      '--key <key>',
      'a Full Access key of a user with every permission, or - to read it from standard input',
    )
    .option(
      '--restricted-key <key>',
      'a Read Only key of another user in the same account, who must not have the Finance permission, ' +
        'or - to read it from standard input',
    )
    .option(
      '--other-key <key>',
      'a Full Access key of a user of another account, or - to read it from standard input',
    )
    .option(
      '--webhook-secret <secret>',
      'the signing secret of a webhook of the account with all events, or - to read it from standard ' +
        'input; its URL must lead to --receiver-port of this machine',
      parseSigningSecret,
    )
    .option('--receiver-port <port>', 'the port for the deliveries of that webhook', parsePort)
    .option(
      '--seed <n>',
      'repeat the random data of an earlier run (default: random)',
      integerFrom(0, MAX_SEED),
    )
    .option(
      '--runs <n>',
      'random requests per operation: this many valid and this many invalid',
      integerFrom(1, 10_000),
      DEFAULT_RUNS,
    )
    .option('--only <ids>', 'test these operations only, separated by commas', parseList(...IDS))
    .option(
      '--prove [part]',
      'measure these tests: break the responses of this installation in many ways, one at a time, and ' +
        'print how many they find; with a part, only faults that have it in their name',
    )
    .addHelpText(
      'after',
      `${EXAMPLES}
Each operation is tested for:
${ORACLES.map(({ promise }) => `  - ${promise}`).join('\n')}

Exit status: 0 if the contract holds, 1 if a check failed or a documented status or event never occurred, 2 for wrong
usage.
With --prove: 0 if at least 95 % of all faults are found, and every fault in the isolation of accounts and in signatures.
`,
    )
    .action(
      shell.action(
        (options: Options): Promise<Output> =>
          reportResults('muster contract', options, () => run(options)),
      ),
    )
}

async function run(options: Options): Promise<Checked> {
  if (options.prove !== undefined) return await proveOwnService(options)
  const report = await buildReport(options)
  return {
    output: {
      document: toDocument(report),
      text: formatReport(report),
      failed: isFailed(report),
    },
    results: listResults(await readContract(ROOT), report),
    junit: contractJunit(report),
    page: contractPage(report),
  }
}

async function proveOwnService({ prove = true, url, seed }: Options): Promise<Checked> {
  if (url !== undefined)
    throw new UsageError("option '--prove' tests this installation, without option '--url <url>'")
  const { proveContract } = await import('./contract-prove.ts')
  return await proveContract(await readContract(ROOT), { prove, seed })
}

function integerFrom(min: number, max: number): (argument: string) => number {
  return (argument) => {
    const number = Number(argument)
    if (!/^\d+$/.test(argument) || number < min || number > max)
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
    return number
  }
}

async function buildReport(options: Options): Promise<Report> {
  const contract = await readContract(ROOT)
  const target = readTarget(options)
  const { receiverPort } = options
  await using receiver =
    receiverPort === undefined ? undefined : await startContractReceiver(receiverPort)
  if (target !== undefined) return await test(contract, { ...target, receiver }, options)
  const { startDreddServers, startOwnService } = await import('./contract-service.ts')
  const dredd = await runDredd(contract, options, startDreddServers)
  await using service = await startOwnService()
  return await test(contract, service, options, dredd)
}

/** Dredd tests this installation only: some statuses need a database that the test can damage. */
async function runDredd(
  contract: Contract,
  { only = IDS }: Options,
  startServers: () => Promise<Servers & AsyncDisposable>,
) {
  // Dredd's old dependencies trigger Node.js warnings.
  process.removeAllListeners('warning')
  const { runDreddSuite } = await import('../scripts/contract/dredd-suite.ts')
  await using servers = await startServers()
  return await runDreddSuite(contract, servers, only)
}

function readTarget(options: Options): Target | undefined {
  const { url, key, restrictedKey, otherKey, webhookSecret, receiverPort } = options
  if ((url === undefined) !== (key === undefined))
    throw new UsageError("option '--url <url>' and option '--key <key>' must be used together")
  if ((webhookSecret === undefined) !== (receiverPort === undefined))
    throw new UsageError(
      "option '--webhook-secret <secret>' and option '--receiver-port <port>' must be used together",
    )
  if (url === undefined || key === undefined) {
    for (const option of ['restrictedKey', 'otherKey', 'webhookSecret'] as const)
      if (options[option] !== undefined)
        throw new UsageError(`option '--${toKebabCase(option)}' needs option '--url <url>'`)
    return undefined
  }
  if ([key, restrictedKey, otherKey].filter((value) => value === '-').length > 1)
    throw new UsageError('only one of the keys can be read from standard input')
  const read = (value: string | undefined) => (value === undefined ? undefined : readSecret(value))
  return {
    url,
    key: readSecret(key),
    restrictedKey: read(restrictedKey),
    otherKey: read(otherKey),
    createWebhook:
      webhookSecret === undefined ? undefined : async () => openExistingWebhook(webhookSecret),
  }
}

/** The webhook of --webhook-secret. The tests did not create it, so they do not delete it. */
function openExistingWebhook(secret: string): TestedWebhook {
  return { secret, async [Symbol.asyncDispose]() {} }
}

function toKebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

async function test(
  contract: Contract,
  target: Target,
  options: Options,
  dredd: DreddResult | null = null,
): Promise<Report> {
  const { seed = randomInt(MAX_SEED), runs, only = IDS } = options
  const coverage = newCoverage(contract, only, {
    hasRestrictedKey: target.restrictedKey !== undefined,
  })
  for (const { operation, status } of dredd?.passed ?? []) coverage.sawStatus(operation, status)
  const cases: Case[] = []
  await runSuite({
    contract,
    target,
    options: { ids: only, seed, randomRequests: runs },
    coverage,
    onCase: (done) => {
      cases.push(done)
      return false
    },
    toCurl: (request) => toContractCurl(target.url, request, target.key),
  })
  const refusals = coverage.refusals.list()
  return { url: target.url, seed, dredd, cases, cells: coverage.cells(), refusals }
}

function toDocument({ cases, ...report }: Report): object {
  return {
    ...report,
    cases: cases.map(({ durationMs, ...rest }) => ({ ...rest, duration_ms: durationMs })),
  }
}

function formatReport(report: Report): string {
  const { url, seed, dredd, cases, cells } = report
  const dreddFailures = (dredd?.failures ?? []).map((failure) => `FAIL  ${failure}\n`)
  const failures = cases.flatMap(({ operation, name, failures }) =>
    failures.map(
      ({ check, what, message, curl }) =>
        `FAIL  ${operation} ${name} (${check})\n      ${what}: ${message}\n      ${curl}\n`,
    ),
  )
  const missing = cells
    .filter(isMissing)
    .map(
      ({ operation, kind, name }) =>
        `FAIL  ${operation}: the ${kind} ${name} is documented, but never occurred`,
    )
  const waivedReasons = new Map(
    cells
      .filter(({ seen, reason }) => seen === 0 && reason !== null)
      .map(({ name, reason }) => [name, reason]),
  )
  const requests = cases.reduce((sum, { requests }) => sum + requests, 0)
  const failureCount = dreddFailures.length + failures.length + missing.length
  const verdict = failureCount === 0 ? 'the contract holds.' : `${failureCount} failures.`
  return [
    formatMatrix(report),
    '',
    ...[...waivedReasons].map(
      ([name, reason]) => `"-" under ${name}: not required, because it ${reason}.`,
    ),
    '',
    ...dreddFailures,
    ...failures,
    ...missing,
    ...report.refusals.map(
      ({ operation, field, message, count }) =>
        `Note  ${operation}: a rule that the schema does not express refused ${field} ${count} times: ${message}`,
    ),
    ...(dredd ? [`Dredd: ${dredd.passed.length} documented responses verified.`] : []),
    `${requests} requests to ${url} with --seed ${seed}: ${verdict}`,
  ].join('\n')
}

/** A row for each operation: how often each documented status and event occurred. */
function formatMatrix({ cells }: Report): string {
  const columns = listStatuses(cells)
  const ids = [...new Set(cells.map(({ operation }) => operation))]
  const rows = ids.map((id) => {
    const own = cells.filter(({ operation }) => operation === id)
    const statuses = columns.map((name) => {
      const cell = own.find((candidate) => candidate.kind === 'status' && candidate.name === name)
      if (cell === undefined) return ''
      return cell.seen === 0 && cell.reason !== null ? '-' : String(cell.seen)
    })
    const events = own
      .filter(({ kind }) => kind === 'event')
      .map(({ name, seen }) => `${name} ${seen}`)
    return [id, ...statuses, events.join(', ')]
  })
  return formatTable(['OPERATION', ...columns, 'EVENTS'], rows)
}
