import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { operations } from '../generated/operations.ts'
import * as validators from '../generated/validators.js'
import { type Coverage, isMissing, newCoverage } from '../scripts/contract/coverage.ts'
import { contractHar } from '../scripts/contract/har.ts'
import { listUnused, ORACLES } from '../scripts/contract/oracles.ts'
import type { Servers } from '../scripts/contract/provoke-status.ts'
import {
  assertReachable,
  startContractReceiver,
  type TestedWebhook,
} from '../scripts/contract/receiver.ts'
import { contractJunit, contractPage, isFailed, type Report } from '../scripts/contract/report.ts'
import { listResults } from '../scripts/contract/results.ts'
import { runSuite } from '../scripts/contract/suite.ts'
import type { Target } from '../scripts/contract/test-run.ts'
import type { Contract } from '../scripts/model/contract.ts'
import { readContract } from '../scripts/model/yaml.ts'
import { toContractCurl } from './contract-curl.ts'
import { formatReport, toDocument } from './contract-output.ts'
import type { ProveOptions } from './contract-prove.ts'
import { addReportOptions, type Checked, type ReportOptions, reportResults } from './reports.ts'
import { parseDocumentRoot, ROOT_OPTION } from './root.ts'
import {
  examples,
  type Output,
  parseHttpUrl,
  parseInteger,
  parseList,
  parsePort,
  parseSigningSecret,
  readSecret,
  type Shell,
  UsageError,
} from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const IDS = Object.keys(operations)
const DEFAULT_RUNS = 20
const MAX_SEED = 2 ** 31 - 1

interface Options extends ReportOptions {
  root?: string
  /** With `root`: test the mock. */
  mock?: boolean
  url?: string
  key?: string
  restrictedKey?: string
  otherKey?: string
  webhookSecret?: string
  receiverPort?: number
  receiverUrl?: string
  seed?: number
  runs: number
  only?: string[]
  har?: string
  prove?: ProveOptions['prove']
}

const EXAMPLES = examples(
  'muster contract',
  'muster contract --only createTask,getTask --seed 42',
  'muster contract --prove',
  'muster contract --url https://api.example.com --key - --junit contract.xml --report contract.html',
)

export function addCommand(program: Command, shell: Shell): void {
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
        'input; its URL must lead to --receiver-port of this machine, for example through a tunnel',
      parseSigningSecret,
    )
    .option(
      '--receiver-port <port>',
      'the loopback port that receives the deliveries of that webhook',
      parsePort,
    )
    .option(
      '--receiver-url <url>',
      'the public URL of that webhook; before the tests, a request makes sure that it leads to ' +
        '--receiver-port',
      parseHttpUrl,
    )
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
    .option('--only <ids>', 'test these operations only, separated by commas', parseList(...IDS))
    .option('--har <file>', 'also write the requests of all failures as an HTTP Archive')
    .option(
      '--prove [part]',
      'measure these tests: break the responses of this installation in many ways, one at a time, and ' +
        'print how many they find; with a part, only faults that have it in their name',
    )
    .option(
      ROOT_OPTION,
      'test the service of this folder, which "muster init" made, against its OpenAPI document',
      parseDocumentRoot,
    )
    .option('--mock', 'with --root: test the mock of the document instead')
    .addHelpText(
      'after',
      `${EXAMPLES}
Each operation is tested for:
${ORACLES.map(({ promise }) => `  - ${promise}`).join('\n')}

Exit status: 0 if the contract holds, 1 if a check failed or a documented status or event never occurred, 2 for wrong
usage.
With --prove: 0 if at least 95 % of all faults are found, and every fault in the isolation of accounts and in
signatures.
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
  const { root, key } = options
  if (root !== undefined) {
    const { testDocument } = await import('./document-contract.ts')
    return await testDocument({ ...options, root, key: key && readSecret(key) })
  }
  if (options.mock) throw new UsageError("option '--mock' needs option '--root <folder>'")
  if (options.prove !== undefined) return await proveOwnService(options)
  const report = await buildReport(options)
  if (options.har !== undefined) await writeFile(options.har, contractHar(report))
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

/** The report has what was found until an error ended the run. */
async function buildReport(options: Options): Promise<Report> {
  const contract = await readContract(ROOT)
  const target = readTarget(options)
  const { seed = randomInt(MAX_SEED), only = IDS, url = 'this installation' } = options
  const hasRestrictedKey = target === undefined || target.restrictedKey !== undefined
  const coverage = newCoverage(contract, only, { hasRestrictedKey })
  const found: Findings = { url, dredd: null, cases: [] }
  const error = await testTarget(contract, target, { options, seed, coverage, found }).then(
    () => null,
    ({ message }: Error) => message,
  )
  const cells = coverage.cells().filter((cell) => error === null || !isMissing(cell))
  const refusals = coverage.refusals.list()
  const unused = error === null ? listUnused(found.cases) : []
  return { ...found, seed, error, cells, untested: coverage.untested(), unused, refusals }
}

type Findings = Pick<Report, 'url' | 'dredd' | 'cases'>

interface Work {
  options: Options
  seed: number
  coverage: Coverage
  /** Gets the results at once. */
  found: Findings
}

/** Without a target, tests the service of this installation. */
async function testTarget(
  contract: Contract,
  target: Target | undefined,
  work: Work,
): Promise<void> {
  const { receiverPort, receiverUrl } = work.options
  await using receiver =
    receiverPort === undefined ? undefined : await startContractReceiver(receiverPort)
  if (receiver !== undefined && receiverUrl !== undefined)
    await assertReachable(receiver, receiverUrl)
  if (target !== undefined) {
    await test(contract, { ...target, receiver }, work)
    return
  }
  const { startDreddServers, startOwnService } = await import('./contract-service.ts')
  work.found.dredd = await runDredd(contract, work.options, startDreddServers)
  await using service = await startOwnService()
  await test(contract, service, work)
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
  const { url, key, restrictedKey, otherKey, webhookSecret, receiverPort, receiverUrl } = options
  if ((url === undefined) !== (key === undefined))
    throw new UsageError("option '--url <url>' and option '--key <key>' must be used together")
  if ((webhookSecret === undefined) !== (receiverPort === undefined))
    throw new UsageError(
      "option '--webhook-secret <secret>' and option '--receiver-port <port>' must be used together",
    )
  if (receiverUrl !== undefined && receiverPort === undefined)
    throw new UsageError("option '--receiver-url <url>' needs option '--receiver-port <port>'")
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

async function test(contract: Contract, target: Target, work: Work): Promise<void> {
  const { options, seed, coverage, found } = work
  const { runs, only = IDS } = options
  found.url = target.url
  for (const { operation, status } of found.dredd?.passed ?? [])
    coverage.sawStatus(operation, status)
  await runSuite({
    contract,
    validators,
    target,
    options: { ids: only, seed, randomRequests: runs },
    coverage,
    onCase: (done) => {
      found.cases.push(done)
      return false
    },
    toCurl: (request) => toContractCurl(target.url, request, target.key),
  })
}
