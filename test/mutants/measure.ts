/** Runs a mutant against the contract tests and the tests that reach it. */
import type { Reach } from './contract-run.ts'
import type { Mutant } from './instrument.ts'
import type { Learned } from './learn.ts'
import { limitFor, runContract, runTests } from './runs.ts'

const FIRST_OPERATIONS = 6
const TEST_SECONDS = 30
/** One mutant in so many also gets a run without it. The failures of these runs say how many mutants
 *  count as found by mistake. */
const MUTANTS_PER_CONTROL = 10
/** Until a test file has loaded the service. */
const IMPORT_SECONDS = 2

export interface Outcome {
  /** The first failure. Null: not found. */
  failure: string | null
  /** The operations or test files that ran. */
  ran: string[]
  seconds: number
}

/** What reaches a mutant: operations, only the start of the service, or only tests. */
export type MutantReach = 'operations' | 'start' | 'tests' | 'nothing'

export interface Result {
  mutant: Mutant
  reach: MutantReach
  contract: Outcome
  /** Null: the tests did not run. */
  tests: Outcome | null
  /** The contract tests without the mutant. Null: they did not run. */
  control: Outcome | null
}

/** Which mutants to run against the tests: `missed` are those that the contract tests miss. */
export type TestChoice = 'all' | 'missed' | 'none'

/** Runs the contract tests of a few operations first, then the tests, and then the contract tests of
 *  all operations that reach the mutant. Skips the last step if no test finds the mutant either. */
export async function measure(
  learned: Learned,
  mutant: Mutant,
  choice: TestChoice,
  tags: Map<string, string>,
): Promise<Result> {
  const ids = listReaching(learned, mutant)
  const few = chooseFirst(ids, learned, mutant, tags)
  const needsControl = Number(mutant.id) % MUTANTS_PER_CONTROL === 0
  const control = needsControl
    ? await testContract(learned, mutant, few, { withDredd: false, isControl: true })
    : null
  let contract = await testContract(learned, mutant, few, { withDredd: false })
  const isTested = choice === 'all' || (choice === 'missed' && contract.failure === null)
  const tests = isTested ? await testTests(learned, mutant) : null
  if (contract.failure === null && tests?.failure !== null) {
    const whole = await testContract(learned, mutant, ids, { withDredd: true })
    contract = { ...whole, seconds: Math.round(contract.seconds + whole.seconds) }
  }
  if (contract.failure === null && tests !== null) await confirm(learned, tests)
  return { mutant, reach: reachOf(learned, mutant), contract, tests, control }
}

/** Removes the failure of a test that fails without a mutant, too, for example on a busy machine. */
async function confirm({ copy, tests }: Learned, outcome: Outcome): Promise<void> {
  const file = outcome.failure?.split(':')[0] ?? ''
  const reach = tests.get(file)
  if (reach === undefined) return
  const failure = await runTests(copy, [file], { limitSeconds: limitFor(reach.seconds) })
  if (failure !== null) outcome.failure = null
}

export function reachOf({ operations, start, tests }: Learned, { id }: Mutant): MutantReach {
  const isReached = (reached: Map<string, Reach>) =>
    reached.values().some(({ counts }) => id in counts)
  if (isReached(operations)) return 'operations'
  if (start.has(id)) return 'start'
  return isReached(tests) ? 'tests' : 'nothing'
}

/** The operations to test. Every operation, if only the start of the service reaches the mutant. */
function listReaching(learned: Learned, mutant: Mutant): string[] {
  const all = [...learned.operations]
  if (reachOf(learned, mutant) === 'start') return all.map(([name]) => name)
  return all.flatMap(([name, { counts }]) => (mutant.id in counts ? [name] : []))
}

/** The operation for which the mutant is the largest share of what it reaches, and others of its
 *  tag. */
function chooseFirst(
  ids: string[],
  { operations }: Learned,
  { id }: Mutant,
  tags: Map<string, string>,
): string[] {
  const share = (name: string) => shareOf(operations.get(name)?.counts ?? {}, id)
  const sorted = ids.toSorted((a, b) => share(b) - share(a))
  const tag = tags.get(sorted[0] ?? '')
  return sorted.filter((name) => tags.get(name) === tag).slice(0, FIRST_OPERATIONS)
}

async function testContract(
  { copy, operations }: Learned,
  mutant: Mutant,
  ids: string[],
  { withDredd, isControl = false }: { withDredd: boolean; isControl?: boolean },
): Promise<Outcome> {
  if (ids.length === 0) return { failure: null, ran: [], seconds: 0 }
  const startedAt = performance.now()
  const { failure } = await runContract(
    copy,
    { ids, seed: Number(mutant.id), withDredd },
    {
      mutant: isControl ? undefined : mutant.id,
      limitSeconds: limitFor(sumSeconds(operations, ids)),
    },
  )
  return { failure, ran: ids, seconds: secondsSince(startedAt) }
}

async function testTests({ copy, tests }: Learned, mutant: Mutant): Promise<Outcome> {
  const files = chooseTests(tests, mutant)
  if (files.length === 0) return { failure: null, ran: [], seconds: 0 }
  const startedAt = performance.now()
  const failure = await runTests(copy, files, {
    mutant: mutant.id,
    limitSeconds: limitFor(sumSeconds(tests, files)),
  })
  return { failure, ran: files, seconds: secondsSince(startedAt) }
}

/** The test files that reach the mutant, first those for which it is the largest share of what they
 *  reach. At most TEST_SECONDS in all, or one file. */
function chooseTests(tests: Map<string, Reach>, { id }: Mutant): string[] {
  const reaching = [...tests]
    .filter(([, { counts }]) => id in counts)
    .map(([name, { counts, seconds }]) => ({ name, seconds, share: shareOf(counts, id) }))
    .sort((a, b) => b.share - a.share)
  const chosen: string[] = []
  let total = 0
  for (const { name, seconds } of reaching) {
    total += IMPORT_SECONDS + seconds
    if (chosen.length > 0 && total > TEST_SECONDS) break
    chosen.push(name)
  }
  return chosen
}

function shareOf(counts: Record<string, number>, id: string): number {
  return (counts[id] ?? 0) / Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function sumSeconds(reached: Map<string, Reach>, names: string[]): number {
  return names.reduce((sum, name) => sum + (reached.get(name)?.seconds ?? 0), 0)
}

function secondsSince(startedAt: number): number {
  return Math.round((performance.now() - startedAt) / 100) / 10
}
