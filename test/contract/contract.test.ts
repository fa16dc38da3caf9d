/** `muster contract` finds no failure of the service, and finds each way to break the contract. */
import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { operationIds, startApp, type TestAccount, type TestApp } from '../helpers.ts'
import {
  type Fault,
  json,
  noContent,
  serverError,
  startFaultyProxy,
  withoutHeader,
} from './faulty-proxy.ts'

const LONG_MS = 600_000
const onSqlite = test.runIf(inject('database') === 'sqlite')

let app: TestApp
let account: TestAccount
let restrictedKey: string

beforeAll(async () => {
  app = await startApp({ role: 'all', environment: { VALIDATE_RESPONSES: 'off' } })
  account = await app.newAccount()
  restrictedKey = await app.newKey(
    { ...account, ...(await app.newUser(account.accountId)) },
    'read_only',
  )
})
afterAll(() => app[Symbol.asyncDispose]())

interface Found {
  operation: string
  name: string
  failures: { check: string; what: string; message: string; curl: string }[]
}

test(
  'a running service: the contract holds, every cell was seen, and the test records are deleted',
  async () => {
    await using muster = await newMuster()
    const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
    const keys = ['--key', '-', '--restricted-key', restrictedKey]
    const args = [
      'contract',
      '--url',
      app.url,
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
    const { status, stdout, stderr } = await muster.run(args, { input: account.key })
    const { seed, cases, cells } = JSON.parse(stdout)
    expect(cases.filter(({ failures }: Found) => failures.length > 0)).toEqual([])
    expect(
      cells.filter(
        (cell: { seen: number; reason: string | null }) => cell.seen === 0 && cell.reason === null,
      ),
    ).toEqual([])
    expect({ status, stderr, seed }).toEqual({ status: 0, stderr: '', seed: 7 })
    expect(new Set(cases.map(({ operation }: Found) => operation))).toEqual(new Set(operationIds))
    for (const list of ['participants', 'tasks', 'jobs', 'job-applications', 'payments'])
      expect((await app.as(account).get(`/${list}`)).body.meta.total, list).toBe(0)

    const [page, junit] = [await readFile(html, 'utf8'), await readFile(xml, 'utf8')]
    for (const id of operationIds) {
      expect(page).toContain(`<th scope="row">${id}</th>`)
      expect(junit).toContain(`classname="${id}" name="status 401 was seen"`)
    }
    expect(page).not.toMatch(/(src|href)=/)
    expect(junit).toContain('failures="0"')
    for (const text of [page, junit, stdout]) expect(text).not.toContain(account.key)
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
    [['--url', app.url], /must be used together/],
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
    app.url,
    '--key',
    'mst_wrong',
  ])
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
  expect(stderr).toMatch(
    /^The test records cannot be created\. POST \/public\/v1\/participants: valid data returned 401: .*\n$/,
  )
})

