import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Command, InvalidArgumentError } from 'commander'
import { Refused } from '../errors.ts'
import { events } from '../generated/validators.js'
import { type SigningKeys, signingKeys } from '../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../webhooks/transport/sign.ts'
import { type Forwarded, forward } from './forward.ts'
import { examples, httpUrlOf, portOf, type Shell, secretOf } from './shell.ts'

interface ListenOptions {
  port: number
  secret?: string
  forward?: string
  json?: boolean
}

/** One request, and what we make of it. */
interface Received {
  receivedAt: string
  /** Null: without a secret nothing can be said. */
  verified: boolean | null
  /** How it differs from what asyncapi.yaml promises. Empty: not at all. */
  problems: string[]
  /** Has a delivery of this id come before? Receivers must ignore those. */
  repeated: boolean
  body: unknown
}

interface Answered extends Received {
  /** What the sender was told. */
  status: number
  /** Null: it was passed on to nobody. */
  forwarded: Forwarded | null
}

const DEFAULT_PORT = 4000
const HOST = '127.0.0.1'
const MAX_BODY_BYTES = 1024 * 1024
const REMEMBERED_IDS = 10_000
/** Standard Webhooks 1.0.0, "Verifying webhook authenticity": what is older may be a replay. */
const TOLERANCE_MS = 5 * 60_000

export function addListen(program: Command, shell: Shell): void {
  program
    .command('listen')
    .description(
      'Receive webhook deliveries on this machine and show them: verified when a secret is given, and held against the schema of their event in asyncapi.yaml. With --forward, your own server gets the same bytes and headers, and its answer is what Muster is told.',
    )
    .option('--port <port>', 'where to listen; 0 lets the system choose', portOf, DEFAULT_PORT)
    .option(
      '--secret <secret>',
      "the webhook's signing secret, or - to read it from standard input; what it does not sign is answered with 403",
      signingSecretOf,
    )
    .option(
      '--forward <url>',
      'pass each delivery on to this address, unless its signature is wrong',
      httpUrlOf,
    )
    .option(
      '--json',
      'print one JSON document per delivery, each on its own line, and nothing else',
    )
    .addHelpText(
      'after',
      examples(
        'muster listen',
        'muster listen --port 4001 --secret whsec_…',
        'muster listen --secret whsec_… --forward http://127.0.0.1:8080/webhooks',
      ),
    )
    .action(shell.action((options: ListenOptions) => listen(shell, options)))
}

/** The whole secret: both signatures are made with it. */
export function signingSecretOf(given: string): string {
  const secret = secretOf(given)
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret))
    throw new InvalidArgumentError('It must be the whole secret, which begins with whsec_.')
  return secret
}

async function listen(
  shell: Shell,
  { port, secret, forward: target, json = false }: ListenOptions,
): Promise<undefined> {
  const receive = newReceiver(secret)
  const server = createServer((request, response) => {
    answer(request, response, receive, target)
      .then((answered) => {
        if (answered)
          shell.print(json ? JSON.stringify(documentOf(answered)) : sayAnswered(answered, target))
      })
      .catch((error: Error) => console.error(`A request broke off: ${error.message}`))
  })
  const stopping = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve())
  })
  const url = await listenOn(server, port)
  const welcome = sayListening(url, secret !== undefined, target)
  if (json) console.error(welcome)
  else shell.print(welcome)
  await stopping
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

async function listenOn(server: Server, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, HOST, resolve)
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE')
      throw new Refused(`Port ${port} is in use: choose another with --port`, { cause: error })
    throw error
  })
  return `http://${HOST}:${(server.address() as AddressInfo).port}/`
}

type Receiver = (headers: IncomingMessage['headers'], body: Buffer) => Received

