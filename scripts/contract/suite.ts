/** Tests a service like Schemathesis, for this contract: sends valid and invalid data to each operation, at the limits and
 *  at random, and checks everything else that the contract promises. */

import { Refused } from '../../errors.ts'
import type { OperationId } from '../../generated/operations.ts'
import type { Contract } from '../model/contract.ts'
import type { Operation } from '../model/operations.ts'
import { askAddress, askBody, askKeys } from './access-checks.ts'
import { askCreated, askDeleted, askEvents, askRepeats, askVersions } from './behaviour-checks.ts'
import { assertConforms, type Check, ContractBroken } from './checks.ts'
import type { Coverage } from './coverage.ts'
import { askFaults, askInvalid, askLimits, askValid } from './data-checks.ts'
import { exchange, type ReceivedResponse, type Request } from './request.ts'
import { prepareRecords } from './test-records.ts'
import type { Ask, Options, Question, Run, Target } from './test-run.ts'

/** Further failures of one case are dropped. */
const MAX_FAILURES = 3

export interface Failure {
  check: Check
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

interface Callbacks {
  /** Called after each case. */
  onCase(done: Case): void
  /** A command that repeats the request. */
  toCurl(request: Request): string
}

/** Runs every case against the target, one request after another.
 *  Throws Refused if the target does not let the run create its records. */
export async function runSuite(
  contract: Contract,
  target: Target,
  options: Options,
  coverage: Coverage,
  { onCase, toCurl }: Callbacks,
): Promise<void> {
  let requests = 0
  const sendTo = async (
    id: OperationId | undefined,
    request: Request,
  ): Promise<ReceivedResponse> => {
    requests += 1
    const saw = ({ status }: ReceivedResponse): void => {
      if (id !== undefined && options.ids.includes(id)) coverage.sawStatus(id, status)
    }
    try {
      const answer = await exchange(target.url, request, saw)
      saw(answer)
      return answer
    } catch (error) {
      throw new ContractBroken('no_answer', request, `no response: ${sayFailure(error)}`)
    }
  }
  const records = await prepareRecords(
    contract,
    (request) => sendTo(undefined, request),
    target.key,
  ).catch((error) => {
    throw error instanceof ContractBroken
      ? new Refused(
          `The test records cannot be created. ${sayRequest(error.request)}: ${error.message}`,
        )
      : error
  })
  const run: Run = {
    contract,
    target,
    options,
    coverage,
    toCurl,
    records,
    plain: (request) => sendTo(undefined, request),
    async send(id, request) {
      const answer = await sendTo(id, request)
      records.note(answer)
      assertConforms(id, request, answer)
      return answer
    },
  }
  try {
    for (const operation of contract.operations.filter(({ id }) =>
      options.ids.includes(id as OperationId),
    )) {
      for (const [name, ask] of casesOf(operation)) {
        const [before, startedAt] = [requests, performance.now()]
        const failures = await collect(run, ask(run, operation))
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

function sayRequest({ method, path }: Request): string {
  return `${method} ${path}`
}

/** The message of fetch is only "fetch failed": its cause has the reason. */
function sayFailure(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error
    ? cause.message || String((cause as NodeJS.ErrnoException).code)
    : message
}

function casesOf(operation: Operation): [string, Ask][] {
  const { method } = operation
  const headers = new Set(operation.parameters.map(({ name }) => name))
  const when = (isSo: boolean, name: string, ask: Ask): [string, Ask][] =>
    isSo ? [[name, ask]] : []
  return [
    ['takes valid data at its limits', askLimits],
    ['takes valid data at random', askValid],
    ['refuses each invalid value', askFaults],
    ['refuses invalid data at random', askInvalid],
    ['asks for a key', askKeys],
    ['is found by its address alone', askAddress],
    ...when(operation.body !== null, 'takes a JSON body and nothing else', askBody),
    ...when(
      headers.has('If-None-Match') || headers.has('If-Match'),
      'compares versions',
      askVersions,
    ),
    ...when(headers.has('Idempotency-Key'), 'does what is repeated once', askRepeats),
    ...when(method === 'post', 'makes what can be read at once', askCreated),
    ...when(method === 'delete', 'leaves nothing behind', askDeleted),
    ...when(operation.emits.length > 0, 'emits what it says', askEvents),
  ]
}

/** Runs all questions, and deletes the created records after each. */
async function collect(
  run: Run,
  questions: AsyncIterable<Question> | Iterable<Question>,
): Promise<Failure[]> {
  const failures: Failure[] = []
  const seen = new Set<string>()
  const note = (what: string, error: unknown): void => {
    const failure = failureOf(run, what, error)
    // Skips repeated messages.
    if (!seen.has(failure.message) && failures.length < MAX_FAILURES) failures.push(failure)
    seen.add(failure.message)
  }
  try {
    for await (const { what, ask } of questions) {
      // RunRecords of the preparation are used until the end of the case.
      run.records.keep()
      await ask().catch((error) => note(what, error))
      await run.records.cleanUp()
    }
  } catch (error) {
    note('preparing the request', error)
  }
  await run.records.cleanUpKept()
  return failures
}

function failureOf({ toCurl }: Run, what: string, error: unknown): Failure {
  if (error instanceof ContractBroken)
    return {
      check: error.check,
      what,
      message: error.message,
      curl: toCurl(error.request),
    }
  throw error
}
