import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type Command, Option } from 'commander'
import { operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import { listChangedOperations } from '../scripts/contract/changed.ts'
import { Coverage, isMissing } from '../scripts/contract/coverage/coverage.ts'
import { DREDD } from '../scripts/contract/coverage/testers.ts'
import { assertReachable, startContractReceiver } from '../scripts/contract/deliveries/receiver.ts'
import type { DreddResult } from '../scripts/contract/dredd/dredd-suite.ts'
import { listUnused, ORACLES } from '../scripts/contract/oracles.ts'
import { listCauses } from '../scripts/contract/report/causes.ts'
import { toHar } from '../scripts/contract/report/har.ts'
import { matrixSection } from '../scripts/contract/report/matrix.ts'
import { isFailed, type Report } from '../scripts/contract/report/report.ts'
import { listResults, listTestCases } from '../scripts/contract/report/results.ts'
import type { Target } from '../scripts/contract/run.ts'
import { assertResponds } from '../scripts/contract/sender.ts'
import { runSuite } from '../scripts/contract/suite.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { assertGenerated } from '../scripts/model/source-hashes.ts'
import { readContract } from '../scripts/model/yaml.ts'
import { junitXml } from '../scripts/report/junit.ts'
import { quoteForShell } from '../web/shared/shell.ts'
import { toContractCurl } from './contract-curl.ts'
import { formatReport, toDocument } from './contract-output.ts'
import { newProgressLine, type ProgressLine } from './progress-line.ts'
import { addReportOptions, type CheckReport, type ReportOptions, reportResults } from './reports.ts'
import {
  examples,
  type Output,
  parseHttpUrl,
  parseInteger,
  parseList,
  parsePort,
  readSecret,
  type Shell,
  UsageError,
} from './shell.ts'
import { ALLOW_STALE_OPTION, describeAllowStale } from './stale.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OPERATION_IDS = Object.keys(operations)
const DEFAULT_RUNS = 20
const MAX_SEED = 2 ** 31 - 1
/** For runs of some operations, which end sooner than the time-out of the contract. */
const SHORT_WEBHOOK_TIMEOUT_MS = 6_000

interface Options extends ReportOptions {
  url?: string
  key?: string
  restrictedKey?: string
  financeNoneKey?: string
  financeReadKey?: string
  otherKey?: string
  receiverPort?: number
  receiverUrl?: string
  seed?: number
  runs: number
  minutes?: number
  only?: string[]
  changed?: string
  matrix?: boolean
  allowStale?: boolean
}

const EXAMPLES = examples(
  'muster contract',
  'muster contract --only createTask,getTask --seed 42',
  'muster contract --changed main',
  'muster contract --url https://api.example.com --key - --junit contract.xml --report contract.html',
)

export function addCommand(program: Command, shell: Shell): void {
  const command = program
    .command('contract')
    .description(
      'Test a service against openapi.yaml: send valid and invalid requests to each operation, with ' +
        'boundary and random values, and check every response. Without --url, the command starts the ' +
        'service of this copy of Muster on a temporary database. For a deployed service, use a separate ' +
        'account without other traffic.',
    )
  addTargetOptions(command)
  addRunOptions(command)
  addReportOptions(command)
    .addHelpText(
      'after',
      `${EXAMPLES}
Each operation is tested for:
${ORACLES.map(({ promise }) => `  - ${promise}`).join('\n')}

Exit status: 0 if the contract holds, 1 if a check failed or a documented status or event never occurred, 2 for
wrong usage.
`,
    )
    .action(
      shell.action(
        (options: Options): Promise<Output> =>
          reportResults('muster contract', options, () => run(options)),
      ),
    )
}

const KEY_OPTIONS = {
  '--key <key>': 'a Full Access key of a user with every permission',
  '--restricted-key <key>':
    'a Read Only key of another user in the same account, who must not have the Finance permission',
  '--finance-none-key <key>': 'a Full Access key of the user of --restricted-key',
  '--finance-read-key <key>':
    'a Full Access key of a third user of the account, whose Finance permission is Read',
  '--other-key <key>': 'a Full Access key of a user of another account',
}

/** The options that describe a deployed service. */
function addTargetOptions(command: Command): void {
  command.option('--url <url>', 'the URL of a deployed service', (argument) =>
    parseHttpUrl(argument).replace(/\/+$/, ''),
  )
  for (const [flags, description] of Object.entries(KEY_OPTIONS))
    command.option(flags, `${description}, or - to read it from standard input`)
  command
    .option('--receiver-port <port>', 'the loopback port that receives deliveries', parsePort)
    .option(
      '--receiver-url <url>',
      'a public URL that leads to --receiver-port of this machine, for example through a tunnel; the ' +
        'tests create webhooks with it, after a request has made sure that it leads to the port',
      parseHttpUrl,
    )
}

function addRunOptions(command: Command): void {
  command
    .option(
      '--seed <n>',
      'repeat the random data of an earlier run (default: random)',
      parseInteger(0, MAX_SEED),
    )
    .option(
      '--runs <n>',
      'random requests per operation: this many valid and this many invalid',
      parseInteger(1, 10_000),
      DEFAULT_RUNS,
    )
    .option(
      '--minutes <n>',
      'run longer random sequences of creates, updates and deletes for this time',
      parseInteger(1, 1440),
    )
    .option(
      '--only <ids>',
      'test these operations only, separated by commas',
      parseList(...OPERATION_IDS),
    )
    .addOption(
      new Option(
        '--changed <revision>',
        'test the operations whose contract or code changed since this git revision, also without a commit',
      ).conflicts('only'),
    )
    .option('--matrix', 'also print how often each documented status and event occurred')
    .option('--har <file>', 'also write the requests of all failures as an HTTP Archive')
    .option(ALLOW_STALE_OPTION, describeAllowStale('run the tests'))
}

async function run(options: Options): Promise<CheckReport> {
  const contract = await readContract(ROOT)
  if (!options.allowStale) await assertGenerated(ROOT)
  const ids =
    options.changed === undefined
      ? (options.only ?? OPERATION_IDS)
      : await listChangedOperations(ROOT, contract, options.changed)
  const report = await buildReport(contract, options, ids)
  return {
    output: {
      document: toDocument(report),
      text:
        ids.length === 0
          ? `No contract or code of an operation changed since ${options.changed}.`
          : formatReport(report, {
              matrix: options.matrix,
              repeat: repeatCommand(options, report),
              files: [options.report, options.junit, options.markdown, options.har].filter(
                (file) => file !== undefined,
              ),
            }),
      failed: isFailed(report),
    },
    results: listResults(contract, report),
    junit: junitXml(`muster contract ${report.url} seed ${report.seed}`, listTestCases(report)),
    section: matrixSection(report),
    har: toHar(report),
  }
}

/** The command that tests the failed operations again, with the same random data. */
function repeatCommand(options: Options, report: Report): string {
  const failed = listCauses(report).flatMap(({ operations }) => operations)
  const ids = OPERATION_IDS.filter((id) => failed.includes(id))
  const { url, receiverPort, receiverUrl, runs, minutes } = options
  // Only a run of all operations demands the promises of fields, events and the documents.
  const needsAll = report.cells.some(
    (cell) => isMissing(cell) && cell.kind !== 'status' && cell.kind !== 'event',
  )
  const isWhole = needsAll || [0, OPERATION_IDS.length].includes(ids.length)
  const only = isWhole ? undefined : ids.join(',')
  const values: [string, string | number | undefined][] = [
    ['url', url && quoteForShell(url)],
    ['key', options.key && '"$KEY"'],
    ['restricted-key', options.restrictedKey && '"$RESTRICTED_KEY"'],
    ['finance-none-key', options.financeNoneKey && '"$FINANCE_NONE_KEY"'],
    ['finance-read-key', options.financeReadKey && '"$FINANCE_READ_KEY"'],
    ['other-key', options.otherKey && '"$OTHER_KEY"'],
    ['receiver-port', receiverPort],
    ['receiver-url', receiverUrl && quoteForShell(receiverUrl)],
    ['only', only],
    ['seed', report.seed],
    ['runs', runs === DEFAULT_RUNS ? undefined : runs],
    ['minutes', minutes],
  ]
  const given = values.filter(([, value]) => value !== undefined)
  return ['muster contract', ...given.map(([name, value]) => `--${name} ${value}`)].join(' ')
}

interface TestRun {
  contract: Contract
  options: Options
  /** The tested operations. */
  ids: readonly string[]
  seed: number
  coverage: Coverage
  /** Filled during the run, so that a run that ends early has a report. */
  results: Pick<Report, 'url' | 'dredd' | 'cases'>
  progress: ProgressLine
}

async function buildReport(
  contract: Contract,
  options: Options,
  ids: readonly string[],
): Promise<Report> {
  const target = readTarget(options)
  const { seed = randomInt(MAX_SEED), url = 'this copy of Muster' } = options
  const hasRestrictedKey = target === undefined || target.restrictedKey !== undefined
  const isOwnService = target === undefined
  const coverage = new Coverage(contract, ids, { hasRestrictedKey, isOwnService })
  const progress = newProgressLine(process.stderr)
  const results: TestRun['results'] = { url, dredd: null, cases: [] }
  const testRun = { contract, options, ids, seed, coverage, results, progress }
  const tested = ids.length === 0 ? Promise.resolve() : testTarget(testRun, target)
  const error = await tested
    .then(
      () => null,
      ({ message }: Error) => message,
    )
    .finally(() => progress.end())
  const cells = coverage
    .listCells(results.cases, ORACLES)
    .filter((cell) => error === null || !isMissing(cell))
  const refusals = coverage.refusals.list()
  const isWhole = error === null && ids.length === OPERATION_IDS.length
  const unused = isWhole ? listUnused(results.cases) : []
  return { ...results, seed, error, cells, untested: coverage.listUntested(), unused, refusals }
}

/** Undefined: the service of this copy of Muster. Throws `UsageError` for options that do not fit
 *  together. */
function readTarget(options: Options): Target | undefined {
  const { url, key, restrictedKey, financeNoneKey, financeReadKey, otherKey } = options
  const { receiverPort, receiverUrl } = options
  if ((url === undefined) !== (key === undefined))
    throw new UsageError("option '--url <url>' and option '--key <key>' must be used together")
  if ((receiverUrl === undefined) !== (receiverPort === undefined))
    throw new UsageError(
      "option '--receiver-url <url>' and option '--receiver-port <port>' must be used together",
    )
  if ((financeNoneKey === undefined) !== (financeReadKey === undefined))
    throw new UsageError(
      "option '--finance-none-key <key>' and option '--finance-read-key <key>' must be used together",
    )
  if (url === undefined || key === undefined) {
    for (const [option, value] of [
      ['--restricted-key <key>', restrictedKey],
      ['--finance-none-key <key>', financeNoneKey],
      ['--other-key <key>', otherKey],
      ['--receiver-url <url>', receiverUrl],
    ])
      if (value !== undefined) throw new UsageError(`option '${option}' needs option '--url <url>'`)
    return undefined
  }
  return {
    url,
    key: readSecret(key),
    restrictedKey: restrictedKey && readSecret(restrictedKey),
    noPermissionKey: financeNoneKey && readSecret(financeNoneKey),
    readPermissionKey: financeReadKey && readSecret(financeReadKey),
    otherKey: otherKey && readSecret(otherKey),
    connect: receiverUrl === undefined ? undefined : (_, create) => create(receiverUrl),
  }
}

/** Without a target, tests the service of this copy of Muster. */
async function testTarget(testRun: TestRun, target: Target | undefined): Promise<void> {
  const { receiverPort, receiverUrl } = testRun.options
  await using receiver =
    receiverPort === undefined ? undefined : await startContractReceiver(receiverPort)
  if (receiver !== undefined && receiverUrl !== undefined)
    await assertReachable(receiver, receiverUrl)
  if (target !== undefined) {
    await assertResponds(target.url)
    await sendRequests(testRun, { ...target, receiver })
    return
  }
  const { startOwnService } = await import('./contract-service.ts')
  const isWhole = testRun.ids.length === OPERATION_IDS.length
  await using service = await startOwnService({
    webhookTimeoutMs: isWhole ? undefined : SHORT_WEBHOOK_TIMEOUT_MS,
  })
  await Promise.all([runDredd(testRun), sendRequests(testRun, service)])
}

/** Dredd tests this copy of Muster only: some statuses need a database that the test can damage. */
async function runDredd({ ids, coverage, results }: TestRun): Promise<void> {
  const thread = new Worker(new URL('./contract-dredd.ts', import.meta.url), {
    workerData: ids,
  })
  const [dredd] = (await once(thread, 'message')) as [DreddResult]
  results.dredd = dredd
  for (const { operation, status, headers } of dredd.passed) {
    coverage.sawStatus(operation, status, DREDD.name)
    coverage.testedHeaders(DREDD, operation, headers)
  }
}

async function sendRequests(
  { contract, options, ids, seed, coverage, results, progress }: TestRun,
  target: Target,
): Promise<void> {
  results.url = target.url
  await runSuite({
    contract,
    validators,
    target,
    options: { ids, seed, randomRequests: options.runs, minutes: options.minutes },
    coverage,
    onStart: ({ operation, name, done, total }) =>
      progress.show(`${operation} ${name}`, done, total),
    onCase: (testCase) => void results.cases.push(testCase),
    toCurl: (request) => toContractCurl(target.url, request, target.key),
  })
}
