/** `muster contract` finds each way to break the contract. */
import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { LONG_MS, type ReportedCase, startTarget, type Target } from './contract-target.ts'
import {
  type Fault,
  json,
  noContent,
  serverError,
  startFaultyProxy,
  withoutHeader,
} from './faulty-proxy.ts'

let target: Target
beforeAll(async () => {
  target = await startTarget()
})
afterAll(() => target[Symbol.asyncDispose]())

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
        headers: { ...headers, authorization: `Bearer ${target.account.key}` },
      }),
    },
  },
  {
    broken: 'ignores the permissions of a key',
    check: 'ignored_permission',
    only: 'deleteTask',
    by: {
      request: ({ headers }) =>
        headers.authorization === `Bearer ${target.restrictedKey}`
          ? { headers: { ...headers, authorization: `Bearer ${target.account.key}` } }
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

function createTaskArgs(url: string, ...options: string[]): string[] {
  const { key } = target.account
  return ['contract', '--url', url, '--key', key, '--only', 'createTask', ...options, '--json']
}

describe.runIf(inject('database') === 'sqlite')('a server that', () => {
  test.each(faults)(
    '$broken → $check, with a curl command that reproduces it',
    async ({ check, only, by }) => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, by)
      const keys = ['--key', target.account.key, '--restricted-key', target.restrictedKey]
      const args = ['contract', '--url', server.url, ...keys, '--only', only, '--runs', '1']
      const { status, stdout, stderr } = await muster.run(args)
      expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
      expect(stdout).toContain(`FAIL  ${only}`)
      expect(stdout).toMatch(
        new RegExp(
          `\\(${check}\\)\n.*\n.*curl -sS -i --globoff -X \\w+ '?${server.url}/public/v1/`,
        ),
      )
      expect(stdout).not.toContain(target.account.key)
      expect(stdout).not.toContain(target.restrictedKey)
    },
    LONG_MS,
  )

  const hasCurl = spawnSync('curl', ['--version']).status === 0

  // Needs curl and a POSIX shell.
  test.runIf(hasCurl)(
    'fails for a long body → the printed curl command reproduces the failure',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        instead: ({ body }) => (body.length > 5_000 ? serverError : undefined),
      })
      const args = createTaskArgs(server.url, '--runs', '1')
      const { cases } = JSON.parse((await muster.run(args)).stdout)
      const lines = (cases as ReportedCase[]).flatMap(({ failures }) =>
        failures.map(({ curl }) => curl),
      )
      expect(lines.some((line) => line.includes('$(seq 10000)'))).toBe(true)
      for (const line of lines) {
        expect(line.length).toBeLessThan(1000)
        const answer = await promisify(execFile)('sh', ['-c', line], {
          env: { ...process.env, KEY: target.account.key },
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
      await using server = await startFaultyProxy(target.app.url, {
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
        target.account.key,
        '--restricted-key',
        target.restrictedKey,
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
      await using server = await startFaultyProxy(target.app.url, {
        instead: ({ body }) => (/[&~|]/.test(String(json(body).title)) ? serverError : undefined),
      })
      const args = createTaskArgs(server.url, '--runs', '50', '--seed', '3')
      const [first, again] = [await muster.run(args), await muster.run(args)]
      const shrunk = (stdout: string) =>
        (JSON.parse(stdout).cases as ReportedCase[]).find(
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
