/** The commands that use generated/ notice a contract that was changed after `generate`. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { copyOfRepository } from './tree.ts'

const TIMEOUT_MS = 120_000

test('contract, mock and docs refuse a contract that was changed after generate', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  await tree.replace('openapi.yaml', '\ninfo:\n', '\n# changed\ninfo:\n')
  const har = tree.path('failures.har')
  const commands = [
    ['contract', '--only', 'getMe', '--har', har],
    ['mock', '--port', '0'],
    ['mock', '--port', '0', '--stateful'],
    ['docs', '--out', tree.path('site')],
  ]
  const reason =
    'openapi.yaml was changed after generated/ was written. Run "npx muster generate" first.'
  for (const args of commands)
    expect([args, await tree.muster(args)]).toEqual([
      args,
      { status: 1, output: expect.stringContaining(reason) },
    ])
  expect(await tree.exists('site')).toBe(false)
  expect(JSON.parse(await readFile(har, 'utf8')).log.entries).toEqual([])

  const allowed = ['docs', '--out', tree.path('site'), '--allow-stale']
  expect(await tree.muster(allowed)).toMatchObject({ status: 0 })
  const silent = ['--url', 'http://127.0.0.1:9', '--key', 'x', '--allow-stale']
  expect((await tree.muster(['contract', ...silent])).output).toContain('Nothing responds at')
})

test('contract writes --har also for a contract that cannot be read', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  await tree.replace('openapi.yaml', '\ninfo:\n', '\ninfo: [\n')
  const [har, xml] = [tree.path('failures.har'), tree.path('junit.xml')]
  const { status, output } = await tree.muster(['contract', '--har', har, '--junit', xml])
  expect([status, output]).toEqual([1, expect.stringMatching(/^openapi\.yaml:\d+/)])
  expect(JSON.parse(await readFile(har, 'utf8')).log.entries).toEqual([])
  expect(await readFile(xml, 'utf8')).toContain('failures="1"')
})

test('docs cuts long tags in the names of pages, and keeps the names distinct', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  const start = 'long '.repeat(60)
  const openapi = (await tree.read('generated/openapi.json'))
    .replaceAll('"Tasks"', `"${start}tasks"`)
    .replaceAll('"Jobs"', `"${start}jobs"`)
  await tree.write('generated/openapi.json', openapi)
  const { status, output } = await tree.muster(['docs', '--out', tree.path('site')])
  expect(status, output).toBe(0)
  const pages = await readdir(tree.path('site/resources'))
  const cut = 'long-'.repeat(12)
  expect(pages).toEqual(expect.arrayContaining([`${cut}.html`, `${cut}-2.html`]))
})
