/** `muster contract` against a service that keeps its contract, and with wrong arguments. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { operationIds } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { startFaultyProxy } from '../prove/faulty-proxy.ts'
import { type ReportedCase, startTarget, type Target, TEST_TIMEOUT_MS } from './contract-target.ts'
import { startSlowProxy } from './slow-proxy.ts'

/** What must occur by the contract, for example a status of an operation. */
interface Cell {
  /** How often it occurred. */
  seen: number
  /** Why it need not occur. Null if it must. */
  reason: string | null
}

const onSqlite = test.runIf(inject('database') === 'sqlite')
const onPostgres = test.runIf(inject('database') === 'postgres')

let target: Target
beforeAll(async () => {
  target = await startTarget()
})
afterAll(() => target[Symbol.asyncDispose]())

onPostgres(
  'a running service: the contract holds, every cell was seen, and the test records are deleted',
  async () => {
    await using muster = await newMuster()
    const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
    const keys = ['--key', '-', '--restricted-key', target.restrictedKey]
    keys.push('--finance-none-key', target.financeNoneKey)
    keys.push('--finance-read-key', target.financeReadKey)
    const args = [
      ...['contract', '--url', target.app.url, ...keys, '--runs', '3', '--seed', '7'],
      ...['--report', html, '--junit', xml, '--json'],
    ]
    const { status, stdout, stderr } = await muster.run(args, { input: target.account.key })
    const { seed, cases, cells } = JSON.parse(stdout)
    expect(cases.filter(({ failures }: ReportedCase) => failures.length > 0)).toEqual([])
    const unseen = (cells as Cell[]).filter(({ seen, reason }) => seen === 0 && reason === null)
    expect(unseen).toEqual([])
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
  TEST_TIMEOUT_MS,
)

onSqlite(
  'without --url: the contract holds for a service of its own, and every promise was tested',
  async () => {
    await using muster = await newMuster()
    const { status, stdout, stderr } = await muster.run(['contract', '--runs', '3', '--matrix'])
    expect(stdout).not.toMatch(/^FAIL/m)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^Dredd: [1-9]\d* documented responses verified\.$/m)
    expect(stdout).toMatch(/^OPERATION +200 +201 .* EVENTS\n/)
    expect(stdout).toMatch(/^createTask +[1-9].* task\.created [1-9]/m)
    expect(stdout).toMatch(/requests to http:\S+ with --seed \d+: the contract holds\.\n$/)
  },
  TEST_TIMEOUT_MS,
)

onSqlite('wrong options: status 2 and a sentence that names the fault', async () => {
  await using muster = await newMuster()
  for (const [args, message] of [
    [['--url', target.app.url], /must be used together/],
    [['--only', 'createCat'], /"createCat" is not one of/],
    [['--seed', '-1'], /whole number/],
    [['--receiver-url', 'https://example.com'], /'--receiver-port <port>' must be used together/],
    [['--url', 'ftp://example.com', '--key', 'x'], /http or https/],
  ] as const) {
    const { status, stderr } = await muster.run(['contract', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(message) })
  }
})

onSqlite(
  'a proxy that delays responses and closes connections → no failure is reported',
  async () => {
    await using muster = await newMuster()
    await using proxy = await startSlowProxy(target.app.url)
    const keys = ['--key', target.account.key, '--restricted-key', target.restrictedKey]
    const only = ['--only', 'createTask,getTask', '--runs', '1']
    const { status, stdout } = await muster.run(['contract', '--url', proxy.url, ...keys, ...only])
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringContaining('the contract holds.'),
    })
    expect(proxy.closed).toBeGreaterThan(50)
  },
  TEST_TIMEOUT_MS,
)

onSqlite(
  '--receiver-url: a proxy forwards deliveries to the port; a URL that leads elsewhere ends the run',
  async () => {
    await using muster = await newMuster()
    const { app, account } = target
    const port = await freePort()
    await using proxy = await startFaultyProxy(`http://127.0.0.1:${port}`, {})
    await using elsewhere = await startFaultyProxy('http://127.0.0.1:9', {})
    const args = (receiverUrl: string) => [
      ...['contract', '--url', app.url, '--key', account.key, '--json', '--runs', '1'],
      ...['--receiver-port', String(port), '--receiver-url', receiverUrl, '--only', 'createTask'],
    ]
    const delivered = JSON.parse((await muster.run(args(`${proxy.url}/in`))).stdout)
    expect(delivered.error).toBe(null)
    expect(delivered.cases).toContainEqual(
      expect.objectContaining({ name: 'delivers its events', failures: [] }),
    )
    const { status, stdout } = await muster.run(args(elsewhere.url))
    const { error, cases } = JSON.parse(stdout)
    expect({ status, error, cases }).toEqual({
      status: 1,
      error: `${elsewhere.url} does not lead to http://127.0.0.1:${port}/: it returned 502. Start the tunnel or proxy, then try again.`,
      cases: [],
    })
  },
  TEST_TIMEOUT_MS,
)

onSqlite(
  'records that cannot be created → the reports are written, and independent operations are tested',
  async () => {
    await using muster = await newMuster()
    await using server = await startFaultyProxy(target.app.url, {
      changeResponse: ({ status }, { path }) =>
        path === '/public/v1/tasks' && status === 201 ? { status: 200 } : {},
    })
    const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
    const args = ['--url', server.url, '--key', target.account.key, '--runs', '1']
    const { status, stdout, stderr } = await muster.run([
      'contract',
      ...args,
      ...['--only', 'getTask,listEventTypes', '--report', html, '--junit', xml, '--json'],
    ])
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
    const { cases, untested } = JSON.parse(stdout)
    const failed = (cases as ReportedCase[]).filter(({ failures }) => failures.length > 0)
    expect(failed).toMatchObject([
      { operation: 'createTask', failures: [{ check: 'positive_data_acceptance' }] },
    ])
    expect(cases.map(({ operation }: ReportedCase) => operation)).toContain('listEventTypes')
    expect(untested).toEqual([
      { operation: 'getTask', reason: 'it needs a test record (task) that could not be created' },
    ])
    expect(await readFile(html, 'utf8')).toContain('getTask: it needs a test record')
    expect(await readFile(xml, 'utf8')).toMatch(
      /classname="getTask" name="is tested" time="0\.000"><skipped /,
    )
  },
  TEST_TIMEOUT_MS,
)

onSqlite(
  'a service that does not respond → one failure, and the reports are written',
  async () => {
    await using muster = await newMuster()
    const [xml, html, har] = ['xml', 'html', 'har'].map((end) => join(muster.dataDir, `r.${end}`))
    const args = ['--url', 'http://127.0.0.1:9', '--key', 'mst_wrong', '--only', 'getMe,getTask']
    const files = ['--junit', xml, '--report', html, '--har', har] as string[]
    const { status, stdout } = await muster.run(['contract', ...args, ...files])
    expect(status).toBe(1)
    const reason =
      'Nothing responds at http://127.0.0.1:9: connect ECONNREFUSED 127.0.0.1:9. Start the service, or correct the URL.'
    expect(stdout.split('\n')).toEqual([
      `FAIL  the run ended early: ${reason}`,
      expect.stringMatching(/^0 requests to http:\S+ with --seed \d+: 1 failure\.$/),
      `Reports: ${html}, ${xml}, ${har}`,
      '',
    ])
    for (const file of [xml, html]) expect(await readFile(file as string, 'utf8')).toContain(reason)
    expect(JSON.parse(await readFile(har as string, 'utf8')).log.entries).toEqual([])
  },
  TEST_TIMEOUT_MS,
)
