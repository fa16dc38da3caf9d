/** Writes CHANGELOG.md: one entry for each release of the contract, the newest first. */
import type { Change, Difference } from './diff.ts'
import type { Level } from './rules.ts'

const TITLE = '# Changelog'

const HEADINGS: Record<Level, string> = {
  breaking: 'Breaking',
  risky: 'Look at these',
  safe: 'New, and of no consequence for what exists',
}

/** Adds an entry for the changes, or replaces the entry of the same version and day. Text below `## 1.1.0 · unreleased` moves to
 *  the top of the entry, and the text before the first entry stays. */
export function withEntry(changelog: string, difference: Difference, today: Date): string {
  const heading = `## ${difference.to} · ${today.toISOString().slice(0, 10)}`
  const [introduction = '', entries = ''] = changelog.replace(TITLE, '').split(/^(?=## )(.*)/ms)
  const [first = '', ...others] = entries.split(/^(?=## )/m)
  const draft = `## ${difference.to} · unreleased\n`
  const isDraft = first.startsWith(draft)
  const words = isDraft ? first.slice(draft.length).trim() : ''
  const isReplaced = isDraft || first.startsWith(`${heading}\n`)
  const kept = (isReplaced ? others : [first, ...others]).join('').trim()
  return `${[TITLE, introduction.trim(), entryOf(heading, words, difference), kept].filter((part) => part !== '').join('\n\n')}\n`
}

function entryOf(heading: string, words: string, { changes }: Difference): string {
  const sections = (Object.keys(HEADINGS) as Level[])
    .map((level) => ({
      level,
      lines: changes.filter((change) => change.level === level).map(lineOf),
    }))
    .filter(({ lines }) => lines.length > 0)
    .map(({ level, lines }) => `### ${HEADINGS[level]}\n\n${lines.join('\n')}`)
  const parts = [words, ...sections].filter((part) => part !== '')
  return [
    heading,
    ...(parts.length === 0 ? ['No change that a client or receiver can see.'] : parts),
  ].join('\n\n')
}

const MANY = 4

function lineOf({ concerns, part, what }: Change): string {
  const names =
    concerns.length > MANY
      ? `${concerns.length} operations`
      : concerns.map((name) => `\`${name}\``).join(', ')
  return `- ${names}: ${part} ${what}.`
}
