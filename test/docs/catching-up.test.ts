/** Follows the guide "Catching up after an outage": runs its files and commands as they are. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Muster, newMuster } from '../cli/muster.ts'
import { until } from '../helpers.ts'
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
let environment: Record<string, string>

beforeAll(async () => {
  const guide = await readFile(GUIDE, 'utf8')
  blocks = [...guide.matchAll(/^```(\S+)(?: (\S+))?\n(.*?)^```$/gms)].map(
    ([, language = '', file = '', code = '']) => ({ language, file, code }),
  )
  expect(blocks.map(({ language, file }) => file || language)).toEqual([
    ...['process-once.mjs', 'receiver.mjs', 'catch-up.mjs'],
    // The environment, which the tests set, and three commands.
    ...['sh', 'sh', 'sh', 'sh'],
  ])
  directory = await mkdtemp(join(tmpdir(), 'muster-catching-up-'))
  for (const { file, code } of blocks) if (file) await writeFile(join(directory, file), code)
  muster = await newMuster()
  const started = muster.start(['serve', '--json'], {
    environment: { ...ENVIRONMENT, PORT: '0', LOG_LEVEL: 'warn' },
  })
  const { url, first_account } = await until(
    'the server is ready',
    () => started.output.stdout.includes('\n') && JSON.parse(started.output.stdout),
    TIMEOUT_MS,
  )
  server = { url, accountId: first_account.account_id, key: first_account.token }
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
  if (!receiver || receiver.exitCode !== null) return
  const ended = new Promise((resolve) => receiver?.once('close', resolve))
  receiver.kill('SIGKILL')
  await ended
}

async function freePort(): Promise<string> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return typeof address === 'object' ? String(address?.port) : ''
}

async function call(path: string, body?: object): Promise<{ id: string }> {
  const response = await fetch(`${server.url}/public/v1${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  expect(response.ok, path).toBe(true)
  return (await response.json()) as { id: string }
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

const countDeliveries = async (webhook: string, state: string): Promise<number> =>
  (
    await muster.json([
      'deliveries',
      'list',
      '--webhook',
      webhook,
      '--state',
      state,
      '--limit',
      '500',
    ])
  ).length

/** The participants whose creation the receiver has processed, once for each time. */
function processed(): string[] {
  using database = new DatabaseSync(join(directory, 'events.db'), { readOnly: true })
  const rows = database.prepare('SELECT event_type, resource_id FROM work').all()
  expect(new Set(rows.map(({ event_type }) => event_type))).toEqual(
    new Set(['participant.created']),
  )
  return rows.map(({ resource_id }) => String(resource_id)).sort()
}

async function catchUp(): Promise<string> {
  const { status, stdout, stderr } = await run(commandWith('catch-up.mjs'), environment)
  expect(status, stderr).toBe(0)
  return stdout
}

it('processes each event once: several webhooks, an outage beyond all attempts, and late deliveries', {
  timeout: 3 * TIMEOUT_MS,
}, async () => {
  environment = {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    PORT: await freePort(),
    MUSTER_URL: server.url,
    MUSTER_API_KEY: server.key,
  }
  const webhooks = [await newWebhook(), await newWebhook()]
  environment.MUSTER_WEBHOOK_SECRETS = webhooks.map(({ secret }) => secret).join(',')
  const allAre = (state: string, count: number) =>
    until(
      `${count} deliveries of each webhook are ${state}`,
      async () =>
        (await Promise.all(webhooks.map(({ id }) => countDeliveries(id, state)))).every(
          (found) => found === count,
        ),
      TIMEOUT_MS,
    )

  await startReceiver()
  const before = await newParticipants(3)
  await allAre('delivered', before.length)
  expect(processed()).toEqual(before.toSorted())
  expect(await catchUp()).toBe('Processed 0 missed events.\n')

  await stopReceiver()
  const missed = await newParticipants(MISSED_COUNT)
  await allAre('failed', missed.length)
  await startReceiver()
  const after = await newParticipants(1)
  await allAre('delivered', before.length + after.length)
  expect(processed()).toEqual([...before, ...after].sort())

  expect(await catchUp()).toBe(`Processed ${missed.length} missed events.\n`)
  const all = [...before, ...missed, ...after].sort()
  expect(processed()).toEqual(all)

  // The failed deliveries arrive now, and again nothing is processed twice.
  for (const { id } of webhooks)
    await muster.json(['deliveries', 'retry-failed', '--webhook', id, '--since', '2000-01-01'])
  await allAre('delivered', all.length)
  expect(processed()).toEqual(all)
  expect(await catchUp()).toBe('Processed 0 missed events.\n')
})

it('shows the deliveries of an event', { timeout: TIMEOUT_MS }, async () => {
  const { data } = (await call('/events')) as unknown as { data: { id: string }[] }
  const EVENT_ID = data[0]?.id ?? ''
  const { stdout } = await run(commandWith('$EVENT_ID'), { ...environment, EVENT_ID })
  expect(JSON.parse(stdout)).toMatchObject({
    id: EVENT_ID,
    delivery_ids: [expect.any(String), expect.any(String)],
  })
})
