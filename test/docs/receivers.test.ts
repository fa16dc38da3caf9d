/** Runs the receivers of the guide, as they are on its page, with deliveries of a real server. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { newSecret } from '../../webhooks/transport/secret.ts'
import { type Muster, newMuster } from '../cli/muster.ts'
import { startServing } from '../cli/serving.ts'
import { until } from '../helpers.ts'
import { freePort } from '../postgres.ts'
import { type ReceivedRequest, startReceiver } from '../receiver.ts'
import { readTabs } from './pages.ts'
import { formatTestName, isSkipped, run } from './runtimes.ts'

interface ReceiverRuntime {
  language: string
  file: string
  command(file: string, port: number): string[]
  /** The strictest check of the language's own tools. */
  compile(file: string): string[]
  probe: string[]
  /** False: the web server in front of the receiver ends unfinished uploads. */
  endsUploads?: false
  /** True: the receiver prints the delivery's ID, because the language has no JSON parser. */
  printsId?: true
}

const TSC = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url))
const TYPES = fileURLToPath(new URL('../../node_modules/@types', import.meta.url))

const RECEIVERS: ReceiverRuntime[] = [
  {
    language: 'typescript',
    file: 'receiver.mts',
    command: (file) => [process.execPath, file],
    compile: (file) => [
      ...[TSC, '--strict', '--noEmit', '--module', 'nodenext', '--target', 'esnext'],
      ...['--types', 'node', '--typeRoots', TYPES, file],
    ],
    probe: [process.execPath, '--version'],
  },
  {
    language: 'python',
    file: 'receiver.py',
    command: (file) => ['python3', file],
    compile: (file) => ['python3', '-W', 'error', '-m', 'py_compile', file],
    probe: ['python3', '--version'],
  },
  {
    language: 'php',
    file: 'receiver.php',
    command: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
    compile: (file) => ['php', '-d', 'error_reporting=E_ALL', '--syntax-check', file],
    probe: ['php', '--version'],
    endsUploads: false,
  },
  {
    language: 'go',
    file: 'receiver.go',
    command: (file) => ['go', 'run', file],
    compile: (file) => ['go', 'vet', file],
    probe: ['go', 'version'],
  },
  {
    language: 'ruby',
    file: 'receiver.rb',
    command: (file) => ['ruby', file],
    compile: (file) => ['ruby', '-wc', file],
    probe: ['ruby', '-rwebrick', '-e', ''],
  },
  {
    language: 'java',
    file: 'Receiver.java',
    command: (file) => ['java', file],
    compile: (file) => ['javac', '-Xlint', '-Werror', '-d', `${file}.classes`, file],
    probe: ['java', '--list-modules'],
    printsId: true,
  },
]

const ENVIRONMENT = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }
/** Compilers are slow on a busy machine. */
const TIMEOUT_MS = 120_000
/** The unfinished upload would need 100 s. */
const UPLOAD_LIMIT_MS = 60_000

let muster: Muster
let server: { url: string; accountId: string; key: string }
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-receivers-'))
  muster = await newMuster()
  const { ready } = await startServing(muster, { environment: ENVIRONMENT })
  server = {
    url: ready.url,
    accountId: ready.first_account?.account_id ?? '',
    key: ready.first_account?.token ?? '',
  }
}, TIMEOUT_MS)
afterAll(async () => {
  await muster[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

interface RunningReceiver extends AsyncDisposable {
  /** One line for each processed delivery. */
  output(): string
  errors(): string
  hasExited(): boolean
}

/** Writes the receiver of the guide to a file. Returns the path of the file. */
async function writeDocumented({ language, file }: ReceiverRuntime): Promise<string> {
  const guide = await (await fetch(`${server.url}/docs/guides/webhooks`)).text()
  const code = readTabs(guide, 'code-')[language] ?? ''
  expect(code).toContain('MUSTER_WEBHOOK_SECRET')
  const path = join(directory, file)
  await writeFile(path, code)
  return path
}

/** Starts the receiver of the guide. Resolves when the receiver responds or has exited. */
async function startDocumented(
  runtime: ReceiverRuntime,
  port: number,
  secret: string,
  nextSecret = '',
): Promise<RunningReceiver> {
  const [name = '', ...args] = runtime.command(await writeDocumented(runtime), port)
  const environment = {
    ...process.env,
    PORT: String(port),
    MUSTER_WEBHOOK_SECRET: secret,
    MUSTER_WEBHOOK_NEXT_SECRET: nextSecret,
    TMPDIR: directory,
  }
  // Some receivers start another process. A process group ends both.
  const child = spawn(name, args, { env: environment, detached: true })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text
  })
  const hasExited = () => child.exitCode !== null
  await until(
    `${runtime.language} responds or exits`,
    async () => hasExited() || (await post(port, '{}')) !== undefined,
    TIMEOUT_MS,
  )
  return {
    output: () => output,
    errors: () => errors,
    hasExited,
    [Symbol.asyncDispose]: () => killGroup(child),
  }
}

/** Posts a body and returns the status. Returns undefined if nothing listens. */
function post(
  port: number,
  body: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  return fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body }).then(
    ({ status }) => status,
    () => undefined,
  )
}

/** Sends a part of a request, then a byte each second. */
async function startUpload(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  const drip = setInterval(() => socket.write(' '), 1000)
  socket.once('close', () => clearInterval(drip))
  await new Promise<void>((resolve) => {
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{', () =>
      resolve(),
    )
  })
  return socket
}

