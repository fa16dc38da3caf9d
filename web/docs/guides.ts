/** The pages written by hand, here called guides: docs/guides/, docs/ and the changelog. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

export interface Guide {
  /** The ID of the page, for example `guides/authentication`. */
  id: string
  /** Relative to the root, for example `docs/guides/authentication.md`. */
  file: string
  title: string
  text: string
  group: 'guides' | 'internals' | 'changelog'
}

/** The sections of the home page, with their guides in the order of the navigation. Other guides
 *  come after these, in the section of tools. */
const SECTIONS: Record<string, string[]> = {
  'First steps': ['getting-started', 'authentication', 'errors'],
  Requests: ['lists', 'bulk', 'imports', 'idempotency', 'versions', 'rate-limits', 'screening'],
  Webhooks: ['webhooks', 'delivery', 'catching-up', 'keep-a-copy'],
  'Programs and tools': ['cookbook'],
}
const NAVIGATION_ORDER = Object.values(SECTIONS).flat()

/** The section of a guide on the home page. */
export function sectionOf({ id }: Guide): string {
  const [, name = ''] = id.split('/')
  const found = Object.keys(SECTIONS).find((section) => SECTIONS[section]?.includes(name))
  return found ?? 'Programs and tools'
}

/** Returns the guides in the order of the navigation. */
export function readGuides(root: string): Guide[] {
  const readGroup = (group: Guide['group'], folder: string, prefix: string): Guide[] =>
    sortedNames(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) =>
        readGuide(root, group, posix.join(folder, name), prefix + name.replace(/\.md$/, '')),
      )
  const changelog = existsSync(join(root, 'CHANGELOG.md'))
    ? [readGuide(root, 'changelog', 'CHANGELOG.md', 'changelog')]
    : []
  return [
    ...readGroup('guides', 'docs/guides', 'guides/'),
    ...readGroup('internals', 'docs', 'inside/'),
    ...changelog,
  ]
}

function readGuide(root: string, group: Guide['group'], file: string, id: string): Guide {
  const text = readFileSync(join(root, file), 'utf8')
  return { id, file, group, text, title: /^# +(.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? id }
}

function sortedNames(directory: string): string[] {
  return existsSync(directory)
    ? readdirSync(directory).sort(
        (a, b) => navigationPlace(a) - navigationPlace(b) || (a < b ? -1 : 1),
      )
    : []
}

function navigationPlace(name: string): number {
  const place = NAVIGATION_ORDER.indexOf(name.replace(/\.md$/, ''))
  return place === -1 ? NAVIGATION_ORDER.length : place
}

/** The target of a link in `guide`, relative to the root. */
export function linkedFile(guide: Guide, href: string): string {
  return posix.join(dirname(guide.file), href.split('#')[0] ?? '')
}
