/** A documentation site with a changelog, and with deprecated operations and events. */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openSite, type Site } from '../../web/docs/site.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHANGELOG = `# Changelog

## 2.0.0

- **breaking** \`listTasks\`: see [the package](package.json). <b>
`

let root: string
let site: Site

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'muster-docs-'))
  for (const name of ['web', 'docs', 'node_modules', 'openapi.yaml', 'asyncapi.yaml'])
    await symlink(join(ROOT, name), join(root, name))
  await mkdir(join(root, 'generated'))
  await writeDeprecatedContracts()
  await writeFile(join(root, 'CHANGELOG.md'), CHANGELOG)
  site = openSite({ baseUrl: 'https://api.example.com', edition: 'server', root })
})
afterAll(() => rm(root, { recursive: true, force: true }))

/** Copies the generated contracts and deprecates `listTasks` and `task.created`. */
async function writeDeprecatedContracts(): Promise<void> {
  const read = async (name: string) =>
    JSON.parse(await readFile(join(ROOT, 'generated', name), 'utf8'))
  const openapi = await read('openapi.json')
  const asyncapi = await read('asyncapi.json')
  const days = { 'x-deprecated-since': '2026-05-01', 'x-sunset': '2027-05-01' }
  Object.assign(openapi.paths['/public/v1/tasks'].get, { deprecated: true, ...days })
  Object.assign(asyncapi.components.messages.TaskCreated, days)
  const contracts = {
    'openapi.json': openapi,
    'openapi-3.1.json': await read('openapi-3.1.json'),
    'asyncapi.json': asyncapi,
  }
  for (const [name, contract] of Object.entries(contracts))
    await writeFile(join(root, 'generated', name), JSON.stringify(contract))
}

const textOf = (id: string): string | undefined =>
  site
    .page(id)
    ?.replace(/<[^>]*>/g, '')
    .replace(/\s+/g, ' ')

it('CHANGELOG.md has a page, to which the home page links', () => {
  expect(site.page('changelog')).toContain('<h2 id="2-0-0">2.0.0</h2>')
  expect(site.page('index')).toContain('href="changelog"')
})

it('in the changelog, operation names become links, HTML is escaped, and links to unpublished files become text', () => {
  expect(site.page('changelog')).toContain(
    '<a href="operations/listTasks"><code>listTasks</code></a>: see the package. &lt;b&gt;',
  )
})

it.each(['operations/listTasks', 'events/task.created'])(
  '%s: says since when it is deprecated, and until when it stays',
  (id) => {
    expect(textOf(id)).toContain(
      'Deprecated since 2026-05-01: do not use it in new code. It may be removed on or after 2027-05-01.',
    )
  },
)

it.each([
  ['openapi.yaml', 'openapi.yaml', 'servers:\n  - url: /\n', 'servers:\n  - url: /v2\n'],
  ['openapi.json', 'generated/openapi.json', '"url":"/"', '"url":"/v2"'],
])(
  '%s with a server other than / is refused: the site names its own',
  async (name, file, from, to) => {
    const path = join(root, file)
    const text = await readFile(path, 'utf8')
    expect(text).toContain(from)
    await rm(path)
    await writeFile(path, text.replace(from, to))
    expect(() => openSite({ baseUrl: 'https://api.example.com', edition: 'server', root })).toThrow(
      `The first server of ${name} must be "/", but is /v2`,
    )
    await writeFile(path, text)
  },
)
