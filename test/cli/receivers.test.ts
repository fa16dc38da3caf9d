import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { newSecret, signingKeys } from '../../webhooks/transport/secret.ts'
import { deliveryHeaders, signatureHeaders } from '../../webhooks/transport/sign.ts'
import { type Answer, type ReceivedRequest, startReceiver } from '../receiver.ts'
import { type Muster, newMuster, type Started } from './muster.ts'

async function startListening(
  muster: Muster,
  ...args: string[]
): Promise<{ listener: Started; url: string }> {
  const listener = muster.start(['listen', '--port', '0', ...args])
  const url = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const [, found] =
        (listener.output.stdout + listener.output.stderr).match(/Listening on (\S+)/) ?? []
      if (found) resolve(found)
    }
    listener.process.stdout?.on('data', look)
    listener.process.stderr?.on('data', look)
    listener.ended.then(({ stderr }) => reject(new Error(stderr)), reject)
  })
  return { listener, url }
}

async function post(
  url: string,
  secret: string,
  payload: { id: string; [field: string]: unknown },
  change = (body: string) => body,
): Promise<number> {
  const body = Buffer.from(JSON.stringify(payload))
  const ids = { id: payload.id, eventId: null }
  const headers = deliveryHeaders(signingKeys(secret), ids, body, new Date())
  return (await fetch(url, { method: 'POST', headers, body: change(body.toString('utf8')) })).status
}

async function stopped({ process, ended }: Started) {
  process.kill('SIGTERM')
  return ended
}

const { example } = eventTypes['job_application.created']

describe('listen', () => {
  it('verifies and prints each delivery; responds 403 to a wrong signature', async () => {
    await using muster = await newMuster()
    const secret = newSecret()
    const { listener, url } = await startListening(muster, '--secret', secret)
    expect(await post(url, secret, example)).toBe(204)
    expect(await post(url, secret, example)).toBe(204)
    expect(await post(url, newSecret(), example)).toBe(403)
    expect((await fetch(url)).status).toBe(405)

    const { status, stdout, stderr } = await stopped(listener)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(`muster webhook create --account ID --url ${url} --events '*'`)
    expect(stdout).toContain(
      `job_application.created\n  Delivery  ${example.id}\n  Resource  job_application ${example.resource.id}\n`,
    )
    expect(stdout).toContain(`Delivery  ${example.id}  (seen before)`)
    expect(stdout.match(/Signature valid, responded 204/g)).toHaveLength(2)
    expect(stdout.match(/Signature INVALID, responded 403/g)).toHaveLength(1)
    expect(stdout).not.toContain('Problem')
  })

  it('--json prints one document per delivery and nothing else', async () => {
    await using muster = await newMuster()
    const { listener, url } = await startListening(muster, '--json')
    await post(url, newSecret(), example)
    await post(url, newSecret(), { ...example, event_type: 'cat.fed' })
    await post(url, newSecret(), { ...example, data: [] })
    await post(url, newSecret(), example, () => '{')
    const { stdout } = await stopped(listener)
    const documents = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(documents).toMatchObject([
      {
        received_at: expect.any(String),
        verified: null,
        problems: [],
        repeated: false,
        body: example,
        status: 204,
        forwarded: null,
      },
      { problems: ['event_type: "cat.fed" is not in asyncapi.yaml'], repeated: true },
      { problems: [expect.stringContaining('body /data')] },
      { problems: ['body: is not JSON'], body: '{' },
    ])
  })

  it('prints how a delivery breaks the schema of its event', async () => {
    await using muster = await newMuster()
    const { listener, url } = await startListening(muster)
    await post(url, newSecret(), {
      ...example,
      resource: { ...example.resource, type: 'cat' },
      data: { screening_outcome: 'odd', more: 1 },
    })
    const { stdout } = await stopped(listener)
    expect(stdout).toContain(
      'Problem   body /resource/type: must be equal to constant: job_application\n',
    )
    expect(stdout).toContain('Problem   body /data: must NOT have additional properties: more\n')
    expect(stdout).toMatch(
      /Problem {3}body \/data\/screening_outcome: must be equal to one of the allowed values: meets_all, /,
    )
  })

  it('--forward sends the same bytes and headers and returns the response', async () => {
    await using muster = await newMuster()
    await using own = await startReceiver({
      validate: false,
      answers: [
        {
          status: 503,
          headers: { 'Retry-After': '7', 'Content-Type': 'text/plain', 'X-Own': '1' },
          body: 'busy',
        },
        200,
      ],
    })
    const secret = newSecret()
    const { listener, url } = await startListening(muster, '--secret', secret, '--forward', own.url)
    const body = Buffer.from(
      `\n${JSON.stringify(example, null, '\t').replace('created', 'cr\\u0065ated')}  `,
    )
    const headers = {
      ...deliveryHeaders(signingKeys(secret), { id: example.id, eventId: null }, body, new Date()),
      'x-more': 'kept',
    }
    const answer = await fetch(url, { method: 'POST', headers, body })
    expect([answer.status, answer.headers.get('retry-after'), await answer.text()]).toEqual([
      503,
      '7',
      'busy',
    ])
    expect(answer.headers.get('x-own')).toBeNull()
    const [received] = own.requests
    expect(received?.body.equals(body)).toBe(true)
    expect(received?.headers).toMatchObject(headers)
    expect(received?.headers.host).toBe(new URL(own.url).host)

    expect(await post(url, secret, example)).toBe(200)
    expect(await post(url, newSecret(), example)).toBe(403)
    expect(own.requests).toHaveLength(2)
    const { stdout } = await stopped(listener)
    expect(stdout).toMatch(
      new RegExp(`Signature valid\n  Forwarded ${own.url} responded 503 in \\d+ ms: busy\n`),
    )
    expect(stdout).toMatch(new RegExp(`Forwarded ${own.url} responded 200 in \\d+ ms\n`))
    expect(stdout).toContain('Signature INVALID, responded 403\n')
  })

  it('--forward to an unreachable URL: responds 502 and prints why', async () => {
    await using muster = await newMuster()
    const { listener, url } = await startListening(
      muster,
      '--forward',
      'http://127.0.0.1:1/',
      '--json',
    )
    expect(await post(url, newSecret(), example)).toBe(502)
    const { stdout } = await stopped(listener)
    expect(JSON.parse(stdout)).toMatchObject({
      status: 502,
      forwarded: {
        status: 502,
        duration_ms: expect.any(Number),
        error: expect.stringContaining('ECONNREFUSED'),
      },
    })
  })

  it('refuses a port that is in use', async () => {
    await using muster = await newMuster()
    const { url } = await startListening(muster)
    const { port } = new URL(url)
    expect(await muster.run(['listen', '--port', port])).toEqual({
      status: 1,
      stdout: '',
      stderr: `Port ${port} is in use. Choose another one with --port.\n`,
    })
  })
})

