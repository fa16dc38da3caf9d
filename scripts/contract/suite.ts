/** Tests a service as Schemathesis does. Sends valid and invalid data to each operation, at the
 *  limits and at random. Checks everything else that the contract promises. */
import { assertConforms, type CheckName, ContractBroken } from './checks.ts'
import { assertHeaderMeanings } from './oracles/header-meanings.ts'
import { listOracles } from './oracles.ts'
import type { Request } from './request.ts'
import { type Exchange, Sender } from './sender.ts'
import { prepareRecords, type RunRecords } from './test-records.ts'
import type { Check, Run } from './test-run.ts'

/** Further failures of one case are dropped. */
const MAX_FAILURES = 3

export interface Failure {
  check: CheckName
  /** The special property of the request. */
  what: string
  message: string
  /** Shell commands that repeat the requests, one a line. Empty if none failed. */
  curl: string
  /** The requests that led to the failure, the failed one last. Each key is the name of its
   *  variable in `curl`. */
  exchanges: Exchange[]
}

/** The result of one check of one operation. */
export interface Case {
  operation: string
  name: string
  requests: number
  durationMs: number
  failures: Failure[]
}

interface SuiteOptions
  extends Pick<Run, 'contract' | 'validators' | 'target' | 'options' | 'coverage' | 'toCurl'> {
  /** Called after each case. True ends the run. */
  onCase(done: Case): boolean
}

/** Runs every case against the target, one request after another. Goes on without the operations
 *  whose test records the target does not create. */
export async function runSuite({ onCase, ...setUp }: SuiteOptions): Promise<void> {
  const sender = new Sender(setUp.target.url, setUp)
  const send = (request: Request) => sender.send(request)
  const records = await prepareRecords(setUp.contract, send, setUp.target.key)
  const run = newRun(setUp, sender, records)
  const cases = [
    ...records.failed.map(({ operation, error }) => ({
      operation,
      name: 'creates the test records',
      collect: async () => ({ checks: 1, failures: [toFailure(run, 'a test record', error)] }),
    })),
    ...listCases(run),
  ]
  try {
    for (const { operation, name, collect } of cases) {
      const [before, startedAt] = [sender.count, performance.now()]
      const { checks, failures } = await collect()
      // The contract or the target has nothing for this oracle to check.
      if (checks === 0 && failures.length === 0) continue
      const isEnd = onCase({
        operation: operation.id,
        name,
        requests: sender.count - before,
        durationMs: Math.round(performance.now() - startedAt),
        failures,
      })
      if (isEnd) return
    }
  } finally {
    await records.dispose().finally(() => sender.close())
  }
}

function newRun(setUp: Omit<SuiteOptions, 'onCase'>, sender: Sender, records: RunRecords): Run {
  const { contract, validators, options, coverage } = setUp
  const responses = new Map(
    contract.operations.flatMap((operation) =>
      operation.responses.map((response) => [`${operation.id} ${response.status}`, response]),
    ),
  )
  return {
    ...setUp,
    records,
    plain: (request) => sender.send(request),
    findExchange: (request) => sender.findExchange(request),
    async send(id, request) {
      const response = await sender.send(request, id)
      records.note(response)
      assertConforms(validators, id, request, response)
      const declared = responses.get(`${id} ${response.status}`)
      assertHeaderMeanings(contract, declared, request, response)
      if (response.status < 300 && options.ids.includes(id)) coverage.sawBody(id, response.json)
      return response
    },
  }
}

function listCases(run: Run) {
  const { contract, options, target, coverage, records } = run
  const tested = contract.operations.filter((operation) => {
    const id = operation.id
    const missing = options.ids.includes(id) ? records.missingFor(operation) : undefined
    if (missing !== undefined)
      coverage.skip(id, `it needs a test record (${missing}) that could not be created`)
    return options.ids.includes(id) && missing === undefined
  })
  return tested.flatMap((operation) =>
    listOracles(operation, target)
      .toSorted(
        (a, b) => Number(b.name === options.firstOracle) - Number(a.name === options.firstOracle),
      )
      .map(({ name, listChecks }) => ({
        operation,
        name,
        collect: () => performChecks(run, listChecks(run, operation)),
      })),
  )
}

/** Performs the checks, counts them, and deletes the records that each created. */
async function performChecks(
  run: Run,
  checks: AsyncIterable<Check> | Iterable<Check>,
): Promise<{ checks: number; failures: Failure[] }> {
  const failures: Failure[] = []
  let count = 0
  const seen = new Set<string>()
  const note = (what: string, error: unknown): void => {
    const failure = toFailure(run, what, error)
    // Skips repeated messages.
    if (!seen.has(failure.message) && failures.length < MAX_FAILURES) failures.push(failure)
    seen.add(failure.message)
  }
  try {
    for await (const { what, perform } of checks) {
      count += 1
      // The case uses the records of its preparation until its end.
      run.records.keepUntilCaseEnds()
      await perform().catch((error) => note(what, error))
      await run.records.cleanUpCheck()
    }
  } catch (error) {
    note('preparing the request', error)
  }
  await run.records.cleanUpCase().catch((error) => note('deleting the test records', error))
  return { checks: count, failures }
}

/** An error that is no finding comes from a response that the test did not expect. */
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
