import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { request as send } from 'undici'
import { v7 as uuidv7 } from 'uuid'
import { eventTypes } from '../generated/events.ts'
import { junitXml, type TestCase } from '../scripts/diff/junit.ts'
import { newSecret, signingKeys } from '../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../webhooks/transport/sign.ts'
import { signingSecretOf } from './listen.ts'
import { examples, httpUrlOf, type Output, type Shell } from './shell.ts'

interface Options {
  secret: string
  junit?: string
}

interface Request {
  headers: Record<string, string>
  body: Buffer
}

type Expected = '2xx' | '403'

interface Check {
  /** What is sent. */
  name: string
  /** Signed when it is sent: the time counts. */
  request: () => Request
}

/** What a receiver must do (service-spec §4 "Subscriber endpoint" and §5 "Webhook signature"; asyncapi.yaml for what it must expect). */
interface Rule {
  id: string
  title: string
  expected: Expected
  /** For whoever breaks it. */
  advice: string
  checks: Check[]
}

interface Result {
  check: string
  expected: Expected
  /** Null: there was no answer. */
  status: number | null
  durationMs: number
  error: string | null
  /** Null: it was not sent, since the receiver answered nothing before. */
  passed: boolean | null
}

interface RuleResult {
  rule: Rule
  results: Result[]
}

/** service-spec §8: the answer must be there within this. */
const TIMEOUT_MS = 15_000
const SIGNATURES = ['x-service-signature', 'webhook-signature']
/** More than any delivery has today, and less than what frameworks take by default. */
const LARGE_CHARACTERS = 64 * 1024

export function addCheckReceiver(program: Command, shell: Shell): void {
  program
    .command('check-receiver')
    .description(
      'Post real and forged deliveries to a receiver and see whether it answers as it must: 2xx within 15 seconds to what is rightly signed, whatever it is, and 403 to the rest. Ends with 1 if a rule is broken. The deliveries tell of records that do not exist.',
    )
    .argument('<url>', 'the receiver', httpUrlOf)
    .requiredOption(
      '--secret <secret>',
      'the signing secret that it verifies with, or - to read it from standard input',
      signingSecretOf,
    )
    .option('--junit <file>', 'write the result as JUnit XML, too')
    .addHelpText(
      'after',
      `${examples(
        'muster check-receiver http://127.0.0.1:4000/ --secret whsec_…',
        'printf %s "$SECRET" | muster check-receiver https://staging.example.com/webhooks --secret - --junit receiver.xml',
      )}
What it cannot see from outside: that nothing is processed of what is answered with 403, and nothing twice of what comes again.
`,
    )
    .action(
      shell.action(async (url: string, { secret, junit }: Options): Promise<Output> => {
        const results = await run(url, rulesFor(secret))
        const conformant = results.every(isKept)
        if (junit !== undefined)
          await writeFile(junit, junitXml(`muster check-receiver ${url}`, results.flatMap(casesOf)))
        return {
          document: { url, conformant, rules: results.map(documentOf) },
          text: say(url, results),
          failed: !conformant,
        }
      }),
    )
}

interface Signing {
  write?: (payload: object) => string
  key?: string
}

