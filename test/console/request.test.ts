/** The page of an API request: its details, its bodies, and who may see them. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { sharedApp, until } from '../helpers.ts'
import { curlCommandIn, plainText } from './forms.ts'
import { logRequests, NOW } from './logged-requests.ts'
import { inEveryModule, NO_ACCESS, newAccountOwner, newConsoleUser, visitor } from './visitors.ts'

const run = promisify(execFile)

describe('the page of an API request', () => {
  const app = sharedApp({ now: () => new Date(NOW) })

  it('shows all details, on a page that needs no JavaScript', async () => {
    const { account, owner } = await newAccountOwner(app)
    const requestId = randomUUID()
    const [id] = await logRequests(app, account, [
      {
        requestId,
        method: 'POST',
        operationId: 'createTask',
        path: '/public/v1/tasks',
        status: 201,
        requestBody: '{"title":"Call","due_at":null}',
        responseBody: '{"id":1}',
      },
    ])
    const { text } = await owner.get(`/requests/${id}`)
    expect(text).toContain(requestId)
    expect(text).toContain('href="/docs/operations/createTask"')
    const shown = plainText(text)
    expect(shown).toContain('{\n  "title": "Call",\n  "due_at": null\n}')
    expect(shown).toContain('Test Owner')
    expect(shown).toContain('Test key')
    expect(shown).toContain('203.0.113.7')
    expect((await owner.get('/requests')).text).toContain(`href="/console/requests/${id}"`)
    expect((await fetch(`${app.url}/docs/operations/createTask`)).status).toBe(200)
  })

  it.each([randomUUID(), 'nothing', '%00'])('404 for the ID %s', async (id) => {
    const { owner } = await newAccountOwner(app)
    expect((await owner.get(`/requests/${id}`)).status).toBe(404)
  })

  it('escapes names, headers and bodies from hostile clients', async () => {
    const { account, owner } = await newAccountOwner(app)
    const attack = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`
    await app.db
      .write('users')
      .where({ id: account.userId })
      .update({ full_name: `Ada ${attack}` })
    await app.db
      .write('api_keys')
      .where({ account_id: account.accountId })
      .update({ name: `Key ${attack}` })
    const [id] = await logRequests(app, account, [
      {
        path: `/public/v1/tasks?x=${attack}`,
        method: 'POST',
        ip: attack,
        requestId: attack,
        requestBody: JSON.stringify({ [attack]: attack }),
        responseBody: `</code></pre>${attack}`,
      },
    ])
    for (const path of [
      '/requests',
      `/requests/${id}`,
      `/requests?path=${encodeURIComponent(attack)}`,
      '',
    ]) {
      const { text, status } = await owner.get(path)
      expect(status).toBe(200)
      expect(text).not.toContain('<script>')
      expect(text).not.toContain('<img src=x')
      expect(plainText(text)).toContain('<script>alert(1)</script>')
    }
  })

  it('a truncated body is marked, and has no curl command', async () => {
    const { account, owner } = await newAccountOwner(app)
    const body = JSON.stringify({ title: 'x'.repeat(70_000) })
    expect((await app.as(account).post('/tasks', body)).status).toBe(422)
    // Read from the table: the list at the time of the test may omit a request with the real time.
    const id = await until('the request is logged', async () => {
      const rows = await app.db
        .read('request_log')
        .where({ account_id: account.accountId })
        .select('id')
      return rows[0]?.id as string | undefined
    })
    const { text } = await owner.get(`/requests/${id}`)
    expect(plainText(text)).toContain('Truncated after 64 KiB.')
    expect(text).not.toContain('--data-raw')
    expect(text).toContain('cannot be repeated from here')
  })

  it('a long complete body is not marked as truncated', async () => {
    const { account, owner } = await newAccountOwner(app)
    // With the other 11 characters, the body has exactly 64 KiB.
    const [id] = await logRequests(app, account, [
      { responseBody: JSON.stringify({ text: 'x'.repeat(65_536 - 11) }) },
    ])
    const { text } = await owner.get(`/requests/${id}`)
    expect(text).not.toContain('Truncated')
  })

  it('the curl command repeats a request with special characters of the shell', async () => {
    const { account, owner } = await newAccountOwner(app)
    const name = `O'Brien "$(echo owned)" \`id\` \\ $HOME ! %s\n@x`
    const created = await app.as(account).post('/participants', { full_name: name, tags: ["a'b"] })
    expect(created.status).toBe(201)
    await app.as(account).get(`/participants?page[size]=1&filter[search]=O'Brien`)
    const logged = await until('both requests are logged', async () => {
      const rows: { id: string; method: string }[] = await app.db
        .read('request_log')
        .where({ account_id: account.accountId })
      return rows.length === 2 && rows
    })
    for (const { id, method } of logged) {
      const { text } = await owner.get(`/requests/${id}`)
      const command = curlCommandIn(text)
      expect(command).not.toContain(account.key)
      const answer = JSON.parse(await shell(command, account.key))
      if (method === 'POST')
        expect(answer).toMatchObject({ full_name: name, tags: ["a'b"], status: 'active' })
      // The list contains the original request and perhaps the repeated one.
      else expect(answer).toMatchObject({ meta: { per_page: 1 }, data: [{ full_name: name }] })
    }
  })

  async function shell(command: string, key: string): Promise<string> {
    const { stdout } = await run('sh', ['-c', command.replaceAll(app.config.baseUrl, app.url)], {
      env: { PATH: process.env.PATH, MUSTER_API_KEY: key },
    })
    return stdout
  }

  describe('bodies with records', () => {
    const operations = {
      createParticipant: 'participants',
      createTask: 'tasks',
      updateJob: 'jobs',
      createJobApplication: 'jobs',
      createExport: 'exports',
      createPayment: 'finance',
    } as const

    it.each(Object.entries(operations))(
      'of %s are hidden from users who may not read %s',
      async (operationId, module) => {
        const { account, owner } = await newAccountOwner(app)
        const [id] = await logRequests(app, account, [
          {
            operationId,
            method: 'POST',
            requestBody: '{"secret":"in the request"}',
            responseBody: '{"secret":"in the response"}',
            status: 201,
          },
        ])
        const readAll = inEveryModule('read')
        const withoutAccess = await visitor(
          app,
          await newConsoleUser(app, account.accountId, {
            permissions: { ...readAll, [module]: 'none' },
          }),
        )
        const withAccess = await visitor(
          app,
          await newConsoleUser(app, account.accountId, { permissions: readAll }),
        )
        for (const path of [`/requests/${id}`, `/requests/${id}?row=open`]) {
          const { text, status } = await withoutAccess.get(path)
          expect(status).toBe(200)
          expect(text).not.toContain('in the request')
          expect(text).not.toContain('in the response')
          expect(plainText(text)).toContain('The bodies of this request are hidden')
          for (const user of [withAccess, owner]) {
            const read = plainText((await user.get(path)).text)
            expect(read).toContain('in the request')
            expect(read).toContain('in the response')
          }
        }
      },
    )

    it.each(['listEventTypes', 'listEvents'])(
      'of %s are visible to everyone who sees requests',
      async (operationId) => {
        const { account } = await newAccountOwner(app)
        const [id] = await logRequests(app, account, [
          { operationId, responseBody: '{"data":["in the response"]}' },
        ])
        const admin = await visitor(
          app,
          await newConsoleUser(app, account.accountId, { permissions: NO_ACCESS }),
        )
        expect(plainText((await admin.get(`/requests/${id}`)).text)).toContain('in the response')
      },
    )
  })

  it('a Member gets 404', async () => {
    const { account } = await newAccountOwner(app)
    const [id] = await logRequests(app, account, [{}])
    const member = await visitor(
      app,
      await newConsoleUser(app, account.accountId, { role: 'member' }),
    )
    for (const path of ['/requests', `/requests/${id}`, '/requests.csv'])
      expect((await member.get(path)).status).toBe(404)
    expect((await member.get('')).text).not.toContain('/console/requests')
  })

  describe('a command to copy', () => {
    const CONTROLS = '\u0003\u001b[31m\r\n\t\u007f\u009b31m'
    // A digit after a control character must not become a part of the escape.
    const bodies = [CONTROLS, `a'b\\n${CONTROLS}'0\\`, `\u00037`, `é 😀 ${CONTROLS}é`]

    it.each(bodies.map((body) => [JSON.stringify(body), body] as const))(
      '%s: nothing that a terminal acts on, and the same bytes',
      async (_, body) => {
        const { account, owner } = await newAccountOwner(app)
        const path = `/public/v1/tasks?x=${body}`
        const [id] = await logRequests(app, account, [
          { method: 'POST', operationId: 'createTask', path, requestBody: body },
        ])
        const { text } = await owner.get(`/requests/${id}`)
        const command = curlCommandIn(text)
        // The command continues on the next line after a backslash.
        expect(command.replaceAll(' \\\n', '')).not.toMatch(/\p{Cc}/u)
        expect(text).toContain('Run it in bash or zsh.')
        const received = await argumentsOf('bash', command)
        expect(received.at(-1)).toBe(body)
        expect(received).toContain(app.config.baseUrl + path)
      },
    )

    it.each(["O'Brien $(id) `id` $HOME \\ ! %s", "$'\\n'", '{"a":"\\u0003"}'])(
      '%s: is quoted for a POSIX shell',
      async (body) => {
        const { account, owner } = await newAccountOwner(app)
        const [id] = await logRequests(app, account, [
          { method: 'POST', operationId: 'createTask', requestBody: body },
        ])
        const { text } = await owner.get(`/requests/${id}`)
        expect(text).not.toContain('bash or zsh')
        for (const shell of ['sh', 'bash'])
          expect((await argumentsOf(shell, curlCommandIn(text))).at(-1)).toBe(body)
      },
    )

    /** The arguments that curl receives. */
    async function argumentsOf(shell: string, command: string): Promise<string[]> {
      const { stdout } = await run(shell, ['-c', `curl() { printf '%s\\0' "$@"; }\n${command}`])
      return stdout.split('\0').slice(0, -1)
    }
  })
})
