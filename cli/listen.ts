import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Command } from 'commander'
import { events } from '../generated/validators.js'
import { parseJson } from '../scripts/model/json.ts'
import { newSecret, type SigningKeys, signingKeys } from '../webhooks/transport/secret.ts'
import { deliveryHeaders, signatureHeaders } from '../webhooks/transport/sign.ts'
import { traceparentOfDelivery } from '../webhooks/transport/traceparent.ts'
import { type Event, followEvents } from './follow.ts'
import { type ForwardedResponse, forward } from './forward.ts'
import { listenLocally } from './local-server.ts'
import { connect, isRemote } from './session.ts'
import { examples, parseHttpUrl, parsePort, parseSigningSecret, type Shell } from './shell.ts'
import { nextStopSignal } from './stop-signals.ts'

interface ListenOptions {
  port?: number
  secret?: string
  forward?: string
  json?: boolean
}

/** A delivery, and what is wrong with it. */
interface Inspection {
  receivedAt: string
  /** Null: without a secret the signature cannot be verified. */
  verified: boolean | null
  /** Differences from asyncapi.yaml. */
  problems: string[]
  /** A delivery with this ID arrived before. Receivers must ignore repeats. */
  repeated: boolean
  body: unknown
}

interface Receipt extends Inspection {
  /** The status of our response. */
  status: number
  /** Null: not forwarded. */
  forwarded: ForwardedResponse | null
}

const DEFAULT_PORT = 4000
const HOST = '127.0.0.1'
const MAX_BODY_BYTES = 1024 * 1024
/** The command remembers the IDs of this many deliveries. With one more, it forgets all of them. */
const MAX_SEEN_IDS = 10_000
/** Standard Webhooks 1.0.0, "Verifying webhook authenticity": an older delivery may be a replay. */
const TOLERANCE_MS = 5 * 60_000

export function addCommand(program: Command, shell: Shell): void {
  program
    .command('listen')
    .description(
      'Receive webhook deliveries on this machine and print them. With --secret, verify their ' +
        'signatures. Each delivery is checked against the schema of its event in asyncapi.yaml. ' +
        'With --forward, send the same bytes and headers to your own server and return its response. ' +
        'With the environment variables MUSTER_URL and MUSTER_API_KEY, and without --port, follow the ' +
        'events of that service instead, without a webhook: --forward then sends a signed delivery ' +
        'for each new event.',
    )
    .option(
      '--port <port>',
      `the port to listen on, ${DEFAULT_PORT} by default; 0 picks a free one`,
      parsePort,
    )
    .option(
      '--secret <secret>',
      "the webhook's signing secret, or - to read it from standard input; " +
        'respond 403 to deliveries that are not signed with it',
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
        'MUSTER_URL=https://api.example.com MUSTER_API_KEY=mst_… muster listen --forward http://127.0.0.1:8080/webhooks',
      ),
    )
    .action(
      shell.action((options: ListenOptions) =>
        options.port === undefined && isRemote(shell.environment)
          ? follow(shell, options)
          : listen(shell, options),
      ),
    )
}

async function listen(
  shell: Shell,
  { port = DEFAULT_PORT, secret, forward: target, json = false }: ListenOptions,
): Promise<undefined> {
  const inspect = newInspect(secret)
  const format = (receipt: Receipt): string =>
    json ? escapeControls(JSON.stringify(toDocument(receipt))) : formatReceipt(receipt, target)
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const receipt = await receive(request, response, inspect, target)
      if (receipt) shell.print(format(receipt))
    } catch (error) {
      console.error(`A request was aborted: ${(error as Error).message}`)
    }
  }
  const stopping = nextStopSignal()
  const server = await listenLocally(handle, { host: HOST, port })
  const url = `${server.url}/`
  const welcome = formatWelcome(url, secret !== undefined, target)
  if (json) console.error(welcome)
  else shell.print(welcome)
  await stopping
  await server.stop(0)
}

/** Prints each new event of the service at `MUSTER_URL`, and forwards a delivery of it. */
async function follow(
  shell: Shell,
  { secret = newSecret(), forward: target, json = false }: ListenOptions,
): Promise<undefined> {
  const muster = connect(shell.environment)
  const stopped = new AbortController()
  void nextStopSignal().then(() => stopped.abort())
  const forwarding = target === undefined ? '' : `\nForwarding to ${target}, signed with ${secret}`
  const welcome = `Following the events of ${shell.environment.MUSTER_URL} (press Ctrl-C to stop).${forwarding}\n`
  if (json) console.error(welcome)
  else shell.print(welcome)
  try {
    for await (const event of followEvents(muster, stopped.signal)) {
      const receipt = await deliver(event, signingKeys(secret), target)
      shell.print(
        json ? escapeControls(JSON.stringify(toDocument(receipt))) : formatReceipt(receipt, target),
      )
    }
  } catch (error) {
    if (!stopped.signal.aborted) throw error
  }
}

/** The ID of the delivery is that of the event, because the service made no delivery. */
async function deliver(
  { id, event_type, resource, data }: Event,
  keys: SigningKeys,
  target: string | undefined,
): Promise<Receipt> {
  const body = { id, event_type, resource, data }
  const bytes = Buffer.from(JSON.stringify(body))
  const now = new Date()
  const ids = { id, eventId: id }
  const headers = {
    ...deliveryHeaders(keys, ids, bytes, now),
    traceparent: traceparentOfDelivery(ids, null),
  }
  const forwarded =
    target === undefined ? null : await forward(target, Object.entries(headers).flat(), bytes)
  return {
    receivedAt: now.toISOString(),
    verified: true,
    problems: [],
    repeated: false,
    body,
    status: forwarded?.status ?? 204,
    forwarded,
  }
}