function newReceiver(secret: string | undefined): Receiver {
  const seen = new Set<string>()
  const keys = secret === undefined ? undefined : signingKeys(secret)

  /** Signs again what came and compares: all signatures must be there and be right. */
  function isVerified(
    headers: IncomingMessage['headers'],
    body: Buffer,
    keys: SigningKeys,
    now: Date,
  ): boolean {
    const signedAt = new Date(Number(headers['webhook-timestamp']) * 1000)
    if (!(Math.abs(now.getTime() - signedAt.getTime()) <= TOLERANCE_MS)) return false
    const expected = deliveryHeaders(keys, String(headers['webhook-id']), body, signedAt)
    return ['x-service-signature', 'webhook-signature'].every((name) =>
      isSame(String(headers[name] ?? ''), expected[name] ?? ''),
    )
  }

  function problemsOf(headers: IncomingMessage['headers'], body: unknown): string[] {
    const type = isRecord(body) ? String(body.event_type) : ''
    const validators = Object.entries(events).find(([known]) => known === type)?.[1]
    if (!validators) return [`event_type: "${type}" is not in asyncapi.yaml`]
    return [
      ...errorsOf('body', validators.payload, body),
      ...errorsOf('header', validators.headers, headers),
      ...(isRecord(body) && body.id === headers['webhook-id']
        ? []
        : ['header webhook-id: is not the id of the body']),
    ]
  }

  return (headers, bytes) => {
    const now = new Date()
    const body = parsed(bytes)
    const id = isRecord(body) && typeof body.id === 'string' ? body.id : undefined
    const received = {
      receivedAt: now.toISOString(),
      verified: keys ? isVerified(headers, bytes, keys, now) : null,
      problems: body === undefined ? ['body: is not JSON'] : problemsOf(headers, body),
      repeated: id !== undefined && seen.has(id),
      body: body ?? bytes.toString('utf8'),
    }
    if (id !== undefined && received.verified !== false) seen.add(id)
    if (seen.size > REMEMBERED_IDS) seen.clear()
    return received
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  receive: Receiver,
  target: string | undefined,
): Promise<Answered | undefined> {
  if (request.method !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end()
    return undefined
  }
  const chunks: Buffer[] = []
  let byteSize = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    byteSize += chunk.length
    if (byteSize > MAX_BODY_BYTES) {
      response.writeHead(413, { connection: 'close' }).end()
      return undefined
    }
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  const received = receive(request.headers, body)
  const isRefused = received.verified === false
  const forwarded =
    isRefused || target === undefined ? null : await forward(target, request.rawHeaders, body)
  const status = isRefused ? 403 : (forwarded?.status ?? 204)
  response.writeHead(status, forwarded?.headers).end(forwarded?.body)
  return { ...received, status, forwarded }
}

function isSame(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

type Validator = ((data: unknown) => boolean) & {
  errors?: { instancePath: string; message?: string; params: object }[] | null
}

function errorsOf(what: string, validator: Validator, data: unknown): string[] {
  if (validator(data)) return []
  return (validator.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${what} ${instancePath || '/'}: ${message}${detailOf(params as Record<string, unknown>)}`,
  )
}

/** What the message leaves open. */
function detailOf({
  allowedValue,
  allowedValues,
  additionalProperty,
}: Record<string, unknown>): string {
  const detail = allowedValue ?? allowedValues ?? additionalProperty
  return detail === undefined ? '' : `: ${[detail].flat().join(', ')}`
}

function documentOf({ receivedAt, forwarded, ...answered }: Answered) {
  const passedOn = forwarded && {
    status: forwarded.status,
    duration_ms: forwarded.durationMs,
    error: forwarded.error,
  }
  return { received_at: receivedAt, ...answered, forwarded: passedOn }
}

function sayAnswered(
  { receivedAt, verified, problems, repeated, body, status, forwarded }: Answered,
  target: string | undefined,
): string {
  const verdict = verified === null ? 'not checked (no --secret)' : verified ? 'right' : 'WRONG'
  const { event_type: type, id, resource, data } = isRecord(body) ? body : {}
  const lines = [
    ['Delivery', `${id}${repeated ? '  (seen before)' : ''}`],
    ['Resource', isRecord(resource) ? `${resource.type} ${resource.id}` : 'none'],
    ['Data', JSON.stringify(data)],
    ['Signature', `${verdict}${forwarded === null ? `, answered ${status}` : ''}`],
    ...problems.map((problem) => ['Problem', problem]),
    ...(forwarded === null ? [] : [['Forwarded', sayForwarded(forwarded, target)]]),
  ]
  return [
    `${receivedAt}  ${type}`,
    ...lines.map(([name = '', value = '']) => `  ${name.padEnd(10)}${value}`),
    '',
  ].join('\n')
}

const SHOWN = 200

/** Where to, what it answered, how long it took; and what it said, if that was no success. */
function sayForwarded(
  { status, body, durationMs, error }: Forwarded,
  target: string | undefined,
): string {
  if (error !== null) return `${target} FAILED after ${durationMs} ms, answered ${status}: ${error}`
  const said = status >= 300 && body.length > 0 ? `: ${body.toString('utf8').slice(0, SHOWN)}` : ''
  return `${target} answered ${status} in ${durationMs} ms${said}`
}

function sayListening(url: string, hasSecret: boolean, target: string | undefined): string {
  return `Listening on ${url} (Ctrl-C ends).${target === undefined ? '' : `\nEach delivery is passed on to ${target}`}

Point a webhook at it. Both the server and this command must be allowed to reach this machine:

  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster serve
  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster webhook create --account ID --url ${url} --events '*'
${hasSecret ? '' : '\nTo verify signatures too, start again with the secret that this prints:  muster listen --secret whsec_…\n'}`
}
