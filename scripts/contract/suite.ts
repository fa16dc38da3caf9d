/** Tests a service as Schemathesis does. Sends valid and invalid data to each operation, at the limits and
 *  at random. Checks everything else that the contract promises. */
import { Refused } from '../../errors.ts'
import type { OperationId } from '../../generated/operations.ts'
import { assertConforms, type CheckName, ContractBroken } from './checks.ts'
import { assertHeaderMeanings } from './oracles/header-meanings.ts'
import { listOracles } from './oracles.ts'
import { exchange, type ReceivedResponse, type Request } from './request.ts'
import { prepareRecords } from './test-records.ts'
import type { Check, Run } from './test-run.ts'

/** Further failures of one case are dropped. */
const MAX_FAILURES = 3

export interface Failure {
  check: CheckName
  /** The special property of the request. */
  what: string
  message: string
  /** A shell command that repeats the request. */
  curl: string
}

/** The result of one check of one operation. */
export interface Case {
  operation: OperationId
  name: string
  requests: number
  durationMs: number
  failures: Failure[]
}

interface SuiteOptions
  extends Pick<Run, 'contract' | 'target' | 'options' | 'coverage' | 'toCurl'> {
  /** Called after each case. True ends the run. */
  onCase(done: Case): boolean
}

/** Runs every case against the target, one request after another.
 *  Throws Refused if the target does not let the run create its records. */
export async function runSuite({ onCase, ...setUp }: SuiteOptions): Promise<void> {
  const { contract, target, options, coverage } = setUp
  const sender = newSender(setUp)
  const records = await prepareRecords(contract, sender.send, target.key).catch((error) => {
    if (!(error instanceof ContractBroken)) throw error
    throw new Refused(
      `The test records cannot be created. ${formatRequest(error.request)}: ${error.message}`,
    )
  })
  const responses = new Map(
    contract.operations.flatMap((operation) =>
      operation.responses.map((response) => [`${operation.id} ${response.status}`, response]),
    ),
  )
  const run: Run = {
    ...setUp,
    records,
    plain: sender.send,
    async send(id, request) {
      const response = await sender.send(request, id)
      records.note(response)
      assertConforms(id, request, response)
      const declared = responses.get(`${id} ${response.status}`)
      assertHeaderMeanings(contract, declared, request, response)
      if (response.status < 300 && options.ids.includes(id)) coverage.sawBody(id, response.json)
      return response
    },
  }
  try {
    for (const { operation, oracle } of listCases(run)) {
      const [before, startedAt] = [sender.count(), performance.now()]
      const failures = await collectFailures(run, oracle.listChecks(run, operation))
      const isEnd = onCase({
        operation: operation.id as OperationId,
        name: oracle.name,
        requests: sender.count() - before,
        durationMs: Math.round(performance.now() - startedAt),
        failures,
      })
      if (isEnd) return
    }
  } finally {
    await records.dispose()
  }
}

function listCases({ contract, options, target }: Run) {
  const tested = contract.operations.filter(({ id }) => options.ids.includes(id as OperationId))
  return tested.flatMap((operation) =>
    listOracles(operation, target)
      .toSorted(
        (a, b) => Number(b.name === options.firstOracle) - Number(a.name === options.firstOracle),
      )
      .map((oracle) => ({ operation, oracle })),
  )
}

interface Sender {
  /** The status of the response counts for the operation. */
  send(request: Request, id?: OperationId): Promise<ReceivedResponse>
  count(): number
}

function newSender({
  target,
  options,
  coverage,
}: Pick<Run, 'target' | 'options' | 'coverage'>): Sender {
  let count = 0
  return {
    count: () => count,
    async send(request, id) {
      count += 1
      const countStatus = ({ status }: ReceivedResponse): void => {
        if (id !== undefined && options.ids.includes(id)) coverage.sawStatus(id, status)
      }
      try {
        const response = await exchange(target.url, request, countStatus)
        countStatus(response)
        return response
      } catch (error) {
        throw new ContractBroken('no_answer', request, `no response: ${formatCause(error)}`)
      }
    },
  }
}

function formatRequest({ method, path }: Request): string {
  return `${method} ${path}`
}

/** The message of fetch is only "fetch failed": its cause has the reason. */
function formatCause(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error
    ? cause.message || String((cause as NodeJS.ErrnoException).code)
    : message
}

/** Performs the checks, and deletes the records that each created. */
async function collectFailures(
  run: Run,
  checks: AsyncIterable<Check> | Iterable<Check>,
): Promise<Failure[]> {
  const failures: Failure[] = []
  const seen = new Set<string>()
  const note = (what: string, error: unknown): void => {
    const failure = toFailure(run, what, error)
    // Skips repeated messages.
    if (!seen.has(failure.message) && failures.length < MAX_FAILURES) failures.push(failure)
    seen.add(failure.message)
  }
  try {
    for await (const { what, perform } of checks) {
      // The case uses the records of its preparation until its end.
      run.records.keepUntilCaseEnds()
      await perform().catch((error) => note(what, error))
      await run.records.cleanUpCheck()
    }
  } catch (error) {
    note('preparing the request', error)
  }
  await run.records.cleanUpCase()
  return failures
}

function toFailure({ toCurl }: Run, what: string, error: unknown): Failure {
  if (error instanceof ContractBroken)
    return {
      check: error.check,
      what,
      message: error.message,
      curl: toCurl(error.request),
    }
  throw error
}
