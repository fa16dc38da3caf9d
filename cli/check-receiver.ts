import { type Command, InvalidArgumentError } from 'commander'
import { v7 as uuidv7 } from 'uuid'
import { eventTypes } from '../generated/events.ts'
import { newSecret, signingKeys } from '../webhooks/secret.ts'
import { deliveryHeaders } from '../webhooks/sign.ts'
import { signingSecretOf } from './listen.ts'
import { examples, type Output, type Shell, table } from './shell.ts'

interface Request {
  headers: Record<string, string>
  body: Buffer
}

/** What a receiver must do with a request (service-spec §4 "Subscriber endpoint"). */
interface Check {
  name: string
  expected: '2xx' | '403'
  request: Request
}

interface Result {
  check: string
  expected: Check['expected']
  status: number | null
  durationMs: number
  error: string | null
  passed: boolean
}

/** service-spec §8: the answer must be there within this. */
const TIMEOUT_MS = 15_000
const SIGNATURES = ['x-service-signature', 'webhook-signature']

export function addCheckReceiver(program: Command, shell: Shell): void {
  program
    .command('check-receiver')
    .description(
      'Post real and forged deliveries to a receiver and see whether it answers as it must: 2xx within 15 seconds, 403 to what is not rightly signed.',
    )
    .argument('<url>', 'the receiver', urlOf)
    .requiredOption('--secret <secret>', 'the signing secret that it verifies with', signingSecretOf)
    .addHelpText('after', examples('muster check-receiver http://127.0.0.1:4000/ --secret whsec_…'))
    .action(
      shell.action(async (url: string, { secret }: { secret: string }): Promise<Output> => {
        const results: Result[] = []
        // One after another: some of them build on the one before.
        for (const check of checksFor(secret)) results.push(await run(url, check))
        const conformant = results.every(({ passed }) => passed)
        return {
          document: { url, conformant, checks: results.map(documentOf) },
          text: `${tableOf(results)}\n\n${conformant ? 'The receiver is conformant.' : 'The receiver is not conformant.'}`,
          failed: !conformant,
        }
      }),
    )
}

function urlOf(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new InvalidArgumentError('It must be an http or https address.')
  return given
}

function checksFor(secret: string): Check[] {
  const signed = (change: object = {}, key = secret): Request => {
    const id = uuidv7()
    const body = Buffer.from(JSON.stringify({ ...eventTypes['participant.created'].example, id, ...change }))
    return { headers: deliveryHeaders(signingKeys(key), id, body, new Date()), body }
  }
  const withSignatures = ({ headers, body }: Request, signatureOf: (real: string) => string | undefined): Request => {
    const others = Object.entries(headers).filter(([name]) => !SIGNATURES.includes(name))
    const changed = SIGNATURES.flatMap((name) => {
      const signature = signatureOf(headers[name] ?? '')
      return signature === undefined ? [] : [[name, signature] as const]
    })
    return { headers: Object.fromEntries([...others, ...changed]), body }
  }
  const withBody = ({ headers, body }: Request, change: (text: string) => string): Request => ({
    headers,
    body: Buffer.from(change(body.toString('utf8'))),
  })
  const good = signed()
  const unknownType = { event_type: 'muster.checked', resource: { type: 'receiver', id: uuidv7() } }

  return [
    { name: 'a delivery', expected: '2xx', request: good },
    { name: 'the same delivery again', expected: '2xx', request: good },
    { name: 'an event type unknown to it', expected: '2xx', request: signed(unknownType) },
    { name: 'without a signature', expected: '403', request: withSignatures(signed(), () => undefined) },
    { name: 'with an empty signature', expected: '403', request: withSignatures(signed(), () => '') },
    { name: 'with a forged signature', expected: '403', request: withSignatures(signed(), (real) => shifted(real)) },
    { name: 'signed with another secret', expected: '403', request: signed({}, newSecret()) },
    { name: 'with a changed body', expected: '403', request: withBody(signed(), (text) => text.replace('participant', 'particlpant')) },
    { name: 'with a space added to the body', expected: '403', request: withBody(signed(), (text) => `${text} `) },
    { name: 'with a truncated body', expected: '403', request: withBody(signed(), (text) => text.slice(0, -1)) },
  ]
}

/** As long, and of the same characters, but wrong in its first digit. */
function shifted(signature: string): string {
  return signature.replace(/^(v1,)?(.)/, (_, scheme = '', first) => `${scheme}${first === 'a' ? 'b' : 'a'}`)
}

async function run(url: string, { name, expected, request }: Check): Promise<Result> {
  const startedAt = performance.now()
  const result = { check: name, expected, status: null, error: null, passed: false }
  const tookMs = (): number => Math.round(performance.now() - startedAt)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: request.headers,
      body: new Uint8Array(request.body),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    await response.arrayBuffer()
    const passed = expected === '2xx' ? response.ok : response.status === 403
    return { ...result, status: response.status, durationMs: tookMs(), passed }
  } catch (error) {
    return { ...result, durationMs: tookMs(), error: sayFailure(error) }
  }
}

function sayFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`
  // fetch itself only says "fetch failed".
  return error.cause instanceof Error ? error.cause.message || String((error.cause as NodeJS.ErrnoException).code) : error.message
}

function documentOf({ durationMs, ...result }: Result) {
  return { ...result, duration_ms: durationMs }
}

function tableOf(results: Result[]): string {
  return table(
    ['', 'SENT', 'EXPECTED', 'ANSWERED', 'TOOK'],
    results.map((result) => [
      result.passed ? 'ok' : 'FAIL',
      result.check,
      result.expected,
      result.error ?? String(result.status),
      `${result.durationMs} ms`,
    ]),
  )
}
