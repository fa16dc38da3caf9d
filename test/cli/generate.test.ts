/** `muster generate` and `muster dev` on this contract: what they give, and how soon. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { until } from '../helpers.ts'
import { copyOfRepository, type Tree } from '../scripts/tree.ts'

const LONG_MS = 120_000
const GENERATE_MS = 3_000
const FOLLOW_MS = 2_000

async function generatedOf(tree: Tree): Promise<Record<string, string>> {
  const directory = tree.path('generated')
  const names = (await readdir(directory)).sort()
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const)))
}

describe('generate', () => {
  it('from nothing: the committed bytes, each time, within 3 seconds', { timeout: LONG_MS }, async () => {
    await using tree = await copyOfRepository()
    const committed = await generatedOf(tree)
    const tookMs: number[] = []
    for (let time = 0; time < 3; time++) {
      await rm(tree.path('generated'), { recursive: true })
      const begun = performance.now()
      expect((await tree.run('bin/muster.js', ['generate'])).status).toBe(0)
      tookMs.push(performance.now() - begun)
      expect(await generatedOf(tree)).toEqual(committed)
    }
    // The quickest: the others may have waited for what else runs here.
    expect(Math.min(...tookMs)).toBeLessThan(GENERATE_MS)
  })

  it('refuses a contract that it cannot generate from, by its line, and writes nothing', { timeout: LONG_MS }, async () => {
    await using tree = await copyOfRepository()
    const committed = await generatedOf(tree)
    await tree.replace('openapi.yaml', "$ref: '#/components/responses/TaskList'", "$ref: '#/components/responses/TaskLst'")
    const line = (await tree.read('openapi.yaml')).split('\n').findIndex((text) => text.includes('TaskLst')) + 1
    for (const args of [['generate'], ['generate', '--check']])
      expect(await tree.run('bin/muster.js', args)).toEqual({
        status: 1,
        output: `openapi.yaml:${line} refers to #/components/responses/TaskLst, which does not exist: correct the reference or add its target\n`,
      })
    expect(await generatedOf(tree)).toEqual(committed)
  })
})

const PING = `  /public/v1/ping:
    get:
      operationId: getPing
      tags: [Events]
      summary: Ping
      description: Says that it is there.
      responses:
        '204': { $ref: '#/components/responses/NoContent' }
        '422': { $ref: '#/components/responses/ValidationFailed' }
`

describe('dev', () => {
  it('serves a change of the contract, and one of the code, within 2 seconds', { timeout: LONG_MS }, async () => {
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
          const answer = await fetch(`${url}/public/v1/ping`, { headers: { Authorization: `Bearer ${account.token}` } }).catch(
            () => undefined,
          )
          return answer?.status === status
        },
        LONG_MS / 4,
      )
    await answered(404)
    const contract = await tree.read('openapi.yaml')
    const handler = (status: number) =>
      `import type { Context } from '../server/context.ts'\n\nexport async function getPing(ctx: Context<'getPing'>): Promise<void> {\n  ctx.assert(${status} !== 422, 422)\n}\n`
    const tookMs = { contract: [] as number[], code: [] as number[] }
    const measure = async (what: keyof typeof tookMs, change: () => Promise<unknown>, status: number) => {
      const begun = performance.now()
      await change()
      await answered(status)
      tookMs[what].push(performance.now() - begun)
    }
    // Twice, since a file that is there again is another one to those who watch files.
    for (let time = 0; time < 2; time++) {
      await measure('contract', () => tree.write('openapi.yaml', contract.replace('\npaths:\n', `\npaths:\n${PING}`)), 501)
      await measure('code', () => tree.write('handlers/getPing.ts', handler(204)), 204)
      await measure('code', () => tree.write('handlers/getPing.ts', handler(422)), 422)
      await tree.remove('handlers/getPing.ts')
      await measure('contract', () => tree.write('openapi.yaml', contract), 404)
    }
    for (const [what, times] of Object.entries(tookMs)) expect(Math.min(...times), what).toBeLessThan(FOLLOW_MS)
  })
})
