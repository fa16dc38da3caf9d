import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Command } from 'commander'
import { events } from '../generated/validators.js'
import { parseJson } from '../scripts/model/json.ts'
import { type SigningKeys, signingKeys } from '../webhooks/transport/secret.ts'
import { signatureHeaders } from '../webhooks/transport/sign.ts'
import { type Forwarded, forward } from './forward.ts'
import { listenLocally } from './local-server.ts'
import { examples, parseHttpUrl, parsePort, parseSigningSecret, type Shell } from './shell.ts'
import { nextStopSignal } from './stop-signals.ts'

interface ListenOptions {
  port: number
  secret?: string
  forward?: string
  json?: boolean
}

/** A request and the findings about it. */
interface Received {
  receivedAt: string
  /** Null: without a secret the signature cannot be verified. */
  verified: boolean | null
  /** Differences from asyncapi.yaml. */
  problems: string[]
  /** A delivery with this ID arrived before. Receivers must ignore repeats. */
  repeated: boolean
  body: unknown
}

interface Handled extends Received {
  /** The status that the sender got. */
  status: number
  /** Null: not forwarded. */
  forwarded: Forwarded | null
}

const DEFAULT_PORT = 4000
const HOST = '127.0.0.1'
const MAX_BODY_BYTES = 1024 * 1024
const MAX_SEEN_IDS = 10_000
/** Standard Webhooks 1.0.0, "Verifying webhook authenticity": an older delivery may be a replay. */
const TOLERANCE_MS = 5 * 60_000

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('listen')
    .description(
      'Receive webhook deliveries on this machine and print them. With --secret, verify their ' +
        'signatures. Each delivery is checked against the schema of its event in asyncapi.yaml. ' +
        'With --forward, send the same bytes and headers to your own server and return its response.',
    )
    .option('--port <port>', 'the port to listen on; 0 picks a free one', parsePort, DEFAULT_PORT)
    .option(
      '--secret <secret>',
      "the webhook's signing secret, or - to read it from standard input; " +
        'respond 403 to deliveries that it did not sign',
      parseSigningSecret,
    )
    .option(
      '--forward <url>',
      'forward each delivery to this URL, unless its signature is wrong',
      parseHttpUrl,
    )
    .option('--json', 'print only JSON: one document per line and delivery')
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

async function listen(
  shell: Shell,
  { port, secret, forward: target, json = false }: ListenOptions,
): Promise<undefined> {
  const receive = newReceive(secret)
  const format = (handled: Handled): string =>
    json ? escapeControls(JSON.stringify(toDocument(handled))) : formatHandled(handled, target)
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const handled = await respond(request, response, receive, target)
      if (handled) shell.print(format(handled))
    } catch (error) {
      console.error(`A request was aborted: ${(error as Error).message}`)
    }
  }
  const stopping = nextStopSignal()
  const server = await listenLocally(handle, { host: HOST, port })
  const url = `http://${HOST}:${server.port}/`
  const welcome = formatWelcome(url, secret !== undefined, target)
  if (json) console.error(welcome)
  else shell.print(welcome)
  await stopping
  await server.stop(0)
}

type Headers = IncomingMessage['headers']
type Receive = (headers: Headers, body: Buffer) => Received

function newReceive(secret: string | undefined): Receive {
  const seenIds = new Set<string>()
  const keys = secret === undefined ? undefined : signingKeys(secret)

  return (headers, bytes) => {
    const now = new Date()
    const body = parseJson(bytes.toString('utf8'))
    const id = isRecord(body) && typeof body.id === 'string' ? body.id : undefined
    const received = {
      receivedAt: now.toISOString(),
      verified: keys ? isVerified(headers, bytes, keys, now) : null,
      problems: body === undefined ? ['body: is not JSON'] : findProblems(headers, body),
      repeated: id !== undefined && seenIds.has(id),
      body: body ?? bytes.toString('utf8'),
    }
    if (id !== undefined && received.verified !== false) seenIds.add(id)
    if (seenIds.size > MAX_SEEN_IDS) seenIds.clear()
    return received
  }
}

/** Signs the body again and compares. Every signature must be present and correct. */
function isVerified(headers: Headers, body: Buffer, keys: SigningKeys, now: Date): boolean {
  const signedAt = new Date(Number(headers['webhook-timestamp']) * 1000)
  if (!(Math.abs(now.getTime() - signedAt.getTime()) <= TOLERANCE_MS)) return false
  const expected = signatureHeaders(keys, String(headers['webhook-id']), body, signedAt)
  return ['x-service-signature', 'webhook-signature'].every((name) =>
    isSame(String(headers[name] ?? ''), expected[name] ?? ''),
  )
}

