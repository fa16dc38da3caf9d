/** Runs the programs of the cookbook as they are, one after another in a folder of their own. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApp, type TestApp } from '../helpers.ts'
import { ROOT } from '../repository.ts'
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
  async function start(key: string, name: string, files: Record<string, string> = {}) {
    const cwd = await mkdtemp(join(folder, `${language}-`))
    return async (changed = files) => {
      for (const [file, content] of Object.entries(changed))
        await writeFile(join(cwd, file), content)
      const program = join(ROOT, `docs/cookbook/${name}.${LANGUAGES[language]}`)
      const environment = { MUSTER_URL: app.url, MUSTER_API_KEY: key }
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
      expect(records[changed.id].full_name).toBe('Renamed')
      expect(records[deleted.id]).toBeUndefined()

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
})
