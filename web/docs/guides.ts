/** The hand-written part: docs/guides/, what else is in docs/, and the changelog. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

export interface Guide {
  /** The page's id, such as `guides/authentication`. */
  id: string
  /** Relative to the root, such as `docs/guides/authentication.md`. */
  file: string
  title: string
  text: string
  group: 'guides' | 'inside' | 'changelog'
}

/** Of the guides in the navigation. One that is not listed comes after these. */
const ORDER = [
  'getting-started',
  'authentication',
  'lists',
  'idempotency',
  'versions',
  'rate-limits',
  'errors',
  'webhooks',
  'delivery',
]

/** In the order of the navigation. */
export function readGuides(root: string): Guide[] {
  const read = (group: Guide['group'], folder: string, prefix: string): Guide[] =>
    namesIn(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) =>
        readGuide(root, group, posix.join(folder, name), prefix + name.replace(/\.md$/, '')),
      )
  const changelog = existsSync(join(root, 'CHANGELOG.md'))
    ? [readGuide(root, 'changelog', 'CHANGELOG.md', 'changelog')]
    : []
  return [
    ...read('guides', 'docs/guides', 'guides/'),
    ...read('inside', 'docs', 'inside/'),
    ...changelog,
  ]
}

function readGuide(root: string, group: Guide['group'], file: string, id: string): Guide {
  const text = readFileSync(join(root, file), 'utf8')
  return { id, file, group, text, title: /^# +(.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? id }
}

function namesIn(directory: string): string[] {
  return existsSync(directory)
    ? readdirSync(directory).sort((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1))
    : []
}

function placeOf(name: string): number {
  const place = ORDER.indexOf(name.replace(/\.md$/, ''))
  return place === -1 ? ORDER.length : place
}

/** Which file a link in `guide` means, relative to the root. */
export function fileBehind(guide: Guide, href: string): string {
  return posix.join(dirname(guide.file), href.split('#')[0] ?? '')
}
