/** Runs every sample of every operation, as it is on its page. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OperationId, operations } from '../../generated/operations.ts'
import { operationIds, startApp, type TestApp, until } from '../helpers.ts'
import { createOneOfEach } from '../resources.ts'
import { readTabs } from './pages.ts'
import { formatTestName, isSkipped, RUNTIMES, run } from './runtimes.ts'

/** One operation of each kind: the compiler takes about a second for each sample. */
const COMPILED_OPERATIONS: OperationId[] = [
  'listParticipants',
  'createJob',
  'updateTask',
  'deletePayment',
  'getExportFile',
]
const LANGUAGES = RUNTIMES.map(({ language }) => language)

/** The ID of a record in the output of a sample. */
const RECORD_ID = /\bid\W+([0-9a-f-]{36})/

let app: TestApp
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-samples-'))
  app = await startApp({ role: 'all' })
}, 120_000)
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** An account with one record of each resource. The export is complete when the operation needs it. */
async function newRecords(
  operationId: OperationId,
): Promise<{ key: string; ids: Record<string, string> }> {
  const { key } = await app.newAccount()
  const client = app.as({ key })
  const ids = await createOneOfEach(client)
  if (operations[operationId].path.includes('{export_id}'))
    await until(
      'the export is complete',
      async () => (await client.get(`/exports/${ids.export}`)).body.status === 'completed',
      60_000,
    )
  return { key, ids }
}

/** The sample of the page, with the IDs of existing records. */
async function readSample(
  operationId: OperationId,
  language: string,
  ids: Record<string, string>,
): Promise<string> {
  const page = await (await fetch(`${app.url}/docs/operations/${operationId}`)).text()
  const sample = readTabs(page, 'request')[language] ?? ''
  expect(sample, `${operationId} in ${language}`).toContain('/public/v1/')
  const [, name = ''] = /\{(\w+?)(?:_id)?\}/.exec(operations[operationId].path) ?? []
  const id = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}'
  return sample
    .replaceAll(app.config.baseUrl, app.url)
    .replace(new RegExp(`(/public/v1/[a-z-]+/)${id}`), `$1${ids[name]}`)
    .replace(new RegExp(`(job_id["']?(?:: | => )["'])${id}`), `$1${ids.job}`)
    .replace(new RegExp(`(participant_id["']?(?:: | => )["'])${id}`), `$1${ids.participant}`)
}

it('each operation has a sample in each language', async () => {
  for (const id of operationIds) {
    const samples = readTabs(
      await (await fetch(`${app.url}/docs/operations/${id}`)).text(),
      'request',
    )
    expect(Object.keys(samples), id).toEqual(LANGUAGES)
    expect(new Set(Object.values(samples)).size, id).toBe(LANGUAGES.length)
  }
})

it('samples of each POST send an Idempotency-Key, and other samples do not', async () => {
  for (const id of operationIds) {
    const page = await (await fetch(`${app.url}/docs/operations/${id}`)).text()
    const isPost = operations[id].method.toUpperCase() === 'POST'
    for (const [language, sample] of Object.entries(readTabs(page, 'request')))
      expect(sample.includes('Idempotency-Key'), `${id} in ${language}`).toBe(isPost)
  }
})

describe.each(RUNTIMES)('$language', (runtime) => {
  const { language, file, command } = runtime
  const ids = language === 'go' ? COMPILED_OPERATIONS : operationIds

  it.skipIf(isSkipped(runtime))(
    `${formatTestName(runtime)}: samples run unchanged and succeed`,
    { timeout: 300_000 },
    async () => {
      for (const operationId of ids) {
        const { key, ids } = await newRecords(operationId)
        const path = join(directory, `${operationId}-${file}`)
        await writeFile(path, await readSample(operationId, language, ids))
        const { status, stdout, stderr } = await run(command(path), { MUSTER_API_KEY: key })
        expect({ operationId, status, stderr: language === 'curl' ? '' : stderr }).toEqual({
          operationId,
          status: 0,
          stderr: '',
        })
        // curl exits with 0 for every response, so check its output.
        expect(stdout, operationId).not.toContain('"message"')
        const { success } = operations[operationId]
        if (success === 201) expect(stdout, operationId).toContain('created_at')
        if (success === 204) expect(stdout, operationId).toMatch(language === 'curl' ? /^$/ : /204/)
      }
    },
  )

  it.skipIf(isSkipped(runtime) || language === 'go')(
    `${formatTestName(runtime)}: samples of a resource run in order, and a repeated create returns the same record`,
    { timeout: 60_000 },
    async () => {
      const { key } = await app.newAccount()
      const runSample = async (operationId: OperationId, participant: string): Promise<string> => {
        const path = join(directory, `ordered-${operationId}-${file}`)
        await writeFile(path, await readSample(operationId, language, { participant }))
        const { status, stdout } = await run(command(path), { MUSTER_API_KEY: key })
        expect(status, `${operationId}: ${stdout}`).toBe(0)
        return stdout
      }
      const idOf = (output: string) => RECORD_ID.exec(output)?.[1] ?? ''
      const id = idOf(await runSample('createParticipant', ''))
      expect(id).not.toBe('')
      expect(idOf(await runSample('createParticipant', ''))).toBe(id)
      expect(idOf(await runSample('getParticipant', id))).toBe(id)
      expect(idOf(await runSample('updateParticipant', id))).toBe(id)
      const client = app.as({ key })
      expect((await client.get('/participants')).body.meta.total).toBe(1)
      await runSample('deleteParticipant', id)
      expect((await client.get(`/participants/${id}`)).status).toBe(404)
    },
  )

  it.skipIf(isSkipped(runtime) || language === 'curl')(
    `${formatTestName(runtime)}: samples report an error response`,
    { timeout: 60_000 },
    async () => {
      const path = join(directory, `refused-${file}`)
      await writeFile(
        path,
        (await readSample('listTasks', language, {})).replaceAll('page[size]', 'page[sise]'),
      )
      const { status, stdout, stderr } = await run(command(path), {
        MUSTER_API_KEY: (await app.newAccount()).key,
      })
      expect(status).not.toBe(0)
      expect(stdout + stderr).toContain('422')
    },
  )
})
