/** `muster diff` against the last release, and `muster diff --release`. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { replaceOnce } from '../repository.ts'
import { NOTES } from '../scripts/contract-tree.ts'
import { newMuster } from './muster.ts'

const TODAY = new Date().toISOString().slice(0, 10)

/** A temporary project with two small contracts. */
async function newProject() {
  const root = await mkdtemp(join(tmpdir(), 'muster-diff-'))
  await cp(NOTES, root, { recursive: true })
  const muster = await newMuster()
  const read = (file: string): Promise<string> => readFile(join(root, file), 'utf8')
  return {
    read,
    write: (file: string, text: string) => writeFile(join(root, file), text),
    /** Replaces the first `from` of openapi.yaml. */
    async replace(from: string, to: string) {
      await writeFile(join(root, 'openapi.yaml'), replaceOnce(await read('openapi.yaml'), from, to))
    },
    diff: (...args: string[]) => muster.run(['diff', '--revision', root, ...args]),
    path: (file: string) => join(root, file),
    async [Symbol.asyncDispose]() {
      await muster[Symbol.asyncDispose]()
      await rm(root, { recursive: true })
    },
  }
}

const VERSION = 'version: 1.0.0'
/** The required fields of a request. To require another one is a breaking change. */
const REQUIRED = 'required: [title]\n'
const MORE_REQUIRED = 'required: [title, colour]\n'

describe('diff without a base', () => {
  it('reports that there is no release, also in JUnit XML and JSON', async () => {
    await using project = await newProject()
    // In a folder that does not exist yet.
    const xml = project.path('reports/diff.xml')
    expect(await project.diff('--junit', xml)).toEqual({
      status: 0,
      stdout:
        'There is no release to compare with. To create the first release in docs/released/, run:  muster diff --release\n',
      stderr: '',
    })
    expect(await readFile(xml, 'utf8')).toContain('tests="1" failures="0"')
    expect(JSON.parse((await project.diff('--json')).stdout)).toEqual({
      from: null,
      to: '1.0.0',
      changes: [],
      problems: [],
      results: [],
    })
  })

  it('compares with the last release, and exits with 1 for a breaking change', async () => {
    await using project = await newProject()
    await project.diff('--release')
    expect(await project.diff()).toMatchObject({
      status: 0,
      stdout: 'No change for clients or receivers.\n',
    })
    await project.replace(REQUIRED, MORE_REQUIRED)
    expect(await project.diff()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('breaking  openapi.yaml:'),
    })
  })
})

describe('diff --release', () => {
  it('copies the contracts and dates the unreleased entry', async () => {
    await using project = await newProject()
    await project.write(
      'CHANGELOG.md',
      '# Changelog\n\nWhat changes.\n\n## 1.0.0 · unreleased\n\nThe first.\n',
    )
    expect(await project.diff('--release')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^1\.0\.0 is now the last release\./),
    })
    expect(await project.read('CHANGELOG.md')).toBe(
      `# Changelog\n\nWhat changes.\n\n## 1.0.0 · ${TODAY}\n\nThe first.\n`,
    )
    for (const file of ['openapi.yaml', 'asyncapi.yaml'])
      expect(await project.read(`docs/released/${file}`)).toBe(await project.read(file))
    expect(await project.diff('--release')).toEqual({
      status: 1,
      stdout: '',
      stderr: '1.0.0 is the last release, and the contract has not changed since\n',
    })
  })

  it('requires a new version, and adds the changes below the text of the unreleased entry', async () => {
    await using project = await newProject()
    await project.diff('--release')
    const released = await project.read('docs/released/openapi.yaml')
    await project.replace('title: { type: string, minLength: 1 }', 'title: { type: string }')
    const { status, stderr } = await project.diff('--release')
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining('raise info.version of openapi.yaml'),
    })
    expect(await project.read('docs/released/openapi.yaml')).toBe(released)

    await project.replace(VERSION, 'version: 1.1.0')
    await project.write(
      'CHANGELOG.md',
      '# Changelog\n\n## 1.1.0 · unreleased\n\nTitles may be empty.\n\n' +
        '## 1.0.0 · 2026-01-01\n\nThe first.\n',
    )
    expect((await project.diff('--release')).status).toBe(0)
    const entry = `## 1.1.0 · ${TODAY}\n\nTitles may be empty.\n\n### `
    expect(await project.read('CHANGELOG.md')).toMatch(`# Changelog\n\n${entry}`)
    expect(await project.read('CHANGELOG.md')).toContain(
      '\n\n## 1.0.0 · 2026-01-01\n\nThe first.\n',
    )
    expect(await project.read('docs/released/openapi.yaml')).toBe(
      await project.read('openapi.yaml'),
    )
  })

  it('refuses breaking changes', async () => {
    await using project = await newProject()
    await project.diff('--release')
    const [released, changelog] = [
      await project.read('docs/released/openapi.yaml'),
      await project.read('CHANGELOG.md'),
    ]
    await project.replace(VERSION, 'version: 2.0.0')
    await project.replace(REQUIRED, MORE_REQUIRED)
    expect((await project.diff('--release')).status).toBe(1)
    expect([
      await project.read('docs/released/openapi.yaml'),
      await project.read('CHANGELOG.md'),
    ]).toEqual([released, changelog])
  })

  it('refuses a base with status 2', async () => {
    await using project = await newProject()
    expect(await project.diff('main', '--release')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('leave the base out'),
    })
  })
})
