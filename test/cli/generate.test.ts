/** `muster generate` and `muster dev` on this contract. How soon they are done is `npm run bench`'s to say. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { withPing } from '../repository.ts'
import { copyOfRepository, type Tree } from '../scripts/tree.ts'

const LONG_MS = 120_000

async function generatedOf(tree: Tree): Promise<Record<string, string>> {
  const directory = tree.path('generated')
  const names = (await readdir(directory)).sort()
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const),
    ),
  )
}

describe('generate', () => {
  it('from nothing: the committed bytes, each time', { timeout: LONG_MS }, async () => {
    await using tree = await copyOfRepository()
    const committed = await generatedOf(tree)
    for (let time = 0; time < 2; time++) {
      await rm(tree.path('generated'), { recursive: true })
      expect((await tree.run('bin/muster.js', ['generate'])).status).toBe(0)
      expect(await generatedOf(tree)).toEqual(committed)
    }
  })

  it('refuses a contract that it cannot generate from, by its line, and writes nothing', {
    timeout: LONG_MS,
  }, async () => {
    await using tree = await copyOfRepository()
    const committed = await generatedOf(tree)
    await tree.replace(
      'openapi.yaml',
      "$ref: '#/components/responses/TaskList'",
      "$ref: '#/components/responses/TaskLst'",
    )
    const line =
      (await tree.read('openapi.yaml')).split('\n').findIndex((text) => text.includes('TaskLst')) +
      1
    for (const args of [['generate'], ['generate', '--check']])
      expect(await tree.run('bin/muster.js', args)).toEqual({
        status: 1,
        output: `openapi.yaml:${line} refers to #/components/responses/TaskLst, which does not exist: correct the reference or add its target\n`,
      })
    expect(await generatedOf(tree)).toEqual(committed)
  })
})

describe('dev', () => {
  it('serves a change of the contract, and one of the code', { timeout: LONG_MS }, async () => {
    await using tree = await copyOfRepository()
    const first = tree.start(['serve', '--json'], { PORT: '0' })
    const { url, first_account: account } = JSON.parse(
      await until('it is ready', () => first.output().includes('\n') && first.output(), LONG_MS),
    )
    await first.stop()
    const dev = tree.start(['dev'], { PORT: new URL(url).port, RATE_LIMIT_PER_MINUTE: '1000000' })
    const answered = (status: number) =>
      until(
        `GET /ping is answered with ${status}: ${dev.output()}`,
        async () => {
          const answer = await fetch(`${url}/public/v1/ping`, {
            headers: { Authorization: `Bearer ${account.token}` },
          }).catch(() => undefined)
          return answer?.status === status
        },
        LONG_MS / 4,
      )
    await answered(404)
    const contract = await tree.read('openapi.yaml')
    const handler = (status: number) =>
      `import { StatusError } from '../errors.ts'\n\nexport async function getPing(): Promise<void> {\n  if (${status} === 422) throw new StatusError(422, 'No')\n}\n`
    // Twice, since a file that is there again is another one to those who watch files.
    for (let time = 0; time < 2; time++) {
      await tree.write('openapi.yaml', withPing(contract))
      await answered(501)
      await tree.write('handlers/getPing.ts', handler(204))
      await answered(204)
      await tree.write('handlers/getPing.ts', handler(422))
      await answered(422)
      await tree.remove('handlers/getPing.ts')
      await tree.write('openapi.yaml', contract)
      await answered(404)
    }
  })
})
