/** Makes a copy of the repository that contains all mutants. The environment variable
 *  `__STRYKER_ACTIVE_MUTANT__` switches one of them on. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Ignorer, NodePath } from '@stryker-mutator/api/ignore'
import type { Logger } from '@stryker-mutator/api/logging'
import { Instrumenter } from '@stryker-mutator/instrumenter'

/** What the contract tests are for: the API and the webhooks. */
const MUTATED = [
  /^(handlers|operations|auth|server|webhooks\/(policy|transport))\/.*\.ts$/,
  /^records\/(participants|tasks|jobs|job-applications|exports|payments|events)\.ts$/,
  /^records\/(list|references|merge-patch|screening|changes|export-files|idempotency-keys)\.ts$/,
]

export interface Mutant {
  /** Other sources have other IDs. */
  id: string
  file: string
  line: number
  column: number
  /** The name of the change, for example `EqualityOperator`. */
  mutator: string
  original: string
  replacement: string
}

interface Sources {
  /** The relative paths of all files, new ones included. */
  files: string[]
  /** The hash of all files. */
  hash: string
  /** The hash of the files that are mutated. */
  mutatedHash: string
}

export async function listSources(root: string): Promise<Sources> {
  const options = ['-z', '--cached', '--others', '--exclude-standard']
  const files = execFileSync('git', ['ls-files', ...options], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(root, file)))
    .sort()
  const hash = await hashOf(root, files)
  return { files, hash, mutatedHash: await hashOf(root, files.filter(isMutated)) }
}

function isMutated(file: string): boolean {
  return MUTATED.some((pattern) => pattern.test(file))
}

async function hashOf(root: string, files: string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(await readFile(join(root, file)))
  return hash.digest('hex').slice(0, 8)
}

/** Copies the files from `root` to `copy`, and returns the mutants that the copy contains. */
export async function instrument(root: string, files: string[], copy: string): Promise<Mutant[]> {
  await rm(copy, { recursive: true, force: true })
  for (const file of files) {
    await mkdir(dirname(join(copy, file)), { recursive: true })
    await cp(join(root, file), join(copy, file))
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
  const sources = new Map<string, string>()
  for (const file of files.filter(isMutated))
    sources.set(file, await readFile(join(root, file), 'utf8'))
  const { files: written, mutants } = await new Instrumenter(SILENT).instrument(
    [...sources].map(([name, content]) => ({ name, content, mutate: true })),
    { plugins: null, excludedMutations: [], ignorers: [LOG_CALLS] },
  )
  for (const { name, content } of written) await writeFile(join(copy, name), content)
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, mutatorName, replacement, location: { start, end } }) => ({
      id,
      file: fileName,
      line: start.line + 1,
      column: start.column + 1,
      mutator: mutatorName,
      original: textBetween(sources.get(fileName) ?? '', start, end),
      replacement,
    }))
}

interface Position {
  line: number
  column: number
}

function textBetween(source: string, start: Position, end: Position): string {
  const lines = source.split('\n').slice(start.line, end.line + 1)
  lines.push((lines.pop() ?? '').slice(0, end.column))
  return [(lines[0] ?? '').slice(start.column), ...lines.slice(1)].join('\n')
}

/** Neither clients nor receivers see what is logged. */
const LOG_CALLS: Ignorer = {
  shouldIgnore(path) {
    const { node } = path as NodePath & { node: { type: string; callee?: Callee } }
    const { object, property } = node.callee ?? {}
    const isLogged =
      node.type === 'CallExpression' &&
      /^(debug|info|warn|error|fatal)$/.test(property?.name ?? '') &&
      /^#?log$/i.test(nameOf(object))
    return isLogged ? 'It changes the log only.' : undefined
  },
}

interface Callee {
  object?: Named
  property?: { name?: string }
}
interface Named {
  name?: string
  /** A private name has its name here. */
  id?: { name?: string }
  /** A member of another object has its name here. */
  property?: Named
}

function nameOf(node: Named | undefined): string {
  return node?.name ?? node?.id?.name ?? (node?.property ? nameOf(node.property) : '')
}

const nothing = () => undefined
const never = () => false
const SILENT: Logger = {
  isTraceEnabled: never,
  isDebugEnabled: never,
  isInfoEnabled: never,
  isWarnEnabled: never,
  isErrorEnabled: never,
  isFatalEnabled: never,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
}
