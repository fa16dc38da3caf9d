/** `muster generate` and `muster dev` on a copy of this repository. `npm run bench` measures their
 *  speed. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { withPing } from '../repository.ts'
import { copyOfRepository, serveTree, type Tree } from '../scripts/tree.ts'

const TIMEOUT_MS = 120_000

async function readGenerated(tree: Tree): Promise<Record<string, string>> {
  const directory = tree.path('generated')
  const names = (await readdir(directory)).sort()
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const),
    ),
  )
}

describe('generate', () => {
  it('writes the committed files again, byte for byte', { timeout: TIMEOUT_MS }, async () => {
    await using tree = await copyOfRepository()
    const committed = await readGenerated(tree)
    for (let time = 0; time < 2; time++) {
      await rm(tree.path('generated'), { recursive: true })
      expect((await tree.muster(['generate'])).status).toBe(0)
      expect(await readGenerated(tree)).toEqual(committed)
    }
  })

  it('--check lists the stale files and exits with 1, also in JSON', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await using tree = await copyOfRepository()
    const fresh = await tree.muster(['generate', '--check', '--json'])
    expect([fresh.status, JSON.parse(fresh.output)]).toMatchObject([0, { written: [], stale: [] }])
    await tree.write('generated/events.ts', '')
    const committed = await readGenerated(tree)
    expect(await tree.muster(['generate', '--check'])).toMatchObject({
      status: 1,
      output: expect.stringContaining('generated/events.ts is stale'),
    })
    const stale = await tree.muster(['generate', '--check', '--json'])
    expect([stale.status, JSON.parse(stale.output)]).toMatchObject([
      1,
      { written: [], removed: [], stale: ['generated/events.ts is stale'] },
    ])
    expect(await readGenerated(tree)).toEqual(committed)
  })

  it('names the line of a broken reference, and writes nothing', {
    timeout: TIMEOUT_MS,
  }, async () => {
    await using tree = await copyOfRepository()
    const committed = await readGenerated(tree)
    await tree.replace(
      'openapi.yaml',
      "$ref: '#/components/responses/TaskList'",
      "$ref: '#/components/responses/TaskLst'",
    )
    const line =
      (await tree.read('openapi.yaml')).split('\n').findIndex((text) => text.includes('TaskLst')) +
      1
    for (const args of [['generate'], ['generate', '--check']])
      expect(await tree.muster(args)).toEqual({
        status: 1,
        output:
          `openapi.yaml:${line} refers to #/components/responses/TaskLst, ` +
          'which does not exist: correct the reference or add its target\n',
      })
    expect(await tree.muster(['serve'])).toEqual({
      status: 1,
      output:
        'openapi.yaml was changed after generated/ was written. Run "npx muster generate" first.\n',
    })
    const { status, output } = await tree.muster(['generate', '--check', '--json'])
    expect({ status, ...JSON.parse(output.split('\n')[0] ?? '') }).toMatchObject({
      status: 1,
      error: expect.stringContaining('TaskLst'),
      results: [{ level: 'error', rule: 'cannot-run', file: 'openapi.yaml', line }],
    })
    expect(await readGenerated(tree)).toEqual(committed)
  })
})

describe('dev', () => {
  it('applies changes of the contract and of a handler', { timeout: TIMEOUT_MS }, async () => {
    await using tree = await copyOfRepository()
    const { running, url, key } = await serveTree(tree)
    await running.stop()
    const dev = tree.start(['dev'], { PORT: new URL(url).port, RATE_LIMIT_PER_MINUTE: '1000000' })
    const waitForStatus = (status: number) =>
      until(
        `GET /ping returns ${status}: ${dev.output()}`,
        async () => {
          const response = await fetch(`${url}/public/v1/ping`, {
            headers: { Authorization: `Bearer ${key}` },
          }).catch(() => undefined)
          return response?.status === status
        },
        TIMEOUT_MS / 4,
      )
    await waitForStatus(404)
    const contract = await tree.read('openapi.yaml')
    const handler = (status: number) =>
      `import { StatusError } from '../errors.ts'

export async function getPing(): Promise<void> {
  if (${status} === 422) throw new StatusError(422, 'No')
}
`
    // Twice, because a recreated file is a different file to a file watcher.
    for (let time = 0; time < 2; time++) {
      await tree.write('openapi.yaml', withPing(contract))
      await waitForStatus(501)
      await tree.write('handlers/getPing.ts', handler(204))
      await waitForStatus(204)
      await tree.write('handlers/getPing.ts', handler(422))
      await waitForStatus(422)
      await tree.remove('handlers/getPing.ts')
      await tree.write('openapi.yaml', contract)
      await waitForStatus(404)
    }
  })
})
