import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { newSecret, signingKeys } from '../../webhooks/secret.ts'
import { deliveryHeaders } from '../../webhooks/sign.ts'
import { type Muster, newMuster, type Started } from './muster.ts'

async function startListening(muster: Muster, ...args: string[]): Promise<{ listener: Started; url: string }> {
  const listener = muster.start(['listen', '--port', '0', ...args])
  const url = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const [, found] = (listener.output.stdout + listener.output.stderr).match(/Listening on (\S+)/) ?? []
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
  const headers = deliveryHeaders(signingKeys(secret), payload.id, body, new Date())
  return (await fetch(url, { method: 'POST', headers, body: change(body.toString('utf8')) })).status
}

async function stopped({ process, ended }: Started) {
  process.kill('SIGTERM')
  return ended
}

const { example } = eventTypes['job_application.created']

describe('listen', () => {
  it('verifies and shows each delivery, and answers 403 to what is not rightly signed', async () => {
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
    expect(stdout).toContain(`job_application.created\n  Delivery  ${example.id}\n  Resource  job_application ${example.resource.id}\n`)
    expect(stdout).toContain(`Delivery  ${example.id}  (seen before)`)
    expect(stdout.match(/Signature right, answered 204/g)).toHaveLength(2)
    expect(stdout.match(/Signature WRONG, answered 403/g)).toHaveLength(1)
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
      { received_at: expect.any(String), verified: null, problems: [], repeated: false, body: example },
      { problems: ['event_type: "cat.fed" is not in asyncapi.yaml'], repeated: true },
      { problems: [expect.stringContaining('body /data')] },
      { problems: ['body: is not JSON'], body: '{' },
    ])
  })

  it('refuses a port that is in use', async () => {
    await using muster = await newMuster()
    const { url } = await startListening(muster)
    const { port } = new URL(url)
    expect(await muster.run(['listen', '--port', port])).toEqual({
      status: 1,
      stdout: '',
      stderr: `Port ${port} is in use: choose another with --port\n`,
    })
  })
})

describe('check-receiver', () => {
  it('passes a receiver that does all it must', async () => {
    await using muster = await newMuster()
    const secret = newSecret()
    const { url } = await startListening(muster, '--secret', secret)
    const { conformant, checks } = await muster.json(['check-receiver', url, '--secret', secret])
    expect(conformant).toBe(true)
    expect(checks.length).toBeGreaterThanOrEqual(8)
    expect(checks[0]).toEqual({
      check: 'a delivery',
      expected: '2xx',
      status: 204,
      error: null,
      passed: true,
      duration_ms: expect.any(Number),
    })
  })

  it('fails one that verifies nothing, and says where', async () => {
    await using muster = await newMuster()
    const server = createServer((request, response) => request.resume().on('end', () => response.writeHead(200).end()))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { status, stdout } = await muster.run(['check-receiver', url, '--secret', newSecret()])
    server.closeAllConnections()
    server.close()
    expect(status).toBe(1)
    expect(stdout).toMatch(/^ok +a delivery +2xx +200/m)
    expect(stdout).toMatch(/^FAIL +without a signature +403 +200/m)
    expect(stdout).toContain('The receiver is not conformant.')
  })

  it('fails one that is not there', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['check-receiver', 'http://127.0.0.1:1/', '--secret', newSecret(), '--json'])
    expect(status).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      conformant: false,
      checks: expect.arrayContaining([expect.objectContaining({ status: null, passed: false })]),
    })
  })
})
