/** `muster contract`: nothing to say about the service, and something about each way to break the contract. */
import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { operationIds, startApp, type TestAccount, type TestApp } from '../helpers.ts'

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
  'a deployed copy: the contract holds, every cell was seen, and the records of the run are gone',
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
  'this installation: is started for it; the matrix and the seed are shown',
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

onSqlite('wrong usage: a url without a key, an operation that there is not', async () => {
  await using muster = await newMuster()
  for (const [args, message] of [
    [['--url', app.url], /need each other/],
    [['--only', 'createCat'], /"createCat" is not one of/],
    [['--seed', '-1'], /whole number/],
    [['--url', 'ftp://example.com', '--key', 'x'], /http or https/],
  ] as const) {
    const { status, stderr } = await muster.run(['contract', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(message) })
  }
})

onSqlite('a key that is none → a sentence, and 1', async () => {
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

/** What a broken server makes of a request before the service gets it, and of the answer before the client does. */
interface Passing {
  method: string
  path: string
  headers: Record<string, string>
  body: string
}

interface Answered {
  status: number
  headers: Record<string, string>
  body: string
}

interface Broken {
  request?(passing: Passing): Partial<Passing>
  /** Answers in the service's place. */
  instead?(passing: Passing): Answered | undefined
  answer?(answered: Answered, passing: Passing): Partial<Answered>
}

/** In front of the service, and broken as said. */
async function startBroken({
  request,
  instead,
  answer,
}: Broken): Promise<{ url: string } & AsyncDisposable> {
  const server: Server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const {
      host: _,
      connection: __,
      'content-length': ___,
      'transfer-encoding': ____,
      ...headers
    } = incoming.headers
    const { method = '', url = '' } = incoming
    const original: Passing = {
      method,
      path: url,
      headers: headers as Record<string, string>,
      body: Buffer.concat(chunks).toString(),
    }
    const passing = { ...original, ...request?.(original) }
    const answered = instead?.(passing) ?? (await pass(passing))
    const changed = { ...answered, ...answer?.(answered, passing) }
    outgoing.writeHead(changed.status, changed.headers).end(changed.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function pass({ method, path, headers, body }: Passing): Promise<Answered> {
  const response = await fetch(app.url + path, {
    method,
    headers,
    body: body === '' ? undefined : body,
  })
  const text = await response.text()
  const {
    'content-length': _,
    connection: __,
    'keep-alive': ___,
    'transfer-encoding': ____,
    ...kept
  } = Object.fromEntries(response.headers)
  return { status: response.status, headers: kept, body: text }
}

const withoutHeader = (headers: Record<string, string>, name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))

const json = (text: string): Record<string, unknown> => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

const mistake: Answered = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: '{"message":"Oops"}',
}

const noContent: Answered = {
  status: 204,
  headers: {
    'x-request-id': 'x',
    'x-ratelimit-limit': '1',
    'x-ratelimit-remaining': '1',
    'x-ratelimit-reset': '1',
    ratelimit: '"default";r=1;t=1',
    'ratelimit-policy': '"default";q=1;w=60',
  },
  body: '',
}

const faults: { broken: string; check: string; only: string; by: Broken }[] = [
  {
    broken: 'answers 500 to a negative number',
    check: 'not_a_server_error',
    only: 'createPayment',
    by: { instead: ({ body }) => (Number(json(body).amount_minor) < 0 ? mistake : undefined) },
  },
  {
    broken: 'answers with a status of its own',
    check: 'status_code_conformance',
    only: 'getTask',
    by: { answer: ({ status }) => (status === 404 ? { status: 418 } : {}) },
  },
  {
    broken: 'says text/html',
    check: 'content_type_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: { ...headers, 'content-type': 'text/html' } }) },
  },
  {
    broken: 'leaves a header out',
    check: 'response_headers_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: withoutHeader(headers, 'x-request-id') }) },
  },
  {
    broken: 'leaves a required field out',
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
    broken: 'takes a field that there is not',
    check: 'negative_data_rejection',
    only: 'createTask',
    by: { request: ({ body }) => ({ body: body.replace(/,"not_a_field":1/, '') }) },
  },
  {
    broken: 'takes the same parameter twice',
    check: 'negative_data_rejection',
    only: 'listTasks',
    by: { request: ({ path }) => ({ path: path.replace(/([?&])([^&=]+=[^&]*)&\2/, '$1$2') }) },
  },
  {
    broken: 'has methods that there are not',
    check: 'unsupported_method',
    only: 'getTask',
    by: {
      instead: ({ method }) =>
        method === 'PUT' ? { status: 200, headers: {}, body: '' } : undefined,
    },
  },
  {
    broken: 'does not say which methods it has',
    check: 'allow_header_conformance',
    only: 'getTask',
    by: { answer: ({ headers }) => ({ headers: withoutHeader(headers, 'allow') }) },
  },
  {
    broken: 'takes any key',
    check: 'ignored_auth',
    only: 'getTask',
    by: {
      request: ({ headers }) => ({
        headers: { ...headers, authorization: `Bearer ${account.key}` },
      }),
    },
  },
  {
    broken: 'takes any key for all that a key can do',
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
    broken: 'makes what is not there',
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
    broken: 'does not know Idempotency-Key',
    check: 'idempotency',
    only: 'createTask',
    by: { request: ({ headers }) => ({ headers: withoutHeader(headers, 'idempotency-key') }) },
  },
  {
    broken: 'does not know If-Match',
    check: 'conditional_request',
    only: 'updateTask',
    by: { request: ({ headers }) => ({ headers: withoutHeader(headers, 'if-match') }) },
  },
  {
    broken: 'emits what it does not declare',
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
    '$broken → $check, with a line that shows it',
    async ({ check, only, by }) => {
      await using muster = await newMuster()
      await using server = await startBroken(by)
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

  // Only a machine with curl and a POSIX shell can show it.
  test.runIf(hasCurl)(
    'is broken → the line that is printed gets the same answer, however long its body',
    async () => {
      await using muster = await newMuster()
      await using server = await startBroken({
        instead: ({ body }) => (body.length > 5_000 ? mistake : undefined),
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
    'never emits an event → the cell is named, in every form of the report',
    async () => {
      await using muster = await newMuster()
      await using server = await startBroken({
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
    'fails at some text → the failure is shrunk, and the same seed finds it again',
    async () => {
      await using muster = await newMuster()
      await using server = await startBroken({
        instead: ({ body }) => (/[&~|]/.test(String(json(body).title)) ? mistake : undefined),
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
      expect(shrunk(first.stdout)).toMatchObject({ check: 'not_a_server_error', what: 'at random' })
      expect(shrunk(first.stdout)?.curl).toMatch(/--data-raw '\{"title":"[^"]{1,3}"\}'$/)
      expect(shrunk(again.stdout)).toEqual(shrunk(first.stdout))
    },
    LONG_MS,
  )
})
