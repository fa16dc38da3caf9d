/** `muster contract` for a document of another team. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { init } from '../../scripts/generate/init.ts'
import { folder, newFolder, PETSTORE } from './document-folder.ts'
import { LIBRARY } from './documents.ts'
import { newMuster } from './muster.ts'

describe('muster contract --root', () => {
  it('records the requests of failures, without the key', async () => {
    const root = join(folder, 'recorded')
    await init(root, PETSTORE)
    await using muster = await newMuster()
    const har = join(folder, 'failures.har')
    const options = ['--root', root, '--key', 'mst/key', '--har', har, '--json']
    const { status, stdout } = await muster.run(['contract', ...options])
    const { operations } = JSON.parse(stdout) as { operations: { failures: string[] }[] }
    const failures = operations.flatMap((operation) => operation.failures)
    const recording = await readFile(har, 'utf8')
    const { entries } = JSON.parse(recording).log
    expect([status, entries.length]).toEqual([1, failures.length])
    expect(entries).toContainEqual(
      expect.objectContaining({
        comment: expect.stringContaining('getInventory a valid request: responds with 501'),
        request: expect.objectContaining({
          url: expect.stringMatching(/\/v2\/store\/inventory$/),
          headers: [{ name: 'api_key', value: '$KEY' }],
        }),
        response: expect.objectContaining({ status: 501 }),
      }),
    )
    expect(recording).not.toContain('mst/key')
  })

  it('reports one failure if nothing responds at the URL', async () => {
    await using muster = await newMuster()
    const root = await newFolder('unanswered', { 'openapi.json': await readFile(PETSTORE, 'utf8') })
    const url = 'http://127.0.0.1:9'
    const { stdout, status } = await muster.run([
      ...['contract', '--root', root, '--url', url, '--json'],
    ])
    expect(status).toBe(1)
    expect(JSON.parse(stdout).results).toEqual([
      expect.objectContaining({ message: expect.stringMatching(`^Nothing responds at ${url}: `) }),
    ])
  })

  it('refuses a folder without generated/, also with --allow-stale', async () => {
    const root = await newFolder('not-generated', {
      'openapi.json': await readFile(PETSTORE, 'utf8'),
    })
    await using muster = await newMuster()
    const { stderr } = await muster.run(['contract', '--root', root, '--allow-stale'])
    expect(stderr).toBe('generated/openapi.json does not exist. Run "npm run generate" first.\n')
  })

  it('refuses a document that was changed after generated/ was written, unless --allow-stale is set', async () => {
    const root = join(folder, 'stale')
    await init(root, PETSTORE)
    const file = join(root, 'openapi.json')
    await writeFile(file, (await readFile(file, 'utf8')).replace('Petstore', 'Pets'))
    await using muster = await newMuster()
    for (const args of [['contract'], ['docs', '--out', join(folder, 'stale-site')]]) {
      const refused = await muster.run([...args, '--root', root])
      expect([args, refused.stderr]).toEqual([
        args,
        'generated/ was not written from openapi.json as it is now. Run "npm run generate" first.\n',
      ])
      const { stderr } = await muster.run([...args, '--root', root, '--allow-stale'])
      expect([args, stderr]).toEqual([args, ''])
    }
  })

  it.each([[['--runs', '3']], [['--seed', '7']], [['--only', 'createTask']], [['--prove']]])(
    'refuses %j, which only tests of an installation have',
    async (options) => {
      const root = await newFolder('options', { 'openapi.yaml': LIBRARY })
      await using muster = await newMuster()
      const [option = ''] = options
      expect(await muster.run(['contract', '--root', root, ...options])).toMatchObject({
        status: 2,
        stderr: expect.stringContaining(`'--root <folder>' cannot be used with option '${option}`),
      })
    },
  )
})
