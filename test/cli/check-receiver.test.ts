import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { newSecret } from '../../webhooks/transport/secret.ts'
import { startReceiver } from '../receiver.ts'
import { FAULTS, startFaultyReceiver } from './faulty-receivers.ts'
import { type Muster, newMuster } from './muster.ts'

interface RuleDocument {
  rule: string
  required: boolean
  passed: boolean | null
  checks: object[]
}

/** Returns the document of the command, and the IDs of the broken rules. */
async function check(muster: Muster, url: string, secret: string, ...options: string[]) {
  const { status, stdout, stderr } = await muster.run(
    ['check-receiver', url, '--secret', '-', '--json', ...options],
    { input: `${secret}\n` },
  )
  expect(stderr).toBe('')
  const document = JSON.parse(stdout) as {
    conformant: boolean
    expected_deliveries: number
    rules: RuleDocument[]
  }
  expect(status).toBe(document.conformant ? 0 : 1)
  const broken = document.rules.filter(({ passed }) => passed === false).map(({ rule }) => rule)
  return { ...document, broken }
}

/** The rules that the faulty receivers break. A test below asserts that these are all rules. */
const RULES = new Set(FAULTS.flatMap(({ breaks }) => breaks))

describe('check-receiver', () => {
  it('passes a correct receiver', async () => {
    await using muster = await newMuster()
    const secrets: [string, string] = [newSecret(), newSecret()]
    await using receiver = await startFaultyReceiver(secrets, {})
    const options = ['--next-secret', secrets[1], '--strict']
    const { rules, ...document } = await check(muster, receiver.url, secrets[0], ...options)
    expect(document).toMatchObject({ conformant: true, expected_deliveries: 40, broken: [] })
    expect(new Set(rules.map(({ rule }) => rule)), 'each rule has a fault').toEqual(RULES)
    expect(rules[0]).toEqual({
      rule: 'accepts-post',
      title: expect.stringContaining('15 seconds'),
      required: true,
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
    const ended = await muster.run(['check-receiver', receiver.url, '--secret', secrets[0]])
    expect(ended).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(
        /^ok {4}Accepts every event type \(25 requests, the slowest \d+ ms\)$/m,
      ),
    })
    // Two deliveries fewer than above, because the rule next-secret is not tested.
    expect(ended.stdout).toContain('The receiver is conformant.\n')
    expect(ended.stdout).toContain(
      "Check the receiver's data: it must have processed 38 deliveries, each once.",
    )
  })

  it.each(FAULTS)('fails a receiver that $name', async ({ breaks, name: _, ...fault }) => {
    await using muster = await newMuster()
    const secrets: [string, string] = [newSecret(), newSecret()]
    await using receiver = await startFaultyReceiver(secrets, fault)
    const options = ['--next-secret', secrets[1], '--strict']
    const { broken, conformant } = await check(muster, receiver.url, secrets[0], ...options)
    expect(new Set(broken)).toEqual(new Set(breaks))
    expect(conformant).toBe(false)
  })

  it('warns about an ignored recommendation, and fails it with --strict', async () => {
    await using muster = await newMuster()
    const secrets: [string, string] = [newSecret(), newSecret()]
    await using receiver = await startFaultyReceiver(secrets, { isRecent: () => true })
    const file = join(muster.dataDir, 'receiver.xml')
    const command = ['check-receiver', receiver.url, '--secret', secrets[0], '--junit', file]

    const lenient = await muster.run(command)
    expect(lenient.status).toBe(0)
    expect(lenient.stdout).toMatch(
      /^warn {2}Responds 403 to a delivery that was not signed within .*\n {8}signed 10 minutes ago {12}expected 403, got 204 after \d+ ms\n/m,
    )
    expect(lenient.stdout).toMatch(/^ {6}→ Verify webhook-signature, /m)
    expect(lenient.stdout).toContain('The receiver is conformant, but ignores 1 recommendation.\n')
    expect(await readFile(file, 'utf8')).toMatch(
      /<testcase classname="late-delivery" name="signed 10 minutes ago" time="[\d.]+"><skipped message="Recommendation: expected 403, /,
    )

    const strict = await muster.run([...command, '--strict'])
    expect(strict.status).toBe(1)
    expect(strict.stdout).not.toContain("Check the receiver's data")
    expect(strict.stdout).toContain('FAIL  Responds 403 to a delivery that was not signed')
    expect(strict.stdout).toContain('not conformant: it breaks 1 of 12 rules.\n')
    expect(await readFile(file, 'utf8')).toContain('tests="53" failures="2">')
  })

  it('prints the request, the response and the advice of a broken rule, and writes JUnit XML', async () => {
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
    expect(stdout).toContain('The receiver is not conformant: it breaks 2 of 12 rules.\n')
    const xml = await readFile(file, 'utf8')
    expect(xml).toMatch(
      /<testsuite name="muster check-receiver http:[^"]+" tests="53" failures="8" skipped="5">/,
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
    expect(rules[2]).toMatchObject({ passed: null, checks: [{ passed: null }, { passed: null }] })
    expect(await readFile(file, 'utf8')).toContain('tests="53" failures="1" skipped="52"')
  })

  it('fails a receiver that does not respond within 15 seconds', async () => {
    await using muster = await newMuster()
    await using receiver = await startReceiver({ validate: false, answers: ['hang'] })
    const { rules } = await check(muster, receiver.url, newSecret())
    expect(rules[0]?.checks).toMatchObject([
      { status: null, error: 'no response within 15 s', passed: false },
    ])
  })

  it('--help lists every rule', async () => {
    await using muster = await newMuster()
    const { status, stdout } = await muster.run(['check-receiver', '--help'])
    expect(status).toBe(0)
    const [required = '', recommended = ''] = stdout.split('\nRecommendations:\n')
    expect(required).toMatch(
      /\nRequired rules:\n(.*\n)* {2}held-upload {8}Accepts a delivery while /,
    )
    expect(recommended).toMatch(/^ {2}late-delivery .*\n {2}oversized-body .*\n\n/)
    for (const rule of RULES) expect(stdout).toContain(`\n  ${rule} `)
  })
})
