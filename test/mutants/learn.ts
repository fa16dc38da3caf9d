/** The instrumented copy, and what reaches which mutant in it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ContractResult, Reach } from './contract-run.ts'
import { instrument, listSources, type Mutant } from './instrument.ts'
import { learnTests, runContract } from './runs.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LEARN_LIMIT_SECONDS = 1800

/** By operation or by test file. */
type Reached = Map<string, Reach>

export interface Learned {
  /** The folder of these sources. */
  folder: string
  /** The instrumented copy of the sources. */
  copy: string
  mutants: Mutant[]
  operations: Reached
  /** The mutants that the start of the service and the creation of test records reach. */
  start: Set<string>
  tests: Reached
}

/** Instruments the sources, and runs the contract tests and the tests without a mutant. Each state of
 *  the sources has its own folder in `parent`, which keeps what was learned of all operations. What
 *  tests reach is learned again only after changes of mutated files. Throws if the contract tests
 *  fail. */
export async function learn(
  parent: string,
  operationIds: string[] | undefined,
  allIds: string[],
  withTests: boolean,
): Promise<Learned> {
  const { files, hash, mutatedHash } = await listSources(ROOT)
  const folder = join(parent, hash)
  const copy = join(folder, 'copy')
  await mkdir(folder, { recursive: true })
  const mutants = await stored(join(folder, 'mutants.json'), () => {
    console.log('Copying the sources …')
    return instrument(ROOT, files, copy)
  })
  const learnOperations = () => learnContract(copy, operationIds ?? allIds)
  const { start, operations } = operationIds
    ? await learnOperations()
    : await stored(join(folder, 'operations.json'), learnOperations)
  const tests = withTests
    ? await stored(join(parent, `tests-${mutatedHash}.json`), () => {
        console.log('Running the tests without a mutant …')
        return learnTests(copy)
      })
    : {}
  return {
    folder,
    copy,
    mutants,
    operations: new Map(Object.entries(operations)),
    start: new Set(start),
    tests: new Map(Object.entries(tests)),
  }
}

async function learnContract(copy: string, ids: string[]): Promise<ContractResult> {
  console.log('Running the contract tests without a mutant …')
  const run = { ids, seed: 1, withDredd: true }
  const result = await runContract(copy, run, { limitSeconds: LEARN_LIMIT_SECONDS })
  if (result.failure !== null)
    throw new Error(`The contract tests fail without a mutant: ${result.failure}`)
  return result
}

/** The JSON of the file, which `make` fills when it does not exist. */
async function stored<T>(file: string, make: () => Promise<T>): Promise<T> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text !== undefined) return JSON.parse(text)
  const value = await make()
  await writeFile(file, JSON.stringify(value))
  return value
}