function findProblems(headers: Headers, body: unknown): string[] {
  const type = isRecord(body) ? String(body.event_type) : ''
  const validators = Object.entries(events).find(([known]) => known === type)?.[1]
  if (!validators) return [`event_type: "${type}" is not in asyncapi.yaml`]
  return [
    ...listErrors('body', validators.payload, body),
    ...listErrors('header', validators.headers, headers),
    ...(isRecord(body) && body.id === headers['webhook-id']
      ? []
      : ['header webhook-id: differs from the ID in the body']),
  ]
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  receive: Receive,
  target: string | undefined,
): Promise<Handled | undefined> {
  if (request.method !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end()
    return undefined
  }
  // A page in a browser on this machine, of any site: webhooks have no Origin.
  if (request.headers.origin !== undefined) {
    response.writeHead(403).end()
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

function isSame(actual: string, expected: string): boolean {
  const [left, right] = [Buffer.from(actual), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

type Validator = ((data: unknown) => boolean) & {
  errors?: { instancePath: string; message?: string; params: object }[] | null
}

function listErrors(part: string, validator: Validator, data: unknown): string[] {
  if (validator(data)) return []
  return (validator.errors ?? []).map(
    ({ instancePath, message, params }) =>
      `${part} ${instancePath || '/'}: ${message}${formatDetail(params as Record<string, unknown>)}`,
  )
}

/** The value that Ajv's message does not contain. */
function formatDetail({
  allowedValue,
  allowedValues,
  additionalProperty,
}: Record<string, unknown>): string {
  const detail = allowedValue ?? allowedValues ?? additionalProperty
  return detail === undefined ? '' : `: ${[detail].flat().join(', ')}`
}

function toDocument({ receivedAt, forwarded, ...handled }: Handled) {
  const response = forwarded && {
    status: forwarded.status,
    duration_ms: forwarded.durationMs,
    error: forwarded.error,
  }
  return { received_at: receivedAt, ...handled, forwarded: response }
}

function formatHandled(
  { receivedAt, verified, problems, repeated, body, status, forwarded }: Handled,
  target: string | undefined,
): string {
  const verdict = verified === null ? 'not checked (no --secret)' : verified ? 'valid' : 'INVALID'
  const { event_type: type, id, resource, data } = isRecord(body) ? body : {}
  const lines = [
    ['Delivery', `${id}${repeated ? '  (seen before)' : ''}`],
    ['Resource', isRecord(resource) ? `${resource.type} ${resource.id}` : 'none'],
    ['Data', JSON.stringify(data)],
    ['Signature', `${verdict}${forwarded === null ? `, responded ${status}` : ''}`],
    ...problems.map((problem) => ['Problem', problem]),
    ...(forwarded === null ? [] : [['Forwarded', formatForwarded(forwarded, target)]]),
  ]
  return [
    `${receivedAt}  ${escapeControls(String(type))}`,
    ...lines.map(([name = '', value = '']) => `  ${name.padEnd(10)}${escapeControls(value)}`),
    '',
  ].join('\n')
}

/** A sender must not control the terminal. The escapes are valid in JSON, too. */
function escapeControls(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const MAX_SHOWN_CHARACTERS = 200

/** Includes the start of the response body unless the status is 2xx. */
function formatForwarded(
  { status, body, durationMs, error }: Forwarded,
  target: string | undefined,
): string {
  if (error !== null)
    return `${target} FAILED after ${durationMs} ms, responded ${status}: ${error}`
  const text =
    status >= 300 && body.length > 0
      ? `: ${body.toString('utf8').slice(0, MAX_SHOWN_CHARACTERS)}`
      : ''
  return `${target} responded ${status} in ${durationMs} ms${text}`
}

function formatWelcome(url: string, hasSecret: boolean, target: string | undefined): string {
  const forwarding = target === undefined ? '' : `\nForwarding deliveries to ${target}`
  const hint = hasSecret
    ? ''
    : '\nTo verify signatures, restart with the secret that this prints:  muster listen --secret whsec_…\n'
  return `Listening on ${url} (press Ctrl-C to stop).${forwarding}

Point a webhook at this URL. Both commands need permission to reach this machine:

  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster serve
  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster webhook create --account ID --url ${url} --events '*'
${hint}`
}
