import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { withEntry } from '../scripts/diff/changelog.ts'
import {
  type Difference,
  diff,
  keepReleased,
  type ListedChange,
  type Problem,
  RELEASED,
} from '../scripts/diff/diff.ts'
import { LEVELS } from '../scripts/diff/rules.ts'
import type { Result } from '../scripts/report/result.ts'
import { addReportOptions, type CheckReport, type ReportOptions, reportResults } from './reports.ts'
import { examples, type Shell, UsageError } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** A message shortens a longer list of operations or events to some names and a count. */
const MAX_NAMES = 4

interface Options extends ReportOptions {
  revision?: string
  changelog?: boolean
  release?: boolean
}

const EXAMPLES = examples(
  'muster diff',
  'muster diff main',
  'muster diff v1.4.0 --changelog',
  'muster diff ../earlier --junit diff.xml',
  'muster diff --release',
)

export function addCommand(program: Command, shell: Shell): void {
  const command = program
    .command('diff')
    .description(
      'Compare openapi.yaml and asyncapi.yaml with the last release or another revision. ' +
        'Each change is breaking, risky or safe for clients and receivers, or affects only generated code. ' +
        'It is not breaking to remove a deprecated operation after its sunset.',
    )
    .argument(
      '[base]',
      `a git revision, or a folder with the two files (default: the last release, in ${RELEASED}/)`,
    )
    .option(
      '--revision <folder>',
      'the folder of the two changed files (default: this copy of Muster)',
      (folder) => resolve(folder),
    )
    .option('--changelog', 'add an entry to CHANGELOG.md beside the changed files')
    .option(
      '--release',
      `if no change is breaking, add the entry and copy the changed files to ${RELEASED}/`,
    )
  addReportOptions(command)
    .addHelpText(
      'after',
      `${EXAMPLES}
breaking  Programs that follow the contract can fail.
risky     Programs that rely on more than the contract promises can fail.
code      Names in generated code change. Requests, responses and events stay the same.
safe      Existing programs continue to work.

Exit status: 0 without breaking changes, 1 with breaking changes or if the contract is faulty, 2 for wrong usage.
`,
    )
    .action(
      shell.action((base: string | undefined, options: Options) =>
        reportResults('muster diff', options, () => compare(base, options)),
      ),
    )
}

async function compare(base: string | undefined, options: Options): Promise<CheckReport> {
  if (options.release && base !== undefined)
    throw new UsageError("option '--release' compares with the last release: leave the base out")
  const root = options.revision ?? ROOT
  const today = new Date()
  const difference = await diff({ base, root, today })
  const isBreaking = difference.changes.some(({ level }) => level === 'breaking')
  if (options.release) assertReleasable(difference)
  const isFailed = isBreaking || difference.problems.length > 0
  const isReleased = options.release === true && !isFailed
  if (options.changelog || isReleased) await addEntry(join(root, 'CHANGELOG.md'), difference, today)
  if (isReleased) await keepReleased(root)
  return {
    output: {
      document: difference,
      text: formatDifference(difference, isReleased),
      failed: isFailed,
    },
    results: [...difference.changes.map(toResult), ...difference.problems.map(toFault)],
  }
}

const RESULT_LEVELS = {
  breaking: 'error',
  risky: 'warning',
  code: 'notice',
  safe: 'notice',
} as const

/** The result for a part that is gone has no file and line, because only the base has the part. */
function toResult({ level, id, file, line, isGone, concerns, part, what }: ListedChange): Result {
  return {
    level: RESULT_LEVELS[level],
    rule: id,
    message: `${listNames(concerns)}: ${part} ${what}.`,
    file: isGone ? null : file,
    line: isGone ? null : line,
  }
}

function toFault({ file, line, problem }: Problem): Result {
  return { level: 'error', rule: 'consistent', message: problem, file, line }
}

function assertReleasable({ from, to, changes }: Difference): void {
  if (from !== to) return
  if (changes.length === 0)
    throw new Refused(`${to} is the last release, and the contract has not changed since`)
  throw new Refused(
    `${to} is the last release, and the contract has changed: raise info.version of openapi.yaml`,
  )
}

async function addEntry(file: string, difference: Difference, today: Date): Promise<void> {
  const changelog = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  await writeFile(file, withEntry(changelog, difference, today))
}

function formatDifference(difference: Difference, isReleased: boolean): string {
  const released = `${difference.to} is now the last release. Commit ${RELEASED}/ and CHANGELOG.md.`
  if (isReleased && difference.from === null) return released
  const lines = formatChanges(difference)
  const { problems } = difference
  if (problems.length > 0) lines.push('', ...problems.map(formatProblem))
  if (isReleased) lines.push('', released)
  return lines.join('\n')
}

function formatProblem({ file, line, problem }: Problem): string {
  return `${file}:${line} ${problem}`
}

function formatChanges({ from, changes }: Difference): string[] {
  if (from === null)
    return [
      'There is no release to compare with. ' +
        `To create the first release in ${RELEASED}/, run:  muster diff --release`,
    ]
  if (changes.length === 0) return ['No change for clients or receivers.']
  const count = (level: ListedChange['level']): string =>
    `${changes.filter((change) => change.level === level).length} ${level}`
  return [...changes.map(formatChange), '', LEVELS.map(count).join(', ')]
}

function formatChange({
  level,
  id,
  file,
  line,
  isGone,
  concerns,
  part,
  what,
}: ListedChange): string {
  const place = `${isGone ? 'base ' : ''}${file}:${line}`
  return `${level.padEnd('breaking'.length)}  ${place} ${id} — ${listNames(concerns)}: ${part} ${what}.`
}

function listNames(concerns: string[]): string {
  return concerns.length > MAX_NAMES
    ? `${concerns.slice(0, MAX_NAMES - 1).join(', ')} and ${concerns.length - MAX_NAMES + 1} more`
    : concerns.join(', ')
}
