/** `muster contract` reports what breaks the contract. `npm run test:faults` has a fault of each
 *  kind. */
import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import {
  type ProxyHooks,
  parseObject,
  serverError,
  startFaultyProxy,
} from '../prove/faulty-proxy.ts'
import { type ReportedCase, startTarget, type Target, TEST_TIMEOUT_MS } from './contract-target.ts'

const PROVE = fileURLToPath(new URL('../prove/main.ts', import.meta.url))

let target: Target
beforeAll(async () => {
  target = await startTarget()
})
afterAll(() => target[Symbol.asyncDispose]())

function createTaskArgs(url: string, ...options: string[]): string[] {
  const { key } = target.account
  return ['contract', '--url', url, '--key', key, '--only', 'createTask', ...options, '--json']
}

describe.runIf(inject('database') === 'sqlite')('a server that', () => {
  test(
    'ignores the permissions of a key → the failure is printed and recorded, without the keys',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        changeRequest: ({ headers }) =>
          headers.authorization === `Bearer ${target.restrictedKey}`
            ? { headers: { ...headers, authorization: `Bearer ${target.account.key}` } }
            : {},
      })
      const keys = ['--key', target.account.key, '--restricted-key', target.restrictedKey]
      const har = join(muster.dataDir, 'failures.har')
      const only = ['--only', 'deleteTask', '--runs', '1', '--har', har]
      const args = ['contract', '--url', server.url, ...keys, ...only]
      const { status, stdout, stderr } = await muster.run(args)
      expect({ status, stderr }).toEqual({ status: 1, stderr: '' })
      expect(stdout).toContain('FAIL  deleteTask')
      expect(stdout).toMatch(
        new RegExp(
          `\\(ignored_permission\\)\\n.*\\n.*curl -sS -i --globoff -X \\w+ '?${server.url}/public/v1/`,
        ),
      )
      const [, seed] = /with --seed (\d+)/.exec(stdout) ?? []
      const keysOfCommand = '--key "$KEY" --restricted-key "$RESTRICTED_KEY"'
      expect(stdout.split('\n').slice(-3)).toEqual([
        `Repeat with: muster contract --url '${server.url}' ${keysOfCommand} --only deleteTask --seed ${seed} --runs 1`,
        `Reports: ${har}`,
        '',
      ])
      const recording = await readFile(har, 'utf8')
      const { log } = JSON.parse(recording)
      expect(log).toMatchObject({ version: '1.2', creator: { name: expect.any(String) } })
      expect(log.entries).toContainEqual(
        expect.objectContaining({
          comment: expect.stringContaining('a key without the permission returned'),
          startedDateTime: expect.stringMatching(/^\d{4}-.*Z$/),
          request: expect.objectContaining({
            method: 'DELETE',
            url: expect.stringContaining(`${server.url}/public/v1/tasks/`),
            headers: expect.arrayContaining([
              { name: 'Authorization', value: 'Bearer $OTHER_KEY' },
            ]),
          }),
          response: expect.objectContaining({ status: 204 }),
        }),
      )
      for (const text of [stdout, recording]) {
        expect(text).not.toContain(target.account.key)
        expect(text).not.toContain(target.restrictedKey)
      }
    },
    TEST_TIMEOUT_MS,
  )

  const hasCurl = spawnSync('curl', ['--version']).status === 0

  // Needs curl and a POSIX shell.
  test.runIf(hasCurl)(
    'fails for a long body → the printed curl command reproduces the failure',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        respond: ({ body }) => (body.length > 5_000 ? serverError : undefined),
      })
      const args = createTaskArgs(server.url, '--runs', '1')
      const { cases } = JSON.parse((await muster.run(args)).stdout)
      const commands = (cases as ReportedCase[]).flatMap(({ failures }) =>
        failures.map(({ curl }) => curl),
      )
      expect(commands.some((command) => command.includes('$(seq 10000)'))).toBe(true)
      for (const command of commands) {
        expect(command.length).toBeLessThan(1000)
        const answer = await promisify(execFile)('sh', ['-c', command], {
          env: { ...process.env, KEY: target.account.key },
        })
        expect(answer.stdout).toMatch(/^(HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 500 /)
      }
    },
    TEST_TIMEOUT_MS,
  )

  test(
    'fails for every change → one entry for all operations, with a count',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        respond: ({ method, path }) =>
          method === 'PATCH' && /tasks|jobs/.test(path) ? serverError : undefined,
      })
      const args = ['--url', server.url, '--key', target.account.key, '--runs', '1']
      const only = ['--only', 'updateTask,updateJob']
      const { status, stdout } = await muster.run(['contract', ...args, ...only])
      expect(status).toBe(1)
      expect(stdout.match(/returned 500/g)).toHaveLength(1)
      expect(stdout).toMatch(
        /^FAIL {2}updateTask accepts valid data at the limits \(not_a_server_error\)\n.*\n.*curl .*\n +Also (\d+) more: updateTask \(\d+\), updateJob \(\d+\)\n/,
      )
      expect(stdout).toMatch(/with --seed \d+: \d+ failures, probably \d+ causes?\.\nRepeat with: /)
    },
    TEST_TIMEOUT_MS,
  )

  test(
    'hides the records of one state from their list → a sequence of updates finds it',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        changeResponse: ({ body }, { path }) => {
          if (!path.startsWith('/public/v1/tasks?')) return {}
          const page = JSON.parse(body)
          const data = page.data.filter(({ status }: { status: string }) => status !== 'cancelled')
          return { body: JSON.stringify({ ...page, data }) }
        },
      })
      const args = ['contract', '--url', server.url, '--key', target.account.key, '--json']
      const only = ['--only', 'updateTask', '--seed', '5']
      const { cases } = JSON.parse((await muster.run([...args, ...only])).stdout)
      const failed = (cases as ReportedCase[]).filter(({ failures }) => failures.length > 0)
      expect(failed).toMatchObject([
        {
          name: 'keeps its rules in every order of requests',
          failures: [
            {
              check: 'sequence',
              message: expect.stringMatching(/the list has "\S+" 0 times, not 1\. The steps: /),
            },
          ],
        },
      ])
    },
    TEST_TIMEOUT_MS,
  )

  test(
    'never emits an event → each report names the operation and the event',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        changeResponse: ({ body }, { path }) =>
          path.includes('/events?')
            ? { body: body.replaceAll('task.completed', 'task.updated') }
            : {},
      })
      const [html, xml] = [join(muster.dataDir, 'report.html'), join(muster.dataDir, 'junit.xml')]
      const keys = ['--key', target.account.key, '--restricted-key', target.restrictedKey]
      const { status, stdout } = await muster.run([
        ...['contract', '--url', server.url, ...keys, '--only', 'updateTask', '--runs', '1'],
        ...['--report', html, '--junit', xml],
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
    TEST_TIMEOUT_MS,
  )

  test(
    'fails for some texts → the failure is shrunk, and the same seed finds it again',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, {
        respond: ({ body }) =>
          /[&~|]/.test(String(parseObject(body).title)) ? serverError : undefined,
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
    TEST_TIMEOUT_MS,
  )
})

