/** The text of CHANGELOG.md: one entry for each release of the contract, the newest first. */
import type { Difference, ListedChange } from './diff.ts'
import type { Level } from './rules.ts'

const TITLE = '# Changelog'

const HEADINGS: Record<Level, string> = {
  breaking: 'Breaking',
  risky: 'Risky',
  code: 'Generated code only',
  safe: 'Compatible',
}

/** Adds an entry for the changes, or replaces the entry of the same version and day. Text below
 *  the draft heading of this version, such as `## 1.1.0 · unreleased`, moves to the top of the
 *  entry. Text before the first entry stays. */
export function withEntry(changelog: string, difference: Difference, today: Date): string {
  const heading = `## ${difference.to} · ${today.toISOString().slice(0, 10)}`
  const [introduction = '', entries = ''] = changelog.replace(TITLE, '').split(/^(?=## )(.*)/ms)
  const [first = '', ...others] = entries.split(/^(?=## )/m)
  const draft = `## ${difference.to} · unreleased\n`
  const isDraft = first.startsWith(draft)
  const notes = isDraft ? first.slice(draft.length).trim() : ''
  const isReplaced = isDraft || first.startsWith(`${heading}\n`)
  const earlier = (isReplaced ? others : [first, ...others]).join('').trim()
  const entry = formatEntry(heading, notes, difference)
  const parts = [TITLE, introduction.trim(), entry, earlier].filter((part) => part !== '')
  return `${parts.join('\n\n')}\n`
}

function formatEntry(heading: string, notes: string, { changes }: Difference): string {
  const sections = (Object.keys(HEADINGS) as Level[])
    .map((level) => ({
      level,
      lines: changes.filter((change) => change.level === level).map(formatChange),
    }))
    .filter(({ lines }) => lines.length > 0)
    .map(({ level, lines }) => `### ${HEADINGS[level]}\n\n${lines.join('\n')}`)
  const parts = [notes, ...sections].filter((part) => part !== '')
  return [
    heading,
    ...(parts.length === 0 ? ['No change that a client or receiver can see.'] : parts),
  ].join('\n\n')
}

/** If a change concerns more operations or events, the entry has only their number. */
const MAX_LISTED_NAMES = 4

function formatChange({ id, file, concerns, part, what }: ListedChange): string {
  // Rules of words begin with `x-`, also those of asyncapi.yaml.
  const isOfEvents = id.startsWith('event-') || (id.startsWith('x-') && file === 'asyncapi.yaml')
  const names =
    concerns.length > MAX_LISTED_NAMES
      ? `${concerns.length} ${isOfEvents ? 'events' : 'operations'}`
      : concerns.map((name) => `\`${name}\``).join(', ')
  return `- ${names}: ${part} ${what}.`
}
