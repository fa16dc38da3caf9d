/** Runs the programs of the cookbook as they are, one after another in a folder of their own. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Body, newParticipant, newPayment, newTask } from '../handlers/new-records.ts'
import { type Client, startApp, type TestApp } from '../helpers.ts'
import { ROOT } from '../repository.ts'
import { cannotTell, cannotTellFirst, startPageProxy } from './page-proxy.ts'
import { formatTestName, isSkipped, RUNTIMES, run } from './runtimes.ts'

const LANGUAGES: Record<string, string> = { typescript: 'ts', python: 'py', go: 'go' }

let app: TestApp
let folder: string
beforeAll(async () => {
  app = await startApp({
    role: 'all',
    environment: { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' },
  })
  folder = await mkdtemp(join(tmpdir(), 'muster-cookbook-'))
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

describe.each(RUNTIMES.filter(({ language }) => language in LANGUAGES))('$language', (runtime) => {
  const { language, command } = runtime

  /** Runs a program with files beside it. */
  async function start(
    key: string,
    name: string,
    files: Record<string, string> = {},
    url = app.url,
  ) {
    const cwd = await mkdtemp(join(folder, `${language}-`))
    return async (changed = files) => {
      for (const [file, content] of Object.entries(changed))
        await writeFile(join(cwd, file), content)
      const program = join(ROOT, `docs/cookbook/${name}.${LANGUAGES[language]}`)
      const environment = { MUSTER_URL: url, MUSTER_API_KEY: key }
      const result = await run(command(program), environment, cwd)
      return { ...result, read: (file: string) => readFile(join(cwd, file), 'utf8') }
    }
  }

  it.skipIf(isSkipped(runtime))(
    `${formatTestName(runtime)}: the programs do what the cookbook says`,
    { timeout: 120_000 },
    async () => {
      const { key } = await app.newAccount()
      const client = app.as({ key })
      const sync = await start(key, 'nightly-sync')

      const people = Array.from({ length: 101 }, (_, number) => ({
        full_name: `Person ${number}`,
        external_id: `crm-${number}`,
      }))
      const invalid = { full_name: 'No email', external_id: 'crm-x', email: 'no' }
      const upsert = await start(key, 'upsert-people')
      const first = await upsert({ 'people.json': JSON.stringify([...people, invalid]) })
      expect([first.status, first.stdout]).toEqual([1, '101 created, 0 updated, 1 refused.\n'])
      expect(first.stderr).toContain('crm-x')
      const second = await upsert({ 'people.json': JSON.stringify(people.slice(0, 3)) })
      expect([second.status, second.stdout]).toEqual([0, '0 created, 3 updated, 0 refused.\n'])

      expect((await sync()).stdout).toBe('101 read, 0 deleted, 101 in the copy.\n')
      const { body } = await client.get('/participants?page[size]=2')
      const [changed, deleted] = body.data
      await client.patch(`/participants/${changed.id}`, { full_name: 'Renamed' })
      await client.delete(`/participants/${deleted.id}`)
      const synced = await sync()
      expect(synced.stdout).toMatch(/^\d+ read, 1 deleted, 100 in the copy\.\n$/)
      const { records } = JSON.parse(await synced.read('mirror.json'))
      expect(records.participant[changed.id].full_name).toBe('Renamed')
      expect(records.participant[deleted.id]).toBeUndefined()

      const csv = 'full_name,external_id,email\r\nNew,crm-new,\r\nOld,crm-5,\r\nBad,crm-bad,no\r\n'
      const imported = await (await start(key, 'import-spreadsheet', { 'people.csv': csv }))()
      expect(imported.stdout).toBe('1 created, 1 updated, 0 unchanged, 1 refused.\n')
      expect(await imported.read('refused.csv')).toContain('crm-bad')

      const webhooks = (urls: string[]) => ({
        'webhooks.json': JSON.stringify(urls.map((url) => ({ url, event_types: ['*'] }))),
      })
      const reconcile = await start(key, 'reconcile-webhooks')
      const created = await reconcile(webhooks(['http://127.0.0.1:1/a', 'http://127.0.0.1:1/b']))
      expect(created.stdout).toMatch(/^(created http:\/\/127\.0\.0\.1:1\/[ab] whsec_\S+\n){2}$/)
      const left = await reconcile(webhooks(['http://127.0.0.1:1/a']))
      expect(left.stdout).toBe('unchanged http://127.0.0.1:1/a\ndeleted http://127.0.0.1:1/b\n')
    },
  )

  it.skipIf(isSkipped(runtime))(
    `${formatTestName(runtime)}: the copy has what the lists have, whatever complete_until says`,
    { timeout: 120_000 },
    async () => {
      const { key } = await app.newAccount()
      const client = app.as({ key })
      await using proxy = await startPageProxy(app.url)
      const sync = await start(key, 'nightly-sync', {}, proxy.url)
      /** What the program has copied. */
      const copy = async () => {
        const { status, stderr, read } = await sync()
        expect(status, stderr).toBe(0)
        mirror = JSON.parse(await read('mirror.json'))
        return mirror.records
      }
      let mirror: Body
      const deleted: Body[] = []
      while (deleted.length < 3) deleted.push(await newParticipant(client))
      const changed = await newParticipant(client)
      const task = await newTask(client, { participant_id: changed.id })
      const payment = await newPayment(client)
      // For a second page of participants.
      await newParticipant(client)
      const deleteNext = () => client.delete(`/participants/${deleted.pop().id}`)

      // Two first runs that do not know where the next one has to continue.
      proxy.onPage = cannotTell
      expect(await copy()).toEqual(await readLists(client))
      await deleteNext()
      await client.delete(`/payments/${payment.id}`)
      expect(await copy()).toEqual(await readLists(client))

      // A run that knows it, and two that do not.
      proxy.onPage = () => undefined
      expect(await copy()).toEqual(await readLists(client))
      const { from } = mirror
      proxy.onPage = cannotTell
      while (deleted.length > 0) {
        await deleteNext()
        expect(await copy()).toEqual(await readLists(client))
        expect(mirror.from).toBe(from)
      }

      // A record changes after the program has read its page, and only later pages know the time.
      let isChanged = false
      proxy.onPage = async (page, isFirst) => {
        if (!isChanged && page.data.some(({ id }) => id === changed.id)) {
          isChanged = true
          await client.patch(`/participants/${changed.id}`, { full_name: 'Changed meanwhile' })
          await client.delete(`/tasks/${task.id}`)
          await setTimeout(1)
        }
        await cannotTellFirst(page, isFirst)
      }
      await copy()
      proxy.onPage = () => undefined
      const copied = await copy()
      expect(copied).toEqual(await readLists(client))
      expect(copied.participant[changed.id].full_name).toBe('Changed meanwhile')

      // The operator restores a backup that does not have the last record and its event: first between two
      // runs, then during a run.
      const restoreWithout = async (id: string) => {
        await app.db.write('events').where({ resource_id: id }).delete()
        await app.db.write('participants').where({ id }).delete()
      }
      const last = await newParticipant(client)
      expect(Object.keys((await copy()).participant)).toContain(last.id)
      await restoreWithout(last.id)
      expect(await copy()).toEqual(await readLists(client))
      const lost = await newParticipant(client)
      proxy.onPage = async ({ data }) => {
        if (data.some(({ id }) => id === lost.id)) await restoreWithout(lost.id)
      }
      expect((await sync()).status).toBe(1)
      expect(await copy()).toEqual(await readLists(client))
    },
  )
})

/** The records of the lists that nightly-sync copies, by ID. */
async function readLists(client: Client): Promise<Record<string, object>> {
  const lists = { participant: '/participants', task: '/tasks', payment: '/payments' }
  const entries = Object.entries(lists).map(async ([name, path]) => {
    const { body } = await client.get(`${path}?page[size]=100`)
    return [
      name,
      Object.fromEntries(body.data.map((record: { id: string }) => [record.id, record])),
    ]
  })
  return Object.fromEntries(await Promise.all(entries))
}