/** Responds to a request. Returns undefined if the request is no delivery, or if its body is too
 *  large. */
async function receive(
  request: IncomingMessage,
  response: ServerResponse,
  inspect: Inspect,
  target: string | undefined,
): Promise<Receipt | undefined> {
  if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end()
  // Only browsers send Origin, so the request comes from a page of some site, not from a webhook.
  if (request.headers.origin !== undefined) return void response.writeHead(403).end()
  const body = await readBody(request, response)
  if (body === undefined) return undefined
  const inspection = inspect(request.headers, body)
  if (inspection.verified === false || target === undefined) {
    const status = inspection.verified === false ? 403 : 204
    response.writeHead(status).end()
    return { ...inspection, status, forwarded: null }
  }
  const forwarded = await forward(target, request.rawHeaders, body)
  response.writeHead(forwarded.status, forwarded.headers).end(forwarded.body)
  return { ...inspection, status: forwarded.status, forwarded }
}

/** Responds with 413 and returns undefined if the body is too large. */
async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let byteSize = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    byteSize += chunk.length
    if (byteSize > MAX_BODY_BYTES) {
      // Responds inside the loop, because the end of the loop closes the connection.
      response.writeHead(413, { connection: 'close' }).end()
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

type Headers = IncomingMessage['headers']
type Inspect = (headers: Headers, body: Buffer) => Inspection

function newInspect(secret: string | undefined): Inspect {
  const seenIds = new Set<string>()
  const keys = secret === undefined ? undefined : signingKeys(secret)

  return (headers, bytes) => {
    const now = new Date()
    const body = parseJson(bytes.toString('utf8'))
    const id = isRecord(body) && typeof body.id === 'string' ? body.id : undefined
    const inspection = {
      receivedAt: now.toISOString(),
      verified: keys ? isVerified(headers, bytes, keys, now) : null,
      problems: body === undefined ? ['body: is not JSON'] : findProblems(headers, body),
      repeated: id !== undefined && seenIds.has(id),
      body: body ?? bytes.toString('utf8'),
    }
    if (id !== undefined && inspection.verified !== false) seenIds.add(id)
    if (seenIds.size > MAX_SEEN_IDS) seenIds.clear()
    return inspection
  }
}

/** Signs the body again and compares. Both signature headers must be correct, and the signed time
 *  within the tolerance. */
function isVerified(headers: Headers, body: Buffer, keys: SigningKeys, now: Date): boolean {
  const signedAt = new Date(Number(headers['webhook-timestamp']) * 1000)
  const ageMs = Math.abs(now.getTime() - signedAt.getTime())
  if (Number.isNaN(ageMs) || ageMs > TOLERANCE_MS) return false
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

/** What Ajv's message leaves out: the allowed values, or the name of an additional property. */
function formatDetail({
  allowedValue,
  allowedValues,
  additionalProperty,
}: Record<string, unknown>): string {
  const detail = allowedValue ?? allowedValues ?? additionalProperty
  return detail === undefined ? '' : `: ${[detail].flat().join(', ')}`
}

function toDocument({ receivedAt, forwarded, ...receipt }: Receipt) {
  const response = forwarded && {
    status: forwarded.status,
    duration_ms: forwarded.durationMs,
    error: forwarded.error,
  }
  return { received_at: receivedAt, ...receipt, forwarded: response }
}

function formatReceipt(
  { receivedAt, verified, problems, repeated, body, status, forwarded }: Receipt,
  target: string | undefined,
): string {
  const { event_type: type, id, resource, data } = isRecord(body) ? body : {}
  const rows = [
    ['Delivery', `${id}${repeated ? '  (seen before)' : ''}`],
    ['Resource', isRecord(resource) ? `${resource.type} ${resource.id}` : 'none'],
    ['Data', JSON.stringify(data)],
    ['Signature', `${formatVerdict(verified)}${forwarded === null ? `, responded ${status}` : ''}`],
    ...problems.map((problem) => ['Problem', problem]),
    ...(forwarded === null ? [] : [['Forwarded', formatForwarded(forwarded, target)]]),
  ]
  return [
    `${receivedAt}  ${escapeControls(String(type))}`,
    ...rows.map(([name = '', value = '']) => `  ${name.padEnd(10)}${escapeControls(value)}`),
    '',
  ].join('\n')
}

function formatVerdict(verified: Inspection['verified']): string {
  if (verified === null) return 'not checked (no --secret)'
  return verified ? 'valid' : 'INVALID'
}

/** Escapes control characters, so that a sender cannot control the terminal. The escapes are valid
 *  in JSON, too. */
function escapeControls(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const MAX_SHOWN_CHARACTERS = 200

/** Includes the start of the response body unless the status is 2xx. */
function formatForwarded(
  { status, body, durationMs, error }: ForwardedResponse,
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
    : '\nTo verify signatures, restart with the secret that the second command prints:\n' +
      '\n  muster listen --secret whsec_…\n'
  return `Listening on ${url} (press Ctrl-C to stop).${forwarding}

Point a webhook at this URL. Both commands need the setting that permits this machine:

  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster serve
  WEBHOOK_ALLOW_ADDRESSES=127.0.0.0/8 muster webhook create --account ID --url ${url} --events '*'
${hint}`
}