/** A receiver with one defect, and the rules that it breaks. */
interface Defect {
  name: string
  breaks: string[]
  /** `sign` computes the correct signature. `count`: how often this delivery arrived so far. */
  answer(request: ReceivedRequest, sign: (body: Buffer) => string, count: number): Answer
}

const signatureOf = ({ headers }: ReceivedRequest): string =>
  String(headers['x-service-signature'] ?? '')

/** Verifies signatures correctly. Responds 200 if `takes` accepts the request. */
const but =
  (
    takes: (request: ReceivedRequest, count: number) => boolean,
    otherwise: Answer,
  ): Defect['answer'] =>
  (request, sign, count) =>
    signatureOf(request) !== sign(request.body) ? 403 : takes(request, count) ? 200 : otherwise

const says = ({ body }: ReceivedRequest, ...words: string[]): boolean =>
  words.some((word) => body.toString().includes(word))

const defects: Defect[] = [
  { name: 'verifies nothing', breaks: ['missing-signature', 'wrong-signature'], answer: () => 200 },
  {
    name: 'takes a missing signature for a test',
    breaks: ['missing-signature'],
    answer: (request, sign) =>
      ['', sign(request.body)].includes(signatureOf(request)) ? 200 : 403,
  },
  {
    name: 'compares only the beginning of the signature',
    breaks: ['wrong-signature'],
    answer: (request, sign) =>
      signatureOf(request) !== '' && sign(request.body).startsWith(signatureOf(request))
        ? 200
        : 403,
  },
  {
    name: 'answers 401',
    breaks: ['missing-signature', 'wrong-signature'],
    answer: (request, sign) => (signatureOf(request) === sign(request.body) ? 200 : 401),
  },
  {
    name: 'verifies JSON that it has written again',
    breaks: ['wrong-signature', 'raw-body'],
    answer(request, sign) {
      try {
        return signatureOf(request) ===
          sign(Buffer.from(JSON.stringify(JSON.parse(request.body.toString()))))
          ? 200
          : 403
      } catch {
        return 403
      }
    },
  },
  {
    name: 'answers 409 to a repeat',
    breaks: ['repeats'],
    answer: but((_, count) => count === 1, 409),
  },
  {
    name: 'answers 400 to an unknown type',
    breaks: ['what-is-new'],
    answer: but((request) => !says(request, 'muster.checked'), 400),
  },
  {
    name: 'fails at some types',
    breaks: ['event-types'],
    answer: but((request) => !says(request, 'export.failed', 'webhook.test'), 500),
  },
  {
    name: 'refuses unknown fields',
    breaks: ['what-is-new'],
    answer: but((request) => !says(request, 'added'), 422),
  },
  {
    name: 'takes no large body',
    breaks: ['what-is-new'],
    answer: but(({ body }) => body.length < 10_000, 413),
  },
  {
    name: 'redirects',
    breaks: ['accepts-post', 'raw-body', 'repeats', 'event-types', 'what-is-new'],
    answer: but(() => false, { status: 308, headers: { Location: '/' } }),
  },
]

