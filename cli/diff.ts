import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { Refused } from '../errors.ts'
import { withEntry } from '../scripts/diff/changelog.ts'
import { type Change, type Difference, diff, keepReleased, RELEASED } from '../scripts/diff/diff.ts'
import { junit } from '../scripts/diff/junit.ts'
import { examples, type Output, type Shell, WrongUsage } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MANY = 4

interface Options {
  revision?: string
  junit?: string
  changelog?: boolean
  release?: boolean
}

export function addDiff(program: Command, shell: Shell): void {
  program
    .command('diff')
    .description(
      'Compare openapi.yaml and asyncapi.yaml with the last release, or with an earlier revision: what breaks a client or a receiver, what may, and what does not. Exits with 1 if anything breaks them that was not deprecated and past its sunset.',
    )
    .argument(
      '[base]',
      `a git revision, or a folder with the two earlier files (default: ${RELEASED}/, the last release)`,
    )
    .option(
      '--revision <folder>',
      'where the two later files are: by default, those of this installation',
    )
    .option('--junit <file>', 'write the changes as JUnit XML, too')
    .option('--changelog', 'put an entry at the top of CHANGELOG.md, beside the later files')
    .option(
      '--release',
      `unless something breaks: put the entry there, and keep the later files in ${RELEASED}/ as the last release`,
    )
    .addHelpText(
      'after',
      `${examples('muster diff', 'muster diff main', 'muster diff v1.4.0 --changelog', 'muster diff ../earlier --junit diff.xml', 'muster diff --release')}
breaking  somebody who keeps to the contract stops working
risky     somebody who assumes more than it promises may stop working
safe      nobody notices who does not look for it
`,
    )
    .action(shell.action((base: string | undefined, options: Options) => compare(base, options)))
}

async function compare(base: string | undefined, options: Options): Promise<Output> {
  if (options.release && base !== undefined)
    throw new WrongUsage("option '--release' compares with the last release: leave the base out")
  const root = options.revision === undefined ? ROOT : resolve(options.revision)
  const today = new Date()
  const difference = await diff({ base, root, today })
  const isBreaking = difference.changes.some(({ level }) => level === 'breaking')
  if (options.release) assertReleasable(difference)
  const isReleased = options.release === true && !isBreaking
  if (options.junit !== undefined) await writeFile(options.junit, junit(difference))
  if (options.changelog || isReleased) await addEntry(join(root, 'CHANGELOG.md'), difference, today)
  if (isReleased) await keepReleased(root)
  return { document: difference, text: say(difference, isReleased), failed: isBreaking }
}

function assertReleasable({ from, to, changes }: Difference): void {
  if (from !== to) return
  if (changes.length === 0)
    throw new Refused(`${to} is the last release, and nothing has changed since`)
  throw new Refused(
    `${to} is the last release, and there are changes since: raise info.version of openapi.yaml`,
  )
}

async function addEntry(file: string, difference: Difference, today: Date): Promise<void> {
  const before = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  await writeFile(file, withEntry(before, difference, today))
}

function say(difference: Difference, isReleased: boolean): string {
  const lines = sayChanges(difference)
  const released = `${difference.to} is the last release now: commit ${RELEASED}/ and CHANGELOG.md.`
  return [...lines, ...(isReleased ? ['', released] : [])].join('\n')
}

function sayChanges({ from, changes }: Difference): string[] {
  if (from === null)
    return [
      `There is no release to compare with yet: muster diff --release makes the first, in ${RELEASED}/.`,
    ]
  if (changes.length === 0) return ['Nothing has changed that a client or a receiver can see.']
  const count = (level: Change['level']): string =>
    `${changes.filter((change) => change.level === level).length} ${level}`
  return [...changes.map(lineOf), '', `${count('breaking')}, ${count('risky')}, ${count('safe')}`]
}

function lineOf({ level, id, file, line, isGone, concerns, part, what }: Change): string {
  const names =
    concerns.length > MANY
      ? `${concerns.slice(0, MANY - 1).join(', ')} and ${concerns.length - MANY + 1} more`
      : concerns.join(', ')
  return `${level.padEnd('breaking'.length)}  ${isGone ? 'base ' : ''}${file}:${line} ${id} — ${names}: ${part} ${what}.`
}