function rulesFor(secret: string): Rule[] {
  const sign = (id: string, body: Buffer, key: string, at: Date): Request => ({
    headers: deliveryHeaders(signingKeys(key), id, body, at),
    body,
  })
  const delivery = (
    change: object = {},
    { write = JSON.stringify, key = secret }: Signing = {},
  ): Request => {
    const id = uuidv7()
    return sign(
      id,
      Buffer.from(write({ ...eventTypes['participant.created'].example, ...change, id })),
      key,
      new Date(),
    )
  }
  const forged = (signatureOf: (real: string) => string | undefined): Request =>
    withSignatures(delivery(), signatureOf)
  const altered = (change: (text: string) => string): Request => {
    const { headers, body } = delivery()
    return { headers, body: Buffer.from(change(body.toString('utf8'))) }
  }
  const first = delivery()
  const later = new Date(Date.now() + 1_000)

  return [
    {
      id: 'accepts-post',
      title: 'Takes a delivery: POST with JSON, answered with 2xx within 15 seconds',
      expected: '2xx',
      advice:
        'Answer as soon as the signature is verified and the delivery is stored; work on it afterwards.',
      checks: [{ name: 'a delivery', request: () => first }],
    },
    {
      id: 'missing-signature',
      title: 'Answers 403 to what is not signed',
      expected: '403',
      advice:
        'Take a missing X-Service-Signature as an empty one, which is never right, and process nothing.',
      checks: [
        { name: 'without a signature', request: () => forged(() => undefined) },
        { name: 'with an empty signature', request: () => forged(() => '') },
      ],
    },
    {
      id: 'wrong-signature',
      title: 'Answers 403 to what is wrongly signed',
      expected: '403',
      advice:
        'Compare X-Service-Signature with the HMAC-SHA256 of the body, the whole of it and in constant time, and process nothing.',
      checks: [
        { name: 'with a forged signature', request: () => forged(shifted) },
        { name: 'with a truncated signature', request: () => forged((real) => real.slice(0, -8)) },
        { name: 'signed with another secret', request: () => delivery({}, { key: newSecret() }) },
        {
          name: 'with a changed body',
          request: () => altered((text) => text.replace('participant', 'particlpant')),
        },
        { name: 'with a truncated body', request: () => altered((text) => text.slice(0, -1)) },
        { name: 'with a space added to the body', request: () => altered((text) => `${text} `) },
      ],
    },
    {
      id: 'raw-body',
      title: 'Verifies the bytes as they came, not JSON that was written again',
      expected: '2xx',
      advice:
        'Compute the signature over the raw body, before anything parses it: express.raw(), request.body, request.raw_post.',
      checks: [
        {
          name: 'with unusual white space',
          request: () =>
            delivery({}, { write: (payload) => `\n${JSON.stringify(payload, null, '\t')}\r\n ` }),
        },
        { name: 'with unusual escapes', request: () => delivery({}, { write: escapedJson }) },
        {
          name: 'with its fields in another order',
          request: () => delivery({}, { write: (payload) => JSON.stringify(reversed(payload)) }),
        },
      ],
    },
    {
      id: 'repeats',
      title: 'Takes the same id again without an error',
      expected: '2xx',
      advice:
        'Remember the id of each delivery with a unique index, and answer 2xx when it is there already.',
      checks: [
        { name: 'the same delivery again', request: () => first },
        {
          name: 'a later attempt of it',
          request: () => sign(first.headers['webhook-id'] ?? '', first.body, secret, later),
        },
      ],
    },
    {
      id: 'event-types',
      title: 'Takes every event type',
      expected: '2xx',
      advice:
        'Answer 2xx to types that are of no interest: anything else is tried again, ten times.',
      checks: [
        ...Object.values(eventTypes).map(({ name, example }) => ({
          name,
          request: () => delivery(example),
        })),
        {
          name: 'webhook.test',
          request: () =>
            delivery({ event_type: 'webhook.test', resource: { type: 'webhook', id: uuidv7() } }),
        },
      ],
    },
    {
      id: 'what-is-new',
      title: 'Tolerates what it does not know',
      expected: '2xx',
      advice: 'Ignore event types and fields that you do not know: they come without notice.',
      checks: [
        {
          name: 'an event type unknown to it',
          request: () =>
            delivery({
              event_type: 'muster.checked',
              resource: { type: 'receiver', id: uuidv7() },
            }),
        },
        {
          name: 'fields unknown to it',
          request: () =>
            delivery({ added: { later: [1, null, 'Zoë 東京 🎈'] }, data: { added: true } }),
        },
        { name: 'a large body', request: () => delivery({ added: 'x'.repeat(LARGE_CHARACTERS) }) },
      ],
    },
  ]
}

function withSignatures(
  { headers, body }: Request,
  signatureOf: (real: string) => string | undefined,
): Request {
  const others = Object.entries(headers).filter(([name]) => !SIGNATURES.includes(name))
  const changed = SIGNATURES.flatMap((name) => {
    const signature = signatureOf(headers[name] ?? '')
    return signature === undefined ? [] : [[name, signature] as const]
  })
  return { headers: Object.fromEntries([...others, ...changed]), body }
}

