/** Tests a service against its contract. The files call each other from top to bottom:
 *  - suite.ts runs each oracle (oracles.ts) for each operation, and collects the failures;
 *  - an oracle (oracles/) lists checks: requests whose result the contract determines;
 *  - a check builds its requests (run.ts) from values of the schemas (values/), from the `x-` words
 *    of the contract (../words/) and from records that it creates (test-records.ts);
 *  - the run sends them (sender.ts), tests each response (conformance.ts, header-meanings.ts) and
 *    counts which promises of the contract it tested (coverage/);
 *  - a receiver (deliveries/) gets what the webhooks of the service send;
 *  - report/ writes the results.
 *  dredd/ is another suite, for the statuses that requests alone cannot cause. `npm run test:mutants`
 *  measures how good this suite is. */
import type { Operation } from '../model/operations.ts'
import { selectsFields } from '../words/lists.ts'
import { assertConforms } from './conformance.ts'
import { type CheckName, ContractBroken } from './contract-broken.ts'
import { CONFORMANCE } from './coverage/testers.ts'
import { assertDeprecation, assertHeaderMeanings } from './header-meanings.ts'
import { listOracles, type Oracle } from './oracles.ts'
import type { Checks, Run, Target } from './run.ts'
import { type Exchange, Sender } from './sender.ts'
import { prepareRecords } from './test-records.ts'

/** Further failures of one case are dropped. */
const MAX_FAILURES_PER_CASE = 3

export interface Failure {
  check: CheckName
  /** What is special about the request. */
  what: string
  message: string
  /** Shell commands that repeat the requests, one a line. Empty if the failure has no request. */
  curl: string
  /** The requests that led to the failure, the failed one last. Their keys are the names of
   *  variables in `curl`, not API keys. */
  exchanges: Exchange[]
}

/** The result of one oracle for one operation. */
export interface Case {
  operation: string
  /** The name of the oracle. */
  name: string
  requests: number
  durationMs: number
  failures: Failure[]
}

interface CaseStart extends Pick<Case, 'operation' | 'name'> {
  /** The number of cases that have ended. */
  done: number
  total: number
}

type SetUp = Pick<Run, 'contract' | 'validators' | 'target' | 'options' | 'coverage' | 'toCurl'>

interface SuiteOptions extends SetUp {
  /** Called before each case, except those that run beside the others. */
  onStart?(next: CaseStart): void
  /** Called after each case. An error that it throws ends the run. */
  onCase(done: Case): void
}

/** Runs every case against the target, one after another. Leaves out the operations whose test
 *  records the target does not create. Cases that wait for deliveries run beside the others if the
 *  target has an account for them, and otherwise at the end. */
export async function runSuite({ onStart, onCase, ...setUp }: SuiteOptions): Promise<void> {
  const { newAccount } = setUp.target
  await using session = await openSession(setUp)
  const cases = listCases(session.run)
  const [others, waiting] = [
    cases.filter(({ waits }) => !waits),
    cases.filter(({ waits }) => waits),
  ]
  const beside =
    newAccount &&
    waiting.map(async (each) => {
      const target = targetOf(setUp.target, await newAccount())
      await using own = await openSession({ ...setUp, target })
      return await performCase(own, each)
    })
  // The loop below awaits them, possibly after they have failed.
  for (const each of beside ?? []) each.catch(() => {})
  for (const [done, each] of [...others, ...waiting].entries()) {
    onStart?.({ operation: each.operation.id, name: each.name, done, total: cases.length })
    const result = await (beside?.[done - others.length] ?? performCase(session, each))
    if (result) onCase(result)
  }
}

function targetOf({ url, webhookTimeoutMs, connect }: Target, { key }: { key: string }): Target {
  return { url, webhookTimeoutMs, connect, key }
}

/** The requests of one account, and its test records. */
interface Session extends AsyncDisposable {
  run: Run
  sender: Sender
}

async function openSession(setUp: SetUp): Promise<Session> {
  const { contract, target, coverage } = setUp
  const sender = new Sender(target.url, contract, coverage)
  const prepare = (key: string) => prepareRecords(contract, (request) => sender.send(request), key)
  const records = await prepare(target.key)
  const otherRecords = target.otherKey === undefined ? undefined : await prepare(target.otherKey)
  return {
    run: newRun(setUp, sender, { records, otherRecords }),
    sender,
    [Symbol.asyncDispose]: () =>
      records
        .cleanUp()
        .finally(() => otherRecords?.cleanUp())
        .finally(() => sender.close()),
  }
}