const faults: { broken: string; check: string; only: string; by: Fault }[] = [
  {
    broken: 'returns 500 for a negative number',
    check: 'not_a_server_error',
    only: 'createPayment',
    by: { instead: ({ body }) => (Number(json(body).amount_minor) < 0 ? serverError : undefined) },
  },
  {
    broken: 'returns a status that is not in the contract',
    check: 'status_code_conformance',
    only: 'getTask',
    by: { answer: ({ status }) => (status === 404 ? { status: 418 } : {}) },
  },
  {
    broken: 'returns text/html',
    check: 'content_type_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: { ...headers, 'content-type': 'text/html' } }) },
  },
  {
    broken: 'omits a header',
    check: 'response_headers_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: withoutHeader(headers, 'x-request-id') }) },
  },
  {
    broken: 'omits a required field',
    check: 'response_schema_conformance',
    only: 'createTask',
    by: { answer: ({ body }) => ({ body: body.replace(/"due_at":("[^"]*"|null),/, '') }) },
  },
  {
    broken: 'refuses long texts',
    check: 'positive_data_acceptance',
    only: 'createTask',
    by: { request: ({ body }) => (String(json(body).title).length > 150 ? { body: '{}' } : {}) },
  },
  {
    broken: 'accepts an unknown field',
    check: 'negative_data_rejection',
    only: 'createTask',
    by: { request: ({ body }) => ({ body: body.replace(/,"not_a_field":1/, '') }) },
  },
  {
    broken: 'accepts a repeated parameter',
    check: 'negative_data_rejection',
    only: 'listTasks',
    by: { request: ({ path }) => ({ path: path.replace(/([?&])([^&=]+=[^&]*)&\2/, '$1$2') }) },
  },
  {
    broken: 'supports an undocumented method',
    check: 'unsupported_method',
    only: 'getTask',
    by: {
      instead: ({ method }) =>
        method === 'PUT' ? { status: 200, headers: {}, body: '' } : undefined,
    },
  },
  {
    broken: 'omits the Allow header',
    check: 'allow_header_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: withoutHeader(headers, 'allow') }) },
  },
  {
    broken: 'accepts any key',
    check: 'ignored_auth',
    only: 'getTask',
    by: {
      request: ({ headers }) => ({
        headers: { ...headers, authorization: `Bearer ${account.key}` },
      }),
    },
  },
  {
    broken: 'ignores the permissions of a key',
    check: 'ignored_permission',
    only: 'deleteTask',
    by: {
      request: ({ headers }) =>
        headers.authorization === `Bearer ${restrictedKey}`
          ? { headers: { ...headers, authorization: `Bearer ${account.key}` } }
          : {},
    },
  },
  {
    broken: 'deletes nothing',
    check: 'use_after_delete',
    only: 'deleteTask',
    by: {
      instead: ({ method, path }) =>
        method === 'DELETE' && !path.includes('?') ? noContent : undefined,
    },
  },
  {
    broken: 'returns the Location of no record',
    check: 'ensure_resource_availability',
    only: 'createTask',
    by: {
      answer: ({ headers }) => ({
        headers: headers.location
          ? { ...headers, location: `${headers.location.slice(0, -4)}0000` }
          : headers,
      }),
    },
  },
  {
    broken: 'ignores Idempotency-Key',
    check: 'idempotency',
    only: 'createTask',
    by: { request: ({ headers }) => ({ headers: withoutHeader(headers, 'idempotency-key') }) },
  },
  {
    broken: 'ignores If-Match',
    check: 'conditional_request',
    only: 'updateTask',
    by: { request: ({ headers }) => ({ headers: withoutHeader(headers, 'if-match') }) },
  },
  {
    broken: 'emits an undeclared event',
    check: 'emitted_events',
    only: 'updateTask',
    by: {
      answer: ({ body }, { path }) =>
        path.includes('/events') ? { body: body.replaceAll('task.updated', 'task.deleted') } : {},
    },
  },
]

describe.runIf(inject('database') === 'sqlite')('a server that', () => {
  test.each(faults)(
    '$broken → $check, with a curl command that reproduces it',
    async ({ check, only, by }) => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(app.url, by)
      const keys = ['--key', account.key, '--restricted-key', restrictedKey]
      const { status, stdout, stderr } = await muster.run([
        'contract',
        '--url',
        server.url,
        ...keys,
        '--only',
        only,
        '--runs',
        '1',
      ])
      expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
      expect(stdout).toContain(`FAIL  ${only}`)
      expect(stdout).toMatch(
        new RegExp(
          `\\(${check}\\)\n.*\n.*curl -sS -i --globoff -X \\w+ '?${server.url}/public/v1/`,
        ),
      )
      expect(stdout).not.toContain(account.key)
      expect(stdout).not.toContain(restrictedKey)
    },
    LONG_MS,
  )

  const hasCurl = spawnSync('curl', ['--version']).status === 0

  // Needs curl and a POSIX shell.
  test.runIf(hasCurl)(
    'fails for a long body → the printed curl command reproduces the failure',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(app.url, {
        instead: ({ body }) => (body.length > 5_000 ? serverError : undefined),
      })
      const args = [
        'contract',
        '--url',
        server.url,
        '--key',
        account.key,
        '--only',
        'createTask',
        '--runs',
        '1',
        '--json',
      ]
      const { cases } = JSON.parse((await muster.run(args)).stdout)
      const lines = (cases as Found[]).flatMap(({ failures }) => failures.map(({ curl }) => curl))
      expect(lines.some((line) => line.includes('$(seq 10000)'))).toBe(true)
      for (const line of lines) {
        expect(line.length).toBeLessThan(1000)
        const answer = await promisify(execFile)('sh', ['-c', line], {
          env: { ...process.env, KEY: account.key },
        })
        expect(answer.stdout).toMatch(/^(HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 500 /)
      }
    },
    LONG_MS,
  )

  test(
    'never emits an event → every report names the cell',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(app.url, {
        answer: ({ body }, { path }) =>
          path.includes('/events?')
            ? { body: body.replaceAll('task.completed', 'task.updated') }
            : {},
      })
      const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
      const args = [
        '--url',
        server.url,
        '--key',
        account.key,
        '--restricted-key',
        restrictedKey,
        '--only',
        'updateTask',
        '--runs',
        '1',
      ]
      const { status, stdout } = await muster.run([
        'contract',
        ...args,
        '--report',
        html,
        '--junit',
        xml,
      ])
      expect(status).toBe(1)
      expect(stdout).toContain(
        'FAIL  updateTask: the event task.completed is documented, but never occurred',
      )
      expect(await readFile(html, 'utf8')).toContain(
        '<span class="missing">task.completed 0</span>',
      )
      expect(await readFile(xml, 'utf8')).toMatch(
        /name="event task\.completed was seen" time="0\.000"><failure /,
      )
    },
    LONG_MS,
  )

  test(
    'fails for some texts → the failure is shrunk, and the same seed finds it again',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(app.url, {
        instead: ({ body }) => (/[&~|]/.test(String(json(body).title)) ? serverError : undefined),
      })
      const args = [
        'contract',
        '--url',
        server.url,
        '--key',
        account.key,
        '--only',
        'createTask',
        '--runs',
        '50',
        '--seed',
        '3',
        '--json',
      ]
      const [first, again] = [await muster.run(args), await muster.run(args)]
      const shrunk = (stdout: string) =>
        (JSON.parse(stdout).cases as Found[]).find(
          ({ name }) => name === 'accepts random valid data',
        )?.failures[0]
      expect(shrunk(first.stdout)).toMatchObject({
        check: 'not_a_server_error',
        what: 'random data',
      })
      expect(shrunk(first.stdout)?.curl).toMatch(/--data-raw '\{"title":"[^"]{1,3}"\}'$/)
      expect(shrunk(again.stdout)).toEqual(shrunk(first.stdout))
    },
    LONG_MS,
  )
})
