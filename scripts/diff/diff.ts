/** Compares the contract, called the revision, with an earlier contract, called the base. */
import { execFile } from 'node:child_process'
import { copyFile, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Refused } from '../../errors.ts'
import { type Fault, findFaults } from '../generate/faults.ts'
import { buildContract, type Contract } from '../model/contract.ts'
import { ContractError, type Source, valueAt } from '../model/source.ts'
import { parseYaml, readModel } from '../model/yaml.ts'
import { compareContracts, type ListedChange } from './compare.ts'

export type { ListedChange } from './compare.ts'

export interface Difference {
  /** `info.version` of the base. Null if there is no base, because nothing was released. */
  from: string | null
  /** `info.version` of the revision. */
  to: string
  /** Breaking changes first. */
  changes: ListedChange[]
  /** Faults of the revision that do not hinder the comparison. */
  problems: Problem[]
}

export interface Problem {
  file: string
  line: number
  problem: string
}

interface DiffOptions {
  /** A git revision of the repository of `root`, or the folder of an earlier contract. Default:
   *  the folder `RELEASED`. */
  base?: string
  /** The folder of the revision. */
  root?: string
  today?: Date
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The folder of the last release, relative to the root. */
export const RELEASED = 'docs/released'
const CONTRACTS = ['openapi.yaml', 'asyncapi.yaml'] as const

/** Throws `Refused` if the base cannot be read, and `ContractError` if the revision is
 *  faulty. */
export async function diff({
  base,
  root = ROOT,
  today = new Date(),
}: DiffOptions): Promise<Difference> {
  const revision = await readModel(root)
  const before = base === undefined ? await readReleased(root) : await readBase(root, base)
  const editions = { revision, today: today.toISOString().slice(0, 10) }
  return {
    from: before === undefined ? null : readVersion(before),
    to: readVersion(revision),
    changes: before === undefined ? [] : compareContracts({ ...editions, base: before }),
    problems: findFaults(revision).map(toProblem),
  }
}

function toProblem({ file, position, problem }: Fault): Problem {
  return { file, line: position.line, problem }
}

/** Copies the contract of `root` to `RELEASED`. */
export async function keepReleased(root = ROOT): Promise<void> {
  const released = join(root, RELEASED)
  await mkdir(released, { recursive: true })
  await Promise.all(CONTRACTS.map((file) => copyFile(join(root, file), join(released, file))))
}

/** Undefined before the first release. */
async function readReleased(root: string): Promise<Contract | undefined> {
  const folder = join(root, RELEASED)
  return (await isFolder(folder)) ? readBase(root, folder) : undefined
}

/** The contract of a git revision, or of a folder. Throws `Refused` if it cannot be read. */
export async function readBase(root: string, name: string): Promise<Contract> {
  try {
    return (await isFolder(name)) ? await readModel(name) : await readGitRevision(root, name)
  } catch (error) {
    if (error instanceof ContractError)
      throw new Refused(`The contract of ${name} cannot be read: ${error.message}`, {
        cause: error,
      })
    throw error
  }
}

function isFolder(name: string): Promise<boolean> {
  return stat(name).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

async function readGitRevision(root: string, gitRevision: string): Promise<Contract> {
  const [openapi, asyncapi] = await Promise.all(
    CONTRACTS.map(async (file) => parseYaml(file, await showFile(root, gitRevision, file))),
  )
  return buildContract(openapi as Source, asyncapi as Source)
}

/** The text of the file at the git revision. `./` is relative to `root`, which need not be the root
 *  of the repository. */
function showFile(root: string, gitRevision: string, file: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = ['show', '--end-of-options', `${gitRevision}:./${file}`]
    execFile('git', args, { cwd: root, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      const reason = stderr.trim().split('\n')[0] || error.message
      reject(
        new Refused(
          `${gitRevision} is neither a folder nor a git revision with ${file} in ${root}: ${reason}`,
          { cause: error },
        ),
      )
    })
  })
}

function readVersion({ openapi }: Contract): string {
  return String(valueAt(openapi.root, ['info', 'version']))
}