/** As long, and of the same characters, but wrong in its first digit. */
function shifted(signature: string): string {
  return signature.replace(
    /^(v1,)?(.)/,
    (_, scheme = '', first) => `${scheme}${first === 'a' ? 'b' : 'a'}`,
  )
}

/** The same JSON, with letters escaped that nobody needs to escape. */
function escapedJson(payload: object): string {
  return JSON.stringify(payload).replaceAll('created', 'cr\\u0065ated')
}

function reversed(payload: object): object {
  return Object.fromEntries(Object.entries(payload).reverse())
}

/** One request after another: some build on the one before. Where nobody answers, the rest is not sent. */
async function run(url: string, rules: Rule[]): Promise<RuleResult[]> {
  const done: RuleResult[] = []
  let isSilent = false
  for (const rule of rules) {
    const results: Result[] = []
    for (const check of rule.checks) {
      const result: Result = isSilent ? notSent(rule, check) : await post(url, rule, check)
      isSilent ||= result.status === null
      results.push(result)
    }
    done.push({ rule, results })
  }
  return done
}

function notSent({ expected }: Rule, { name }: Check): Result {
  return { check: name, expected, status: null, durationMs: 0, error: 'not sent', passed: null }
}

async function post(url: string, { expected }: Rule, { name, request }: Check): Promise<Result> {
  const { headers, body } = request()
  const begun = performance.now()
  const outcome = (status: number | null, error: string | null, passed: boolean): Result => ({
    check: name,
    expected,
    status,
    durationMs: Math.round(performance.now() - begun),
    error,
    passed,
  })
  try {
    const answer = await send(url, {
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    await answer.body.dump()
    const status = answer.statusCode
    return outcome(
      status,
      null,
      expected === '2xx' ? status >= 200 && status < 300 : status === 403,
    )
  } catch (error) {
    return outcome(null, sayFailure(error), false)
  }
}

function sayFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`
  return error.message || String((error as NodeJS.ErrnoException).code)
}

function isKept({ results }: RuleResult): boolean {
  return results.every(({ passed }) => passed)
}

function documentOf({ rule: { id, title }, results }: RuleResult) {
  const passed = results.some((result) => result.passed === null)
    ? null
    : results.every((result) => result.passed)
  return {
    rule: id,
    title,
    passed,
    checks: results.map(({ durationMs, ...result }) => ({ ...result, duration_ms: durationMs })),
  }
}

function casesOf({ rule, results }: RuleResult): TestCase[] {
  return results.map((result) => ({
    classname: rule.id,
    name: result.check,
    seconds: result.durationMs / 1000,
    ...(result.passed === false && {
      failure: { message: sayResult(result), details: `${rule.title}. ${rule.advice}` },
    }),
    ...(result.passed === null && { skipped: 'The receiver did not answer before.' }),
  }))
}

function sayResult({ expected, status, error, durationMs }: Result): string {
  return `expected ${expected}, ${error === null ? `answered ${status} after ${durationMs} ms` : error}`
}

function say(url: string, results: RuleResult[]): string {
  const broken = results.filter((result) => !isKept(result)).length
  const isSilent = results.some((result) => result.results.some(({ passed }) => passed === null))
  const reason = isSilent
    ? 'it does not answer'
    : `${broken} of ${results.length} rules are not kept`
  const verdict =
    broken === 0 ? 'The receiver is conformant.' : `The receiver is not conformant: ${reason}.`
  return [`POST ${url}`, '', ...results.map(sayRule), '', verdict].join('\n')
}

/** A line for a rule that is kept; for one that is not, what went wrong, and what to do. */
function sayRule({ rule, results }: RuleResult): string {
  if (results.every(({ passed }) => passed === null)) return `-     ${rule.title}: not tried`
  const slowest = Math.max(...results.map(({ durationMs }) => durationMs))
  const count = results.length === 1 ? '1 request' : `${results.length} requests, the slowest`
  if (results.every(({ passed }) => passed)) return `ok    ${rule.title} (${count} ${slowest} ms)`
  const failed = results.filter(({ passed }) => passed === false)
  const width = Math.max(...failed.map(({ check }) => check.length))
  return [
    `FAIL  ${rule.title}`,
    ...failed.map((result) => `        ${result.check.padEnd(width)}  ${sayResult(result)}`),
    `      → ${rule.advice}`,
  ].join('\n')
}