/** Imitates a record that changes between two requests: appends a counter to each version, and
 *  raises the counter before the first conditional request with each kind of header. */
function recordThatChanges(): ProxyHooks {
  let changes = 0
  const kinds = new Set<string>()
  const currentEnd = () => `-${changes}"`
  return {
    changeRequest({ headers }) {
      const sent = headers['if-none-match']
      if (sent === undefined) return {}
      const kind = sent.replace(/"[^"]+-\d+"/, 'current')
      if (kind !== sent && !kinds.has(kind)) changes += 1
      kinds.add(kind)
      const forwarded = sent.replaceAll(/-\d+"/g, (end) => (end === currentEnd() ? '"' : end))
      return { headers: { ...headers, 'if-none-match': forwarded } }
    },
    changeResponse: ({ headers }) =>
      headers.etag ? { headers: { ...headers, etag: headers.etag.replace(/"$/, currentEnd) } } : {},
  }
}

describe.runIf(inject('database') === 'sqlite')('a server that keeps the contract', () => {
  test(
    'while a record changes between two requests → a conditional read is repeated',
    async () => {
      await using muster = await newMuster()
      await using server = await startFaultyProxy(target.app.url, recordThatChanges())
      const keys = ['--key', target.account.key]
      const options = ['--only', 'getTask', '--runs', '1', '--json']
      const { stdout } = await muster.run(['contract', '--url', server.url, ...keys, ...options])
      const { cases } = JSON.parse(stdout)
      const versions = (cases as ReportedCase[]).find(({ name }) => name === 'compares versions')
      expect(versions).toMatchObject({ failures: [] })
    },
    TEST_TIMEOUT_MS,
  )
})

describe.runIf(inject('database') === 'sqlite')('npm run test:faults finds a server that', () => {
  test.each([
    'isolation: returns the record',
    'signatures: signs with another secret',
    'sequences: stores a part of a refused update',
  ])(
    '%s',
    async (fault) => {
      // A status other than 0 throws.
      const { stdout } = await promisify(execFile)(process.execPath, [PROVE, fault, '--json'])
      expect(JSON.parse(stdout)).toMatchObject({ faults: [{ foundBy: expect.any(String) }] })
    },
    TEST_TIMEOUT_MS,
  )
})
