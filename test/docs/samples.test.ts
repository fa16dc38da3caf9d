/** Runs every sample of every operation, as it is on its page. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OperationId, operations } from '../../generated/operations.ts'
import { operationIds, startApp, type TestApp, until } from '../helpers.ts'
import { createOneOfEach } from '../resources.ts'
import { readTabs } from './pages.ts'
import { formatTestName, isSkipped, RUNTIMES, type Runtime, run } from './runtimes.ts'

/** One operation of each kind: the compiler takes about a second for each sample. */
const COMPILED_OPERATIONS: OperationId[] = [
  'listParticipants',
  'createJob',
  'updateTask',
  'deletePayment',
  'getExportFile',
]
const LANGUAGES = RUNTIMES.map(({ language }) => language)
const JQ = { language: 'jq', probe: ['jq', '--version'] }

/** The ID of a record in the output of a sample. */
const RECORD_ID = /\bid\W+([0-9a-f-]{36})/

let app: TestApp
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-samples-'))
  await installClient()
  app = await startApp({ role: 'all' })
}, 120_000)
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** Installs the client package without a build: Node strips the types of files that are not below
 *  node_modules. */
async function installClient(): Promise<void> {
  const source = join(directory, 'client')
  await mkdir(source)
  await mkdir(join(directory, 'node_modules/@muster'), { recursive: true })
  await writeFile(join(source, 'package.json'), '{"type": "module", "exports": "./index.ts"}')
  const entry = new URL('../../client/src/index.ts', import.meta.url)
  await writeFile(join(source, 'index.ts'), `export * from '${entry.href}'\n`)
  await symlink(source, join(directory, 'node_modules/@muster/client'))
}

/** The samples of the operation's page, by language. */
async function readSamples(operationId: OperationId): Promise<Record<string, string>> {
  const response = await fetch(`${app.url}/docs/operations/${operationId}`)
  return readTabs(await response.text(), 'request')
}

/** The sample in this language, with the URL of the service of the test. */
async function readSample(operationId: OperationId, language: string): Promise<string> {
  const sample = (await readSamples(operationId))[language] ?? ''
  expect(sample, `${operationId} in ${language}`).toMatch(/\/public\/v1\b/)
  return sample.replaceAll(app.config.baseUrl, app.url)
}

async function runSample(
  { language, file, command }: Runtime,
  operationId: OperationId,
  environment: Record<string, string>,
): Promise<string> {
  const path = join(directory, `${operationId}-${file}`)
  await writeFile(path, await readSample(operationId, language))
  const { status, stdout, stderr } = await run(command(path), environment)
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
  return stdout
}

/** The variables for records that an operation of another collection creates. */
const VARIABLES: Partial<Record<OperationId, string>> = {
  testWebhook: 'DELIVERY_ID',
  sendMissedEvents: 'BULK_JOB_ID',
  retryFailedDeliveries: 'BULK_JOB_ID',
  retryWaitingDeliveries: 'BULK_JOB_ID',
}

/** The variable in which samples expect the ID of a record: `TASK_ID` for `/public/v1/tasks`.
 *  Undefined if the collection has no records with an ID. */
function findVariable(operationId: OperationId): string | undefined {
  if (VARIABLES[operationId]) return VARIABLES[operationId]
  const collection = operations[operationId].path
  const recordPath = Object.values(operations)
    .map(({ path }) => path)
    .find((path) => path.startsWith(`${collection}/{`))
  const [, type] = /\{(\w+?)(?:_id)?\}/.exec(recordPath ?? '') ?? []
  return type && `${type.toUpperCase()}_ID`
}

/** Creations first, in the order of the contract, and deletions last, in the reverse order. */
const OPERATIONS_IN_ORDER = ['post', 'get', 'patch', 'delete'].flatMap((method) => {
  const ids = operationIds.filter((id) => operations[id].method === method)
  return method === 'delete' ? ids.toReversed() : ids
})

async function waitForExport(key: string, id = ''): Promise<void> {
  const client = app.as({ key })
  await until(
    'the export is complete',
    async () => (await client.get(`/exports/${id}`)).body.status === 'completed',
    60_000,
  )
}

/** Deletes the payments that no sample deletes, as those of a batch: a participant with payments cannot
 *  be deleted. */
async function deletePayments(key: string): Promise<void> {
  const client = app.as({ key })
  for (const { id } of (await client.get('/payments')).body.data)
    await client.delete(`/payments/${id}`)
}

