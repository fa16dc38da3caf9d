/** Requests with records that a user may not see; malformed IDs; curl commands with hostile
 *  content. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount } from '../helpers.ts'
import { unescapeHtml } from './forms.ts'
import { figuresOf, listedIn, log } from './logged-requests.ts'
import { newConsoleUser, type Visitor, visitor } from './visitors.ts'

const run = promisify(execFile)

let account: TestAccount
let owner: Visitor
const app = sharedApp()
beforeAll(async () => {
  account = await app.newAccount()
  owner = await visitor(app, account)
})

describe('the query of a request', () => {
  const SECRET = 'ada@example.com'
  const all = {
    participants: 'read',
    tasks: 'read',
    jobs: 'read',
    exports: 'read',
    finance: 'read',
  } as const
  let ids: string[]
  let blind: Visitor
  let seeing: Visitor
  beforeAll(async () => {
    const at = Date.now() - 1_000
    ids = await log(app, account, [
      {
        at,
        operationId: 'listParticipants',
        path: `/public/v1/participants?filter[email]=${SECRET}`,
      },
      {
        at,
        operationId: null,
        status: 404,
        path: `/public/v1/participants/?filter[email]=${SECRET}`,
      },
      { at, operationId: 'listTasks', path: '/public/v1/tasks?filter[search]=library' },
    ])
    blind = await visitor(
      app,
      await newConsoleUser(app, account.accountId, {
        permissions: { ...all, participants: 'none' },
      }),
    )
    seeing = await visitor(app, await newConsoleUser(app, account.accountId, { permissions: all }))
  })

  it('is hidden from users who may not see the records: in list, page, command and file', async () => {
    for (const path of [
      '/requests',
      '/requests.csv',
      ...ids.slice(0, 2).flatMap((id) => [`/requests/${id}`, `/requests/${id}?row=open`]),
    ]) {
      const hidden = await blind.get(path)
      expect(hidden.status).toBe(200)
      expect(hidden.text).toContain('/public/v1/participants')
      expect(hidden.text).not.toContain(SECRET)
      expect(hidden.text).not.toContain('filter[email]')
      for (const one of [seeing, owner]) expect((await one.get(path)).text).toContain(SECRET)
    }
    const { text } = await blind.get(`/requests/${ids[0]}`)
    expect(commandIn(text)).toContain(`'${app.config.baseUrl}/public/v1/participants'`)
    expect(text).toContain('The query is left out')
  })

  it('is shown for records they may see', async () => {
    for (const path of ['/requests', '/requests.csv', `/requests/${ids[2]}`])
      expect((await blind.get(path)).text).toContain('filter[search]=library')
  })

  it('cannot be searched by users who may not see it', async () => {
    for (const part of ['ada@', '?filter[email]=', 'ADA@EXAMPLE.COM', '=']) {
      const query = `path=${encodeURIComponent(part)}`
      const { text } = await blind.get(`/requests?${query}`)
      expect(listedIn(text)).toEqual([])
      expect(figuresOf(text).Requests).toBe('0')
      expect((await blind.get(`/requests.csv?${query}`)).text.trimEnd().split('\r\n')).toHaveLength(
        1,
      )
    }
    expect(listedIn((await blind.get('/requests?path=V1/participants')).text).toSorted()).toEqual(
      ids.slice(0, 2).toSorted(),
    )
    for (const one of [seeing, owner])
      expect(listedIn((await one.get('/requests?path=ada@')).text)).toHaveLength(2)
  })
})

describe('a malformed ID', () => {
  const pages = [
    '/requests',
    '/requests.csv',
    '/api-keys',
    '/audit-log',
    '/people',
    '/webhooks',
    '/webhooks/jobs',
    '/webhooks/new',
  ]
  const records = ['participants', 'tasks', 'jobs', 'job-applications', 'exports', 'payments'].map(
    (slug) => `/records/${slug}`,
  )
  const names = [
    'key',
    'user',
    'target',
    'before',
    'after',
    'id',
    'request',
    'webhook',
    'cursor',
    'page',
    'participant_id',
    'job_id',
  ]
  const bad = [
    '-'.repeat(36),
    'g'.repeat(36),
    `1_${'-'.repeat(36)}`,
    '{00000000-0000-0000-0000-000000000000}',
    '0'.repeat(36),
  ]

  it.each([...pages, ...records])('in any parameter of %s is not a server error', async (path) => {
    const asked = names.flatMap((name) =>
      bad.map((value) => `${path}?${name}=${encodeURIComponent(value)}`),
    )
    for (const address of asked)
      expect([address, (await owner.get(address)).status < 500]).toEqual([address, true])
  })

  it('in any filter of a record list is not a server error', async () => {
    for (const path of records)
      for (const name of [
        'participant_id',
        'job_id',
        'task_id',
        'external_id',
        'status',
        'search',
        'created_at',
      ])
        for (const value of bad) {
          const address = `${path}?filter[${name}]=${encodeURIComponent(value)}`
          expect([address, (await owner.get(address)).status < 500]).toEqual([address, true])
        }
  })
})

describe('a command to copy', () => {
  const CONTROLS = '\u0003\u001b[31m\r\n\t\u007f\u009b31m'
  const bodies = [CONTROLS, `a'b\\n${CONTROLS}'0\\`, `\u00037`, `é 😀 ${CONTROLS}é`]

  it.each(bodies.map((body) => [JSON.stringify(body), body] as const))(
    '%s: nothing that a terminal acts on, and the same bytes',
    async (_, body) => {
      const path = `/public/v1/tasks?x=${body}`
      const [id] = await log(app, account, [
        { method: 'POST', operationId: 'createTask', path, requestBody: body },
      ])
      const { text } = await owner.get(`/requests/${id}`)
      const command = commandIn(text)
      // Its own line breaks are between its parts, each after a backslash.
      expect(command.replaceAll(' \\\n', '')).not.toMatch(/\p{Cc}/u)
      expect(text).toContain('Run it in bash or zsh.')
      const words = await wordsOf('bash', command)
      expect(words.at(-1)).toBe(body)
      expect(words).toContain(app.config.baseUrl + path)
    },
  )

  it.each(["O'Brien $(id) `id` $HOME \\ ! %s", "$'\\n'", '{"a":"\\u0003"}'])(
    '%s: is quoted for a POSIX shell',
    async (body) => {
      const [id] = await log(app, account, [
        { method: 'POST', operationId: 'createTask', requestBody: body },
      ])
      const { text } = await owner.get(`/requests/${id}`)
      expect(text).not.toContain('bash or zsh')
      for (const shell of ['sh', 'bash'])
        expect((await wordsOf(shell, commandIn(text))).at(-1)).toBe(body)
    },
  )

  /** The arguments that curl receives. */
  async function wordsOf(shell: string, command: string): Promise<string[]> {
    const { stdout } = await run(shell, ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`])
    return stdout.split('\0').slice(0, -1)
  }
})

/** The command that the copy button copies. */
function commandIn(page: string): string {
  return unescapeHtml(
    page.match(/data-copy="([^"]*)"\s+aria-label="Copy the curl command"/)?.[1] ?? '',
  )
}