/** Undefined: the contract or the target has nothing for this oracle to check. */
async function performCase(
  { run, sender }: Session,
  { operation, name, listChecks }: PendingCase,
): Promise<Case | undefined> {
  const [countBefore, startedAt] = [sender.requestCount, performance.now()]
  const own = { ...run, ...run.coverage.testsBy(name) }
  const { checkCount, failures } = await performChecks(run, listChecks(own, operation))
  if (checkCount === 0 && failures.length === 0) return undefined
  return {
    operation: operation.id,
    name,
    requests: sender.requestCount - countBefore,
    durationMs: Math.round(performance.now() - startedAt),
    failures,
  }
}

function newRun(
  setUp: SetUp,
  sender: Sender,
  { records, otherRecords }: Pick<Run, 'records' | 'otherRecords'>,
): Run {
  const { contract, validators, coverage, target } = setUp
  const tests = coverage.testsBy(CONFORMANCE.name)
  return {
    ...setUp,
    records,
    otherRecords,
    ...tests,
    sendUnchecked: (request) => sender.send(request),
    findExchange: (request) => sender.findExchange(request),
    async send(operation, request) {
      const response = await sender.send(request, operation.id)
      records.noteCreated(
        operation,
        response,
        request.key === target.otherKey ? target.otherKey : target.key,
      )
      assertConforms(validators, operation.id, request, response, {
        isSelection: response.status < 300 && selectsFields(contract, request.path),
      })
      const declared = operation.responses.find(({ status }) => status === response.status)
      assertHeaderMeanings(contract, declared, request, response)
      coverage.testedHeaders(CONFORMANCE, operation.id, response.headers.keys())
      if (response.status < 300) {
        assertDeprecation(operation, request, response)
        for (const word of ['x-deprecated-since', 'x-sunset']) tests.tested(operation.id, word)
        tests.testedFields(operation.id, 'response', response.json)
      }
      return response
    },
  }
}

type PendingCase = Pick<Oracle, 'name' | 'listChecks' | 'waits'> & { operation: Operation }

function listCases(run: Run): PendingCase[] {
  const { contract, target, records } = run
  const failedRecords = records.failed.map(({ operation, error }) => ({
    operation,
    name: 'creates the test records',
    listChecks: () => [{ what: 'a test record', perform: () => Promise.reject(error) }],
  }))
  const cases = listTested(run).flatMap((operation) =>
    listOracles(contract, operation, target).map((oracle) => ({ ...oracle, operation })),
  )
  return [...failedRecords, ...cases]
}

/** Skips the operations whose test records do not exist. */
function listTested({ contract, options, coverage, records }: Run): Operation[] {
  const tested: Operation[] = []
  for (const operation of contract.operations.filter(({ id }) => options.ids.includes(id))) {
    const missing = records.missingFor(operation)
    if (missing === undefined) tested.push(operation)
    else
      coverage.skip(operation.id, `it needs a test record (${missing}) that could not be created`)
  }
  return tested
}

/** Performs the checks, counts them, and deletes the records that each created. */
async function performChecks(run: Run, checks: Checks) {
  const { records } = run
  const keptCount = records.createdCount
  const failures: Failure[] = []
  let checkCount = 0
  const seen = new Set<string>()
  const addFailure = (what: string, error: unknown): void => {
    const failure = toFailure(run, what, error)
    // Skips repeated messages.
    if (!seen.has(failure.message) && failures.length < MAX_FAILURES_PER_CASE)
      failures.push(failure)
    seen.add(failure.message)
  }
  try {
    for await (const { what, perform } of checks) {
      checkCount += 1
      // The oracle created these records for this check and the later ones.
      const { createdCount } = records
      await perform().catch((error) => addFailure(what, error))
      await records.cleanUp(createdCount)
    }
  } catch (error) {
    addFailure('preparing the request', error)
  }
  await records.cleanUp(keptCount).catch((error) => addFailure('deleting the test records', error))
  return { checkCount, failures }
}

/** An error other than ContractBroken comes from a response that the test did not expect. */
function toFailure({ toCurl, findExchange, target }: Run, what: string, error: unknown): Failure {
  if (!(error instanceof ContractBroken))
    return { check: 'test_error', what, message: (error as Error).message, curl: '', exchanges: [] }
  const { check, message, request, earlier } = error
  const requests = [...earlier.filter((one) => one !== request), request]
  const exchanges = requests
    .map(findExchange)
    .filter((exchange) => exchange !== undefined)
    .map((exchange) => withoutKey(exchange, target.key))
  return { check, what, message, curl: requests.map(toCurl).join('\n'), exchanges }
}

function withoutKey(exchange: Exchange, runKey: string): Exchange {
  const { request } = exchange
  if (request.key === null) return exchange
  return {
    ...exchange,
    request: { ...request, key: request.key === runKey ? '$KEY' : '$OTHER_KEY' },
  }
}