it('each operation has a sample in each language', async () => {
  for (const id of operationIds) {
    const samples = await readSamples(id)
    expect(Object.keys(samples), id).toEqual(LANGUAGES)
    expect(new Set(Object.values(samples)).size, id).toBe(LANGUAGES.length)
  }
})

it('samples send an Idempotency-Key if the method is POST, and otherwise not', async () => {
  for (const id of operationIds) {
    const isPost = operations[id].method === 'post'
    // The client sends a key itself.
    for (const [language, sample] of Object.entries(await readSamples(id)))
      expect(sample.includes('Idempotency-Key'), `${id} in ${language}`).toBe(
        isPost && language !== 'client',
      )
  }
})

describe.each(RUNTIMES)('$language', (runtime) => {
  const { language, file, command } = runtime

  it.skipIf(isSkipped(runtime) || language === 'go')(
    `${formatTestName(runtime)}: each sample runs unchanged, with the IDs that samples before it print`,
    { timeout: 120_000 },
    async () => {
      const { key } = await app.newAccount()
      const environment: Record<string, string> = { MUSTER_API_KEY: key }
      for (const operationId of OPERATIONS_IN_ORDER) {
        if (operationId === 'getExportFile') await waitForExport(key, environment.EXPORT_ID)
        if (operationId === 'deleteParticipant') await deletePayments(key)
        const output = await runSample(runtime, operationId, environment)
        const variable = findVariable(operationId)
        const [, id] = RECORD_ID.exec(output) ?? []
        if (variable !== undefined && id !== undefined) environment[variable] ??= id
        // Each run sends another Idempotency-Key, so it creates another record.
        if (operationId === 'createParticipant')
          expect(await runSample(runtime, operationId, environment)).not.toContain(id)
      }
    },
  )

  it.skipIf(isSkipped(runtime) || language !== 'go')(
    `${formatTestName(runtime)}: samples run with the IDs of existing records`,
    { timeout: 300_000 },
    async () => {
      const { key } = await app.newAccount()
      const ids = await createOneOfEach(app.as({ key }))
      await waitForExport(key, ids.export)
      const variables = Object.entries(ids).map(([type, id]) => [`${type.toUpperCase()}_ID`, id])
      const environment = { MUSTER_API_KEY: key, ...Object.fromEntries(variables) }
      for (const operationId of COMPILED_OPERATIONS)
        await runSample(runtime, operationId, environment)
    },
  )

  it.skipIf(isSkipped(runtime) || language === 'curl')(
    `${formatTestName(runtime)}: samples report an error response`,
    { timeout: 60_000 },
    async () => {
      const path = join(directory, `refused-${file}`)
      const sample = await readSample('listTasks', language)
      await writeFile(path, sample.replaceAll('page[size]', 'page[sise]'))
      const { status, stdout, stderr } = await run(command(path), {
        MUSTER_API_KEY: (await app.newAccount()).key,
      })
      expect(status).not.toBe(0)
      expect(stdout + stderr).toContain('422')
    },
  )
})

it.skipIf(isSkipped(JQ))(
  'curl: a sample sets the ID of its record for later samples in the same shell',
  async () => {
    const { key } = await app.newAccount()
    const ids: OperationId[] = ['createParticipant', 'createTask', 'createPayment', 'getPayment']
    const samples = await Promise.all(ids.map((id) => readSample(id, 'curl')))
    const path = join(directory, 'pasted.sh')
    await writeFile(path, samples.join('\n'))
    const { status, stdout } = await run(['sh', path], { MUSTER_API_KEY: key })
    expect(status).toBe(0)
    const [participant, , payment, samePayment] = [...stdout.matchAll(/\{.*\}/g)].map(([text]) =>
      JSON.parse(text),
    )
    expect(payment.participant_id).toBe(participant.id)
    expect(samePayment).toEqual(payment)
  },
)

it.skipIf(isSkipped(JQ))(
  'curl: a sample that starts a bulk job of a webhook sets the ID for the sample that cancels it',
  async () => {
    const { key } = await app.newAccount()
    const ids: OperationId[] = ['createWebhook', 'sendMissedEvents', 'cancelBulkJob']
    const samples = await Promise.all(ids.map((id) => readSample(id, 'curl')))
    const path = join(directory, 'pasted-bulk-job.sh')
    await writeFile(path, samples.join('\n'))
    const { stdout } = await run(['sh', path], { MUSTER_API_KEY: key })
    const [, started, cancelled] = [...stdout.matchAll(/\{.*\}/g)].map(([text]) => JSON.parse(text))
    expect(cancelled.id).toBe(started.id)
  },
)
