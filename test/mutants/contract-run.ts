/** Runs inside the instrumented copy, in a process of its own: the contract tests of some
 *  operations, until the first failure. Prints the result as JSON on the last line. */
import { startDreddServers, startOwnService } from '../../cli/contract-service.ts'
import * as validators from '../../generated/validators.js'
import { Coverage, isMissing } from '../../scripts/contract/coverage/coverage.ts'
import { runDreddSuite } from '../../scripts/contract/dredd/dredd-suite.ts'
import { runSuite } from '../../scripts/contract/suite.ts'
import { readContract } from '../../scripts/model/yaml.ts'

/** The argument of the process. */
export interface ContractRun {
  ids: string[]
  seed: number
  /** Dredd takes as long as the tests of a dozen operations. */
  withDredd: boolean
}

export interface Reach {
  /** How often each mutant was reached, by its ID. */
  counts: Record<string, number>
  seconds: number
}

export interface ContractResult {
  /** The first failure. Null: the contract holds. */
  failure: string | null
  /** The mutants that the start of the service and the creation of test records reached. */
  start: string[]
  /** What each operation's tests reached, and how long they took. */
  operations: Record<string, Reach>
}

/** The random requests of `muster contract`, by default. */
const RANDOM_REQUESTS = 20

declare global {
  /** The instrumented files count here which mutants are reached, by `currentTestId`. */
  var __stryker__:
    | {
        currentTestId?: string
        mutantCoverage?: {
          static: Record<string, number>
          perTest: Record<string, Record<string, number>>
        }
      }
    | undefined
}

const { ids, seed, withDredd }: ContractRun = JSON.parse(process.argv[2] ?? '')
// Dredd's old dependencies trigger Node.js warnings.
process.removeAllListeners('warning')
const operations: ContractResult['operations'] = {}
const start: string[] = []
const contract = await readContract(process.cwd())
const failure = await run().catch(({ message }: Error) => message)
start.push(...Object.keys(globalThis.__stryker__?.mutantCoverage?.static ?? {}))
const result: ContractResult = { failure, start, operations }
// Dredd prints, too.
process.stdout.write(`\n${JSON.stringify(result)}\n`, () => process.exit(0))

/** Dredd comes last, because it is slower. Only with Dredd does each documented status occur. */
async function run(): Promise<string | null> {
  await using service = await startOwnService()
  const hasRestrictedKey = service.restrictedKey !== undefined
  const coverage = new Coverage(contract, ids, { hasRestrictedKey })
  // Begins after the first case: the suite creates the test records before it.
  let count: ((operation: string) => void) | undefined
  await runSuite({
    contract,
    validators,
    target: service,
    options: { ids, seed, randomRequests: RANDOM_REQUESTS },
    coverage,
    onCase({ operation, name, failures: [failed] }) {
      count?.(operation)
      count = newCount()
      // Ends the run.
      if (failed) throw new Error(`${operation} ${name}: ${failed.what}: ${failed.message}`)
    },
    toCurl: ({ method, path }) => `${method} ${path}`,
  })
  if (!withDredd) return null
  await using servers = await startDreddServers()
  let current: string | undefined
  const { passed, failures } = await runDreddSuite(contract, servers, ids, (operation) => {
    if (current) count?.(current)
    current = operation
    count = newCount()
  })
  if (current) count?.(current)
  for (const { operation, status } of passed) coverage.sawStatus(operation, status)
  if (failures[0]) return `Dredd: ${failures[0]}`
  const missing = coverage.listCells().find(isMissing)
  return missing ? `${missing.operation}: ${missing.kind} ${missing.name} never occurred` : null
}

/** Returns a function that adds what happened since this call to an operation. */
function newCount(): (operation: string) => void {
  globalThis.__stryker__ ??= {}
  const [stryker, startedAt] = [globalThis.__stryker__, performance.now()]
  const test = `from ${startedAt}`
  stryker.currentTestId = test
  return (operation) => {
    const { counts, seconds } = operations[operation] ?? { counts: {}, seconds: 0 }
    for (const [id, count] of Object.entries(stryker.mutantCoverage?.perTest[test] ?? {}))
      counts[id] = (counts[id] ?? 0) + count
    const passedMs = performance.now() - startedAt
    operations[operation] = { counts, seconds: seconds + passedMs / 1000 }
  }
}
