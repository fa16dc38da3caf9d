/** Tests a service as Schemathesis does. Sends valid and invalid data to each operation, at the limits and
 *  at random. Checks everything else that the contract promises. */
import { Refused } from '../../errors.ts'
import type { OperationId } from '../../generated/operations.ts'
import type { Operation } from '../model/operations.ts'
import { bodyChecks, keyChecks, urlChecks } from './access-checks.ts'
import {
  creationChecks,
  deletionChecks,
  eventChecks,
  idempotencyChecks,
  versionChecks,
} from './behaviour-checks.ts'
import { assertConforms, type CheckName, ContractBroken } from './checks.ts'
import { faultChecks, limitChecks, randomInvalidChecks, randomValidChecks } from './data-checks.ts'
import { exchange, type ReceivedResponse, type Request } from './request.ts'
import { prepareRecords } from './test-records.ts'
import type { Check, ListChecks, Run } from './test-run.ts'

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
  /** Called after each case. */
  onCase(done: Case): void
}

/** Runs every case against the target, one request after another.
 *  Throws Refused if the target does not let the run create its records. */
export async function runSuite({ onCase, ...setUp }: SuiteOptions): Promise<void> {
  const { contract, target, options, coverage } = setUp
  let requests = 0
  const sendTo = async (
    id: OperationId | undefined,
    request: Request,
  ): Promise<ReceivedResponse> => {
    requests += 1
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
  }
  const records = await prepareRecords(
    contract,
    (request) => sendTo(undefined, request),
    target.key,
  ).catch((error) => {
    throw error instanceof ContractBroken
      ? new Refused(
          `The test records cannot be created. ${formatRequest(error.request)}: ${error.message}`,
        )
      : error
  })
  const run: Run = {
    ...setUp,
    records,
    plain: (request) => sendTo(undefined, request),
    async send(id, request) {
      const response = await sendTo(id, request)
      records.note(response)
      assertConforms(id, request, response)
      return response
    },
  }
  try {
    for (const operation of contract.operations.filter(({ id }) =>
      options.ids.includes(id as OperationId),
    )) {
      for (const [name, listChecks] of listCases(operation)) {
        const [before, startedAt] = [requests, performance.now()]
        const failures = await collectFailures(run, listChecks(run, operation))
        onCase({
          operation: operation.id as OperationId,
          name,
          requests: requests - before,
          durationMs: Math.round(performance.now() - startedAt),
          failures,
        })
      }
    }
  } finally {
    await records.dispose()
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

function listCases(operation: Operation): [string, ListChecks][] {
  const { method } = operation
  const headers = new Set(operation.parameters.map(({ name }) => name))
  const when = (applies: boolean, name: string, list: ListChecks): [string, ListChecks][] =>
    applies ? [[name, list]] : []
  return [
    ['accepts valid data at the limits', limitChecks],
    ['accepts random valid data', randomValidChecks],
    ['refuses each invalid value', faultChecks],
    ['refuses random invalid data', randomInvalidChecks],
    ['requires an API key with the permission', keyChecks],
    ['refuses other URLs and methods', urlChecks],
    ...when(operation.body !== null, 'accepts only a JSON body', bodyChecks),
    ...when(
      headers.has('If-None-Match') || headers.has('If-Match'),
      'compares versions',
      versionChecks,
    ),
    ...when(
      headers.has('Idempotency-Key'),
      'does not repeat a request with the same Idempotency-Key',
      idempotencyChecks,
    ),
    ...when(method === 'post', 'creates a record that can be read immediately', creationChecks),
    ...when(method === 'delete', 'deletes the record', deletionChecks),
    ...when(operation.emits.length > 0, 'emits exactly the declared events', eventChecks),
  ]
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