async function killGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = new Promise((resolve) => child.once('close', resolve))
  process.kill(-(child.pid ?? 0), 'SIGKILL')
  await ended
}

async function newWebhook(url: string): Promise<{ id: string; secret: string }> {
  const options = ['--account', server.accountId, '--url', url, '--events', 'participant.created']
  return muster.json(['webhook', 'create', ...options], { environment: ENVIRONMENT })
}

async function newParticipant(): Promise<{ id: string }> {
  const response = await fetch(`${server.url}/public/v1/participants`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${server.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ full_name: 'Ada Lovelace' }),
  })
  expect(response.status).toBe(201)
  return (await response.json()) as { id: string }
}

describe.each(RECEIVERS)('the receiver in $language', (runtime) => {
  const name = formatTestName(runtime)
  const { printsId = false, endsUploads = true } = runtime

  it.skipIf(isSkipped(runtime))(
    `${name}: compiles without warnings`,
    { timeout: TIMEOUT_MS },
    async () => {
      const { status, stdout, stderr } = await run(
        runtime.compile(await writeDocumented(runtime)),
        {},
      )
      expect(status, stdout + stderr).toBe(0)
      expect(stderr).not.toMatch(/warn/i)
    },
  )

  it.skipIf(isSkipped(runtime))(
    `${name}: processes each real delivery once and follows every rule of check-receiver`,
    { timeout: 2 * TIMEOUT_MS },
    async () => {
      const port = await freePort()
      const url = `http://127.0.0.1:${port}/`
      const { id: webhook, secret } = await newWebhook(url)
      const nextSecret = newSecret()
      await using receiver = await startDocumented(runtime, port, secret, nextSecret)
      expect(receiver.hasExited(), receiver.errors()).toBe(false)
      const upload = await startUpload(port)

      const participant = await newParticipant()
      const delivery = await until(
        'the delivery is delivered',
        async () =>
          (
            await muster.json(['deliveries', 'list', '--webhook', webhook, '--state', 'delivered'])
          )[0],
        TIMEOUT_MS,
      )
      expect(delivery).toMatchObject({ event_type: 'participant.created', attempts: 1 })
      // A receiver prints one line for each processed delivery.
      const line = printsId ? delivery.id : `participant.created ${participant.id}`
      await until('it is processed', () => receiver.output().includes(`${line}\n`), TIMEOUT_MS)
      await muster.json(['webhook', 'disable', webhook])

      // The receiver must not process forged deliveries and repeats.
      const before = receiver.output()
      const options = ['--secret', secret, '--next-secret', nextSecret, '--strict']
      const checked = await muster.json(['check-receiver', url, ...options])
      expect(checked.rules.filter(({ passed }: { passed: boolean }) => !passed)).toEqual([])
      const processed = (): string[] => receiver.output().slice(before.length).trim().split('\n')
      await until(
        'all are processed',
        () => processed().length >= checked.expected_deliveries,
        TIMEOUT_MS,
      )
      expect(processed()).toHaveLength(checked.expected_deliveries)
      for (const text of processed())
        expect(text).toMatch(printsId ? /^[0-9a-f-]{36}$/ : /^\S+\.\S+ [0-9a-f-]{36}$/)
      // check-receiver changes a body to this word and keeps the signature of the original.
      expect(processed().join()).not.toContain('particlpant')

      if (endsUploads) await until('the upload ends', () => upload.destroyed, UPLOAD_LIMIT_MS)
      upload.destroy()
    },
  )

  it.skipIf(isSkipped(runtime))(
    `${name}: responds 405 to methods other than POST`,
    { timeout: TIMEOUT_MS },
    async () => {
      const port = await freePort()
      await using receiver = await startDocumented(runtime, port, newSecret())
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const { status, headers } = await fetch(`http://127.0.0.1:${port}/`, { method })
        expect([method, status, headers.get('Allow')]).toEqual([method, 405, 'POST'])
      }
      expect(receiver.output()).toBe('')
    },
  )
})

describe.each(RECEIVERS)('the receiver in $language, without a secret', (runtime) => {
  it.skipIf(isSkipped(runtime))(
    `${formatTestName(runtime)}: processes nothing`,
    { timeout: TIMEOUT_MS },
    async () => {
      const port = await freePort()
      await using receiver = await startDocumented(runtime, port, '')
      const body = JSON.stringify(eventTypes['participant.created'].example)
      const signature = createHmac('sha256', '').update(body).digest('hex')
      const status = await post(port, body, { 'X-Service-Signature': signature })
      expect(status ?? 500, receiver.errors()).toBeGreaterThanOrEqual(400)
      expect(receiver.output()).not.toContain('participant.created')
    },
  )
})

it('a Standard Webhooks library verifies deliveries as the guide describes', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using receiver = await startReceiver()
  const { secret } = await newWebhook(receiver.url)
  const { id } = await newParticipant()
  const [request] = (await receiver.received(1, TIMEOUT_MS)) as [ReceivedRequest]
  const headers = request.headers as Record<string, string>
  expect(new Webhook(secret).verify(request.body, headers)).toMatchObject({
    event_type: 'participant.created',
    resource: { id },
  })
  expect(() => new Webhook(secret).verify(`${request.body} `, headers)).toThrow(
    'No matching signature found',
  )
})