describe('check-receiver', () => {
  /** Returns the rules that the receiver breaks. */
  async function check(muster: Muster, url: string, secret: string, ...more: string[]) {
    const { status, stdout, stderr } = await muster.run(
      ['check-receiver', url, '--secret', '-', '--json', ...more],
      {
        input: `${secret}\n`,
      },
    )
    expect(stderr).toBe('')
    const { conformant, rules } = JSON.parse(stdout)
    expect(status).toBe(conformant ? 0 : 1)
    return {
      rules,
      broken: rules
        .filter(({ passed }: { passed: boolean }) => !passed)
        .map(({ rule }: { rule: string }) => rule),
    }
  }

  it('passes a correct receiver', async () => {
    await using muster = await newMuster()
    const secret = newSecret()
    const { url } = await startListening(muster, '--secret', secret)
    const { rules, broken } = await check(muster, url, secret)
    expect(broken).toEqual([])
    expect(rules[0]).toEqual({
      rule: 'accepts-post',
      title: expect.stringContaining('15 seconds'),
      passed: true,
      checks: [
        {
          check: 'a delivery',
          expected: '2xx',
          status: 204,
          error: null,
          passed: true,
          duration_ms: expect.any(Number),
        },
      ],
    })
    const people = await muster.run(['check-receiver', url, '--secret', secret])
    expect(people).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        /^ok {4}Accepts every event type \(22 requests, the slowest \d+ ms\)$/m,
      ),
    })
    expect(people.stdout).toContain('The receiver is conformant.\n')
  })

  it.each(defects)('fails a receiver that $name', async ({ breaks, answer }) => {
    await using muster = await newMuster()
    const secret = newSecret()
    const sign = (body: Buffer): string =>
      signatureHeaders(signingKeys(secret), '', body, new Date())['x-service-signature'] ?? ''
    const counts = new Map<string, number>()
    await using receiver = await startReceiver({
      validate: false,
      answers(request) {
        const id =
          signatureOf(request) === sign(request.body) ? JSON.parse(request.body.toString()).id : ''
        counts.set(id, (counts.get(id) ?? 0) + 1)
        return answer(request, sign, counts.get(id) ?? 0)
      },
    })
    expect(new Set((await check(muster, receiver.url, secret)).broken)).toEqual(new Set(breaks))
  })

  it('prints and exports what was sent, the response, and the advice', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver({ validate: false, answers: [200] })
    const file = join(muster.dataDir, 'receiver.xml')
    const { status, stdout } = await muster.run([
      'check-receiver',
      receiver.url,
      '--secret',
      newSecret(),
      '--junit',
      file,
    ])
    expect(status).toBe(1)
    expect(stdout).toMatch(
      /^FAIL {2}Responds 403 to an unsigned request\n {8}without a signature {6}expected 403, got 200 after \d+ ms\n/m,
    )
    expect(stdout).toMatch(/^ {6}→ Treat a missing X-Service-Signature like an empty one/m)
    expect(stdout).toContain('The receiver is not conformant: it breaks 2 of 7 rules.\n')
    const xml = await readFile(file, 'utf8')
    expect(xml).toMatch(
      /<testsuite name="muster check-receiver http:[^"]+" tests="39" failures="8">/,
    )
    expect(xml).toMatch(
      /<testcase classname="missing-signature" name="without a signature" time="\d+\.\d{3}"><failure message="expected 403, got 200 /,
    )
  })

  it('fails an unreachable receiver and skips the other checks', async () => {
    await using muster = await newMuster()
    const file = join(muster.dataDir, 'receiver.xml')
    const { rules } = await check(muster, 'http://127.0.0.1:1/', newSecret(), '--junit', file)
    expect(rules[0]).toMatchObject({
      passed: false,
      checks: [{ status: null, error: expect.stringContaining('ECONNREFUSED'), passed: false }],
    })
    expect(rules[1]).toMatchObject({ passed: null, checks: [{ passed: null }, { passed: null }] })
    expect(await readFile(file, 'utf8')).toContain('tests="39" failures="1" skipped="38"')
  })

  it('fails a receiver that needs more than 15 seconds', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver({ validate: false, answers: ['hang'] })
    const { rules } = await check(muster, receiver.url, newSecret())
    expect(rules[0].checks).toMatchObject([
      { status: null, error: 'no response within 15 s', passed: false },
    ])
  })
})
