/** The page of an API request: its details, its bodies, and who may see them. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { sharedApp, type TestAccount, until } from '../helpers.ts'
import { commandIn, log, NOW, plainText } from './logged-requests.ts'
import { newConsoleUser, type Visitor, visitor } from './visitors.ts'

const run = promisify(execFile)

describe('API requests', () => {
  const app = sharedApp({ now: () => new Date(NOW) })

  async function newOwner(): Promise<{ account: TestAccount; owner: Visitor }> {
    const account = await app.newAccount()
    return { account, owner: await visitor(app, account) }
  }

  describe('one request', () => {
    it('shows all details, on a page that needs no JavaScript', async () => {
      const { account, owner } = await newOwner()
      const requestId = randomUUID()
      const [id] = await log(app, account, [
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
      const read = plainText(text)
      // Indented.
      expect(read).toContain('{\n  "title": "Call",\n  "due_at": null\n}')
      expect(read).toContain('Test Owner')
      expect(read).toContain('Test key')
      expect(read).toContain('203.0.113.7')
      expect((await owner.get('/requests')).text).toContain(`href="/console/requests/${id}"`)
      expect((await fetch(`${app.url}/docs/operations/createTask`)).status).toBe(200)
    })

    it.each([randomUUID(), 'nothing', '%00'])('%s: 404', async (id) => {
      const { owner } = await newOwner()
      expect((await owner.get(`/requests/${id}`)).status).toBe(404)
    })

    it('escapes what hostile clients send', async () => {
      const { account, owner } = await newOwner()
      const attack = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`
      await app.db
        .write('users')
        .where({ id: account.userId })
        .update({ full_name: `Ada ${attack}` })
      await app.db
        .write('api_keys')
        .where({ account_id: account.accountId })
        .update({ name: `Key ${attack}` })
      const [id] = await log(app, account, [
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
      const { account, owner } = await newOwner()
      const body = JSON.stringify({ title: 'x'.repeat(70_000) })
      expect((await app.as(account).post('/tasks', body)).status).toBe(422)
      // The log uses the real time, and the page the time of the test.
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
      const { account, owner } = await newOwner()
      const [id] = await log(app, account, [
        { responseBody: JSON.stringify({ text: 'x'.repeat(65_536 - 11) }) },
      ])
      const { text } = await owner.get(`/requests/${id}`)
      expect(text).not.toContain('Truncated')
    })

    it('the curl command repeats the request in a shell, whatever it contains', async () => {
      const { account, owner } = await newOwner()
      const name = `O'Brien "$(echo owned)" \`id\` \\ $HOME ! %s\n@x`
      const created = await app
        .as(account)
        .post('/participants', { full_name: name, tags: ["a'b"] })
      expect(created.status).toBe(201)
      await app.as(account).get(`/participants?page[size]=1&filter[search]=O'Brien`)
      const commands = await until('both are logged', async () => {
        const rows: { id: string; method: string }[] = await app.db
          .read('request_log')
          .where({ account_id: account.accountId })
        return rows.length === 2 && rows
      })
      for (const { id, method } of commands) {
        const { text } = await owner.get(`/requests/${id}`)
        const command = commandIn(text)
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
        'of %s are for those who may read %s',
        async (operationId, module) => {
          const { account, owner } = await newOwner()
          const [id] = await log(app, account, [
            {
              operationId,
              method: 'POST',
              requestBody: '{"secret":"asked"}',
              responseBody: '{"secret":"answered"}',
              status: 201,
            },
          ])
          const all = {
            participants: 'read',
            tasks: 'read',
            jobs: 'read',
            exports: 'read',
            finance: 'read',
          } as const
          const blind = await visitor(
            app,
            await newConsoleUser(app, account.accountId, {
              permissions: { ...all, [module]: 'none' },
            }),
          )
          const seeing = await visitor(
            app,
            await newConsoleUser(app, account.accountId, { permissions: all }),
          )
          for (const path of [`/requests/${id}`, `/requests/${id}?row=open`]) {
            const { text, status } = await blind.get(path)
            expect(status).toBe(200)
            expect(text).not.toContain('asked')
            expect(text).not.toContain('answered')
            expect(plainText(text)).toContain('The bodies of this request are hidden')
            for (const one of [seeing, owner]) {
              const read = plainText((await one.get(path)).text)
              expect(read).toContain('asked')
              expect(read).toContain('answered')
            }
          }
        },
      )

      it('of event types and events are visible to everyone who sees requests', async () => {
        const { account } = await newOwner()
        const [id] = await log(app, account, [
          { operationId: 'listEventTypes', responseBody: '{"data":["answered"]}' },
        ])
        const none = {
          participants: 'none',
          tasks: 'none',
          jobs: 'none',
          exports: 'none',
          finance: 'none',
        } as const
        const admin = await visitor(
          app,
          await newConsoleUser(app, account.accountId, { permissions: none }),
        )
        expect(plainText((await admin.get(`/requests/${id}`)).text)).toContain('answered')
      })
    })

    it('a Member gets 404', async () => {
      const { account } = await newOwner()
      const [id] = await log(app, account, [{}])
      const member = await visitor(
        app,
        await newConsoleUser(app, account.accountId, { role: 'member' }),
      )
      for (const path of ['/requests', `/requests/${id}`, '/requests.csv'])
        expect((await member.get(path)).status).toBe(404)
      expect((await member.get('')).text).not.toContain('/console/requests')
    })
  })
})
