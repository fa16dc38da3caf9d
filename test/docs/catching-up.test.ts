/** Follows the guide "Catching up after an outage": runs its files and commands as they are. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Muster, newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { cannotTellFirst, startPageProxy } from './page-proxy.ts'
import { run } from './runtimes.ts'

const GUIDE = fileURLToPath(new URL('../../docs/guides/catching-up.md', import.meta.url))
const TIMEOUT_MS = 120_000
/** All ten attempts of a delivery take about a second. */
const ENVIRONMENT = {
  WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  WEBHOOK_RETRY_DELAYS: Array(9).fill('0.1').join(','),
  RATE_LIMIT_PER_MINUTE: '100000',
}
/** More than fit on one page of a list. */
const MISSED_COUNT = 101

interface Block {
  language: string
  /** The file that the reader saves it as. */
  file: string
  code: string
}

let blocks: Block[]
let directory: string
let muster: Muster
let server: { url: string; accountId: string; key: string }
let receiver: ChildProcess | undefined
/** The variables that the receiver and the commands of the guide need. A test adds the secrets of its
 *  webhooks. */
let environment: Record<string, string>

beforeAll(async () => {
  const guide = await readFile(GUIDE, 'utf8')
  blocks = [...guide.matchAll(/^```(\S+)(?: (\S+))?\n(.*?)^```$/gms)].map(
    ([, language = '', file = '', code = '']) => ({ language, file, code }),
  )
  expect(blocks.map(({ language, file }) => file || language)).toEqual([
    ...['process-once.mjs', 'receiver.mjs', 'catch-up.mjs'],
    // The first one exports variables, which the tests set in another way. The others are commands.
    ...['sh', 'sh', 'sh', 'sh'],
    // A part of a response.
    'json',
  ])
  directory = await mkdtemp(join(tmpdir(), 'muster-catching-up-'))
  for (const { file, code } of blocks) if (file) await writeFile(join(directory, file), code)
  muster = await newMuster()
  const { ready } = await startServing(muster, { environment: ENVIRONMENT })
  server = {
    url: ready.url,
    accountId: ready.first_account?.account_id ?? '',
    key: ready.first_account?.token ?? '',
  }
  environment = {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    PORT: String(await freePort()),
    MUSTER_URL: server.url,
    MUSTER_API_KEY: server.key,
  }
}, TIMEOUT_MS)
afterAll(async () => {
  await stopReceiver()
  await muster[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** The command of the guide that contains the text. */
function commandWith(text: string): string[] {
  const found = blocks.filter(({ language, code }) => language === 'sh' && code.includes(text))
  expect(found, text).toHaveLength(1)
  return ['sh', '-c', `cd '${directory}' && exec ${found[0]?.code}`]
}

async function startReceiver(): Promise<void> {
  const [name = '', ...args] = commandWith('receiver.mjs')
  receiver = spawn(name, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await until('the receiver responds', () =>
    fetch(`http://127.0.0.1:${environment.PORT}/`).then(
      () => true,
      () => false,
    ),
  )
}

async function stopReceiver(): Promise<void> {
  if (!receiver || receiver.exitCode !== null || receiver.signalCode !== null) return
  const ended = new Promise((resolve) => receiver?.once('close', resolve))
  receiver.kill('SIGKILL')
  await ended
}

// biome-ignore lint/suspicious/noExplicitAny: each operation returns another body.
async function call(path: string, body?: object): Promise<any> {
  const response = await fetch(`${server.url}/public/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  expect(response.ok, path).toBe(true)
  return response.json()
}

async function newParticipants(count: number): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count)
    ids.push((await call('/participants', { full_name: 'Ada Lovelace' })).id)
  return ids
}

async function newWebhook(): Promise<{ id: string; secret: string }> {
  const url = `http://127.0.0.1:${environment.PORT}/`
  const args = ['--account', server.accountId, '--url', url, '--events', '*']
  return muster.json(['webhook', 'create', ...args], { environment: ENVIRONMENT })
}

async function listDeliveries(webhookId: string, state: string): Promise<{ id: string }[]> {
  const filters = ['--webhook', webhookId, '--state', state, '--limit', '500']
  return muster.json(['deliveries', 'list', ...filters])
}

/** The IDs of the participants whose creation the receiver has processed, sorted. An event that it
 *  processed twice is in it twice. */
function listProcessed(): string[] {
  using database = new DatabaseSync(join(directory, 'events.db'), { readOnly: true })
  const rows = database.prepare('SELECT event_type, resource_id FROM work').all()
  expect(new Set(rows.map(({ event_type }) => event_type))).toEqual(
    new Set(['participant.created']),
  )
  return rows.map(({ resource_id }) => String(resource_id)).sort()
}

async function catchUp(url = server.url): Promise<string> {
  const variables = { ...environment, MUSTER_URL: url }
  const { status, stdout, stderr } = await run(commandWith('catch-up.mjs'), variables)
  expect(status, stderr).toBe(0)
  return stdout
}

it('processes each event once: several webhooks, an outage beyond all attempts, and late deliveries', {
  timeout: 3 * TIMEOUT_MS,
}, async () => {
  const webhooks = [await newWebhook(), await newWebhook()]
  environment.MUSTER_WEBHOOK_SECRETS = webhooks.map(({ secret }) => secret).join(',')
  const waitForDeliveries = (state: string, count: number) =>
    until(
      `each webhook has ${count} deliveries that are ${state}`,
      async () => {
        for (const { id } of webhooks)
          if ((await listDeliveries(id, state)).length !== count) return false
        return true
      },
      TIMEOUT_MS,
    )

  await startReceiver()
  const before = await newParticipants(3)
  await waitForDeliveries('delivered', before.length)
  expect(listProcessed()).toEqual(before.toSorted())
  expect(await catchUp()).toBe('Processed 0 missed events.\n')

  await stopReceiver()
  const missed = await newParticipants(MISSED_COUNT)
  await waitForDeliveries('failed', missed.length)
  await startReceiver()
  const after = await newParticipants(1)
  await waitForDeliveries('delivered', before.length + after.length)
  expect(listProcessed()).toEqual([...before, ...after].sort())

  expect(await catchUp()).toBe(`Processed ${missed.length} missed events.\n`)
  const all = [...before, ...missed, ...after].sort()
  expect(listProcessed()).toEqual(all)

  // The failed deliveries arrive now, and again nothing is processed twice.
  for (const { id } of webhooks)
    await muster.json(['deliveries', 'retry-failed', '--webhook', id, '--since', '2000-01-01'])
  await waitForDeliveries('delivered', all.length)
  expect(listProcessed()).toEqual(all)
  expect(await catchUp()).toBe('Processed 0 missed events.\n')
})

it('finds an event that became visible late, although the first page did not say until when it was complete', {
  timeout: TIMEOUT_MS,
}, async () => {
  await stopReceiver()
  await catchUp()
  await using proxy = await startPageProxy(server.url)
  const [lateId] = await newParticipants(3)
  proxy.onPage = async (page, isFirst) => {
    const events = page.data as unknown as { resource: { id: string } }[]
    page.data = page.data.filter((_, index) => events[index]?.resource.id !== lateId)
    await cannotTellFirst(page, isFirst)
  }
  expect(await catchUp(proxy.url)).toBe('Processed 2 missed events.\n')
  expect(listProcessed()).not.toContain(lateId)
  expect(await catchUp()).toBe('Processed 1 missed events.\n')
  expect(listProcessed()).toContain(lateId)
})

it('the last command shows the IDs of the deliveries of an event', {
  timeout: TIMEOUT_MS,
}, async () => {
  const webhook = await newWebhook()
  const [participantId] = await newParticipants(1)
  const deliveries = await until('the delivery has failed', async () => {
    const found = await listDeliveries(webhook.id, 'failed')
    return found.length > 0 && found
  })
  const { data } = await call(`/events?filter[resource_id]=${participantId}`)
  const EVENT_ID = data[0].id
  const { stdout } = await run(commandWith('$EVENT_ID'), { ...environment, EVENT_ID })
  expect(JSON.parse(stdout)).toMatchObject({
    id: EVENT_ID,
    delivery_ids: expect.arrayContaining(deliveries.map(({ id }) => id)),
  })
})
