import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { withEntry } from '../scripts/diff/changelog.ts'
import { junit } from '../scripts/diff/junit.ts'
import { type Change, type Difference, diff } from '../scripts/diff.ts'
import { examples, type Output, type Shell } from './shell.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MANY = 4

interface Options {
  revision?: string
  junit?: string
  changelog?: boolean
}

export function addDiff(program: Command, shell: Shell): void {
  program
    .command('diff')
    .description(
      'Compare openapi.yaml and asyncapi.yaml with an earlier revision: what breaks a client or a receiver, what may, and what does not. Exits with 1 if anything breaks them that was not deprecated and past its sunset.',
    )
    .argument('<base>', 'a git revision, or a folder with the two earlier files')
    .option('--revision <folder>', 'where the two later files are: by default, those of this installation')
    .option('--junit <file>', 'write the changes as JUnit XML, too')
    .option('--changelog', 'put an entry at the top of CHANGELOG.md, beside the later files')
    .addHelpText('after', examples('muster diff main', 'muster diff v1.4.0 --changelog', 'muster diff ../released --junit diff.xml'))
    .action(
      shell.action(async (base: string, options: Options): Promise<Output> => {
        const root = options.revision === undefined ? ROOT : resolve(options.revision)
        const today = new Date()
        const difference = await diff({ base, root, today })
        if (options.junit !== undefined) await writeFile(options.junit, junit(difference))
        if (options.changelog) await addEntry(join(root, 'CHANGELOG.md'), difference, today)
        return { document: difference, text: say(difference), failed: difference.changes.some(({ level }) => level === 'breaking') }
      }),
    )
}

async function addEntry(file: string, difference: Difference, today: Date): Promise<void> {
  const before = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  await writeFile(file, withEntry(before, difference, today))
}

function say({ changes }: Difference): string {
  if (changes.length === 0) return 'Nothing has changed that a client or a receiver can see.'
  const count = (level: Change['level']): string => `${changes.filter((change) => change.level === level).length} ${level}`
  return [...changes.map(lineOf), '', `${count('breaking')}, ${count('risky')}, ${count('safe')}`].join('\n')
}

function lineOf({ level, id, file, line, isGone, concerns, part, what }: Change): string {
  const names =
    concerns.length > MANY ? `${concerns.slice(0, MANY - 1).join(', ')} and ${concerns.length - MANY + 1} more` : concerns.join(', ')
  return `${level.padEnd('breaking'.length)}  ${isGone ? 'base ' : ''}${file}:${line} ${id} — ${names}: ${part} ${what}.`
}
