/** `muster contract` against a service that keeps its contract, and with wrong arguments. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { operationIds } from '../helpers.ts'
import { LONG_MS, type ReportedCase, startTarget, type Target } from './contract-target.ts'

const onSqlite = test.runIf(inject('database') === 'sqlite')

let target: Target
beforeAll(async () => {
  target = await startTarget()
})
afterAll(() => target[Symbol.asyncDispose]())

test(
  'a running service: the contract holds, every cell was seen, and the test records are deleted',
  async () => {
    await using muster = await newMuster()
    const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
    const keys = ['--key', '-', '--restricted-key', target.restrictedKey]
    const args = [
      'contract',
      '--url',
      target.app.url,
      ...keys,
      '--runs',
      '3',
      '--seed',
      '7',
      '--report',
      html,
      '--junit',
      xml,
      '--json',
    ]
    const { status, stdout, stderr } = await muster.run(args, { input: target.account.key })
    const { seed, cases, cells } = JSON.parse(stdout)
    expect(cases.filter(({ failures }: ReportedCase) => failures.length > 0)).toEqual([])
    expect(
      cells.filter(
        (cell: { seen: number; reason: string | null }) => cell.seen === 0 && cell.reason === null,
      ),
    ).toEqual([])
    expect({ status, stderr, seed }).toEqual({ status: 0, stderr: '', seed: 7 })
    expect(new Set(cases.map(({ operation }: ReportedCase) => operation))).toEqual(
      new Set(operationIds),
    )
    for (const list of ['participants', 'tasks', 'jobs', 'job-applications', 'payments'])
      expect((await target.app.as(target.account).get(`/${list}`)).body.meta.total, list).toBe(0)

    const [page, junit] = [await readFile(html, 'utf8'), await readFile(xml, 'utf8')]
    for (const id of operationIds) {
      expect(page).toContain(`<th scope="row">${id}</th>`)
      expect(junit).toContain(`classname="${id}" name="status 401 was seen"`)
    }
    expect(page).not.toMatch(/(src|href)=/)
    expect(junit).toContain('failures="0"')
    for (const text of [page, junit, stdout]) expect(text).not.toContain(target.account.key)
  },
  LONG_MS,
)

onSqlite(
  'without --url: starts the service; prints the matrix and the seed',
  async () => {
    await using muster = await newMuster()
    const { status, stdout, stderr } = await muster.run([
      'contract',
      '--only',
      'createTask,getTask',
      '--runs',
      '2',
    ])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^OPERATION +200 +201 +304 +400 .* EVENTS\ncreateTask +[1-9]/)
    expect(stdout).toMatch(/task\.created 1\ngetTask /)
    expect(stdout).toMatch(/requests to http:\S+ with --seed \d+: the contract holds\.\n$/)
  },
  LONG_MS,
)

onSqlite('wrong usage: a URL without a key, an unknown operation', async () => {
  await using muster = await newMuster()
  for (const [args, message] of [
    [['--url', target.app.url], /must be used together/],
    [['--only', 'createCat'], /"createCat" is not one of/],
    [['--seed', '-1'], /whole number/],
    [['--url', 'ftp://example.com', '--key', 'x'], /http or https/],
  ] as const) {
    const { status, stderr } = await muster.run(['contract', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(message) })
  }
})

onSqlite('an invalid key → an error message and exit code 1', async () => {
  await using muster = await newMuster()
  const { status, stdout, stderr } = await muster.run([
    'contract',
    '--url',
    target.app.url,
    '--key',
    'mst_wrong',
  ])
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(
    /^The test records cannot be created\. POST \/public\/v1\/participants: valid data returned 401: .*\n$/,
  )
})
