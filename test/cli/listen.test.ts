import { describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { newSecret, signingKeys } from '../../webhooks/transport/secret.ts'
import { deliveryHeaders } from '../../webhooks/transport/sign.ts'
import { traceparentOfDelivery } from '../../webhooks/transport/traceparent.ts'
import { startReceiver } from '../receiver.ts'
import { type Muster, newMuster, type Started, waitForOutput } from './muster.ts'

async function startListening(
  muster: Muster,
  ...args: string[]
): Promise<{ listener: Started; url: string }> {
  // With --port, the command listens even in a terminal where the variables of the samples are set.
  const environment = { MUSTER_URL: 'http://127.0.0.1:9', MUSTER_API_KEY: 'mst_x' }
  const listener = muster.start(['listen', '--port', '0', ...args], { environment })
  const [, url = ''] = await waitForOutput(listener, /Listening on (\S+)/)
  return { listener, url }
}

/** The headers of a delivery with this ID. Its event is not stored, like the event of a test. */
function signedHeaders(id: string, secret: string, body: Buffer): Record<string, string> {
  const ids = { id, eventId: null }
  return {
    ...deliveryHeaders(signingKeys(secret), ids, body, new Date()),
    traceparent: traceparentOfDelivery(ids, null),
  }
}

/** Sends a signed delivery and returns the status. `change` changes the body after it is signed. */
async function post(
  url: string,
  secret: string,
  payload: { id: string; [field: string]: unknown },
  change = (body: string) => body,
): Promise<number> {
  const body = Buffer.from(JSON.stringify(payload))
  const headers = signedHeaders(payload.id, secret, body)
  return (await fetch(url, { method: 'POST', headers, body: change(body.toString('utf8')) })).status
}

async function stop({ process, ended }: Started) {
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

    const { status, stdout, stderr } = await stop(listener)
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

  it('escapes control characters of a delivery, which could control the terminal', async () => {
    await using muster = await newMuster()
    const { listener, url } = await startListening(muster)
    const type = 'x\u001b]0;pwned\u0007\u009b2J'
    const resource = { ...example.resource, id: 'r\n  Signature valid' }
    const hostile = { ...example, id: 'd\u001b[2J', event_type: type, resource }
    expect((await fetch(url, { method: 'POST', body: JSON.stringify(hostile) })).status).toBe(204)
    const { stdout } = await stop(listener)
    expect(stdout).toContain('x\\u001b]0;pwned\\u0007\\u009b2J\n  Delivery  d\\u001b[2J\n')
    expect(stdout).toContain('r\\u000a  Signature valid\n')
    // The line breaks of the output are its only control characters.
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })

  it('responds 403 to a request that a page of another website sends', async () => {
    await using muster = await newMuster()
    const { url } = await startListening(muster)
    const headers = { Origin: 'https://evil.example', 'Content-Type': 'text/plain' }
    expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).toBe(403)
  })

  it('--json prints one document per delivery and nothing else', async () => {
    await using muster = await newMuster()
    const { listener, url } = await startListening(muster, '--json')
    await post(url, newSecret(), example)
    await post(url, newSecret(), { ...example, event_type: 'cat.fed' })
    await post(url, newSecret(), { ...example, data: [] })
    await post(url, newSecret(), example, () => '{')
    const { stdout } = await stop(listener)
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
    const { stdout } = await stop(listener)
    expect(stdout).toContain(
      'Problem   body /resource/type: must be equal to constant: job_application\n',
    )
    expect(stdout).toContain('Problem   body /data: must NOT have additional properties: more\n')
    expect(stdout).toMatch(
      /Problem {3}body \/data\/screening_outcome: must be equal to one of the allowed values: meets_all, /,
    )
  })

  it('--forward sends the same bytes and headers, and returns the status, Retry-After and body', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver({
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
    const { listener, url } = await startListening(
      muster,
      '--secret',
      secret,
      '--forward',
      receiver.url,
    )
    const body = Buffer.from(
      `\n${JSON.stringify(example, null, '\t').replace('created', 'cr\\u0065ated')}  `,
    )
    const headers = { ...signedHeaders(example.id, secret, body), 'x-more': 'kept' }
    const response = await fetch(url, { method: 'POST', headers, body })
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([
      503,
      '7',
      'busy',
    ])
    expect(response.headers.get('x-own')).toBeNull()
    const [received] = receiver.requests
    expect(received?.body.equals(body)).toBe(true)
    expect(received?.headers).toMatchObject(headers)
    expect(received?.headers.host).toBe(new URL(receiver.url).host)

    expect(await post(url, secret, example)).toBe(200)
    expect(await post(url, newSecret(), example)).toBe(403)
    expect(receiver.requests).toHaveLength(2)
    const { stdout } = await stop(listener)
    expect(stdout).toMatch(
      new RegExp(`Signature valid\n  Forwarded ${receiver.url} responded 503 in \\d+ ms: busy\n`),
    )
    expect(stdout).toMatch(new RegExp(`Forwarded ${receiver.url} responded 200 in \\d+ ms\n`))
    expect(stdout).toContain('Signature INVALID, responded 403\n')
  })

  it('with --secret, follows every rule of check-receiver', async () => {
    await using muster = await newMuster()
    const secret = newSecret()
    const { listener, url } = await startListening(muster, '--secret', secret)
    const { rules } = await muster.json(['check-receiver', url, '--secret', secret, '--strict'])
    expect(rules.filter(({ passed }: { passed: boolean }) => !passed)).toEqual([])
    await stop(listener)
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
    const { stdout } = await stop(listener)
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
      stderr: `Port ${port} of 127.0.0.1 is already in use. Set --port to another port.\n`,
    })
  })
})
