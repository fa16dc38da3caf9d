/** Stubs for new operations: generation, their start, and removed operations. */
import { expect, test } from 'vitest'
import { until } from '../helpers.ts'
import { copyOfRepository, WITHIN_MS, whenReady } from './tree.ts'
import { addVenues, withBookings, withMoreFields } from './venues.ts'

const LONG_MS = 300_000

async function call(
  { url, key }: { url: string; key: string },
  method: string,
  path: string,
  body?: object,
) {
  const headers = {
    Authorization: `Bearer ${key}`,
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const response = await fetch(`${url}/public/v1${path}`, {
    method,
    headers,
    body: body && JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

/** The folders of the files that `generate --resource` writes. */
const CODE = ['handlers', 'records', 'test/handlers', 'test/resources.ts']

const VENUE_HANDLERS = ['listVenues', 'createVenue', 'getVenue', 'updateVenue', 'deleteVenue']

test(
  'docs/new-resource.md: each step works as described',
  async () => {
    await using tree = await copyOfRepository()
    await addVenues(tree)
    await tree.write('openapi.yaml', withMoreFields(await tree.read('openapi.yaml')))
    for (const file of ['openapi.yaml', 'asyncapi.yaml'])
      await tree.write(file, await withBookings(file, await tree.read(file)))
    expect(await tree.run('bin/muster.js', ['lint'])).toEqual({
      status: 0,
      output: 'openapi.yaml and asyncapi.yaml have no problems.\n',
    })
    const check = await tree.run('bin/muster.js', ['generate', '--check'])
    expect(check).toMatchObject({
      status: 1,
      output: expect.stringContaining('handlers/createVenue.ts is missing\n'),
    })
    const generated = await tree.run('bin/muster.js', ['generate'])
    expect(generated.status).toBe(0)
    for (const id of VENUE_HANDLERS)
      for (const file of [`handlers/${id}.ts`, `test/handlers/${id}.test.ts`])
        expect(generated.output).toContain(`wrote ${file}\n`)
    expect(await tree.run('node_modules/typescript/bin/tsc', [])).toEqual({ status: 0, output: '' })
    const written = VENUE_HANDLERS.flatMap((id) => [
      `handlers/${id}.ts`,
      `test/handlers/${id}.test.ts`,
    ])
    expect(
      await tree.run('node_modules/@biomejs/biome/bin/biome', [
        'check',
        '--vcs-enabled=false',
        ...written,
      ]),
    ).toMatchObject({
      status: 0,
    })

    const stub = await whenReady(tree)
    const refusal = { status: 501, body: { message: 'createVenue is not implemented yet.' } }
    expect(await call(stub, 'POST', '/venues', { name: 'Hall' })).toEqual(refusal)
    expect(await call(stub, 'POST', '/venues', { capacity: 0 })).toMatchObject({
      status: 422,
      body: { errors: { name: ['is required.'], capacity: [expect.any(String)] } },
    })
    expect(
      await call({ ...stub, key: 'nobody' }, 'POST', '/venues', { name: 'Hall' }),
    ).toMatchObject({
      status: 401,
    })
    await stub.running.stop()

    const production = await tree.run('bin/muster.js', ['serve'], {
      PORT: '0',
      NODE_ENV: 'production',
    })
    expect(production).toMatchObject({
      status: 1,
      output: expect.stringContaining(VENUE_HANDLERS.join(', ')),
    })

    for (const [name, stub] of [
      ['venues', 'createVenue'],
      ['bookings', 'createBooking'],
    ] as const) {
      const resource = await tree.run('bin/muster.js', ['generate', '--resource', name])
      expect(resource.status, resource.output).toBe(0)
      expect(resource.output).toContain(`removed test/handlers/${stub}.test.ts\n`)
      // Nothing but the rules that no contract has.
      const left = resource.output.match(/(?<=^left for you: )\S+/gm)
      expect(new Set(left)).toEqual(
        new Set([...(name === 'bookings' ? ['openapi.yaml:'] : []), `records/${name}.ts:`, 'Run']),
      )
    }
    const operation = await tree.run('bin/muster.js', [
      'rename',
      'getVenue',
      'readVenue',
      '--force',
    ])
    expect(operation).toMatchObject({
      status: 0,
      output: expect.stringContaining('renamed handlers/getVenue.ts to handlers/readVenue.ts\n'),
    })
    expect(await tree.read('test/handlers/venues.test.ts')).toContain(
      "test('createVenue, readVenue:",
    )
    const field = await tree.run('bin/muster.js', [
      'rename',
      'Venue.opens_at',
      'starts_at',
      '--force',
    ])
    expect(field).toMatchObject({
      status: 0,
      output: expect.stringMatching(/changed records\/migrations\/\d+_venues_starts_at\.ts\n/),
    })
    const contract = await tree.read('openapi.yaml')
    expect([contract.includes('opens_at'), contract.includes('filter[starts_after]')]).toEqual([
      false,
      true,
    ])
    expect(await tree.run('bin/muster.js', ['generate', '--check'])).toEqual({
      status: 0,
      output: 'generated/ is fresh.\n',
    })
    expect(await tree.run('node_modules/typescript/bin/tsc', [])).toEqual({ status: 0, output: '' })
    expect(
      await tree.run('node_modules/@biomejs/biome/bin/biome', [
        'check',
        '--vcs-enabled=false',
        ...CODE,
      ]),
    ).toMatchObject({ status: 0 })
    const schema = ['run', '--project', 'sqlite', 'test/records/schema.test.ts', '--update']
    expect(await tree.run('node_modules/vitest/vitest.mjs', schema)).toMatchObject({ status: 0 })
    const tests = [
      'run',
      '--project',
      'sqlite',
      '--project',
      'plain',
      'test/handlers/venues.test.ts',
      'test/handlers/bookings.test.ts',
      'test/handlers/isolation.test.ts',
      'test/handlers/lists.test.ts',
      'test/contract/events.test.ts',
      'test/records/removal-rules.test.ts',
    ]
    const ran = await tree.run('node_modules/vitest/vitest.mjs', tests)
    expect(ran.status, ran.output).toBe(0)
    const whole = await whenReady(tree, { NODE_ENV: 'production' })
    await whole.running.stop()
  },
  LONG_MS,
)

test(
  'an operation without an API key: refused with its line',
  async () => {
    await using tree = await copyOfRepository()
    await tree.replace(
      'openapi.yaml',
      'operationId: listEventTypes\n',
      'operationId: listEventTypes\n      security: []\n',
    )
    expect(await tree.run('bin/muster.js', ['generate'])).toEqual({
      status: 1,
      output: expect.stringMatching(
        /^openapi\.yaml:\d+ listEventTypes must have security: \[\{ apiKey: \[\] \}\]/,
      ),
    })
  },
  LONG_MS,
)

test(
  'a removed operation: its files are listed and stay',
  async () => {
    await using tree = await copyOfRepository()
    const text = await tree.read('openapi.yaml')
    const [, operation = ''] =
      /\n( {4}delete:\n {6}operationId: deleteJob\n[\s\S]*?)(?=\n {2}\/)/.exec(text) ?? []
    await tree.replace('openapi.yaml', operation, '')
    await tree.replace(
      'openapi.yaml',
      'x-emits: [job.updated]',
      'x-emits: [job.updated, job.deleted]',
    )
    await tree.write('test/handlers/deleteJob.test.ts', '')
    await tree.write('scripts/contract/hooks.ts', "export const id = 'deleteJob'\n")
    await tree.replace(
      'openapi.yaml',
      '  schemas:\n',
      '  schemas:\n    Left:\n      type: object\n      example: {}\n',
    )

    const { status, output } = await tree.run('bin/muster.js', ['generate'])
    expect(status).toBe(0)
    const orphans = [
      'handlers/deleteJob.ts serves no operation: remove it, or rename it with its operation',
      'test/handlers/deleteJob.test.ts tests no operation: remove it, or rename it with its operation',
      'scripts/contract/hooks.ts:1 names deleteJob, which is no operation: remove it, or rename it',
      'nothing refers to components.schemas.Left: remove it, or refer to it',
    ]
    for (const orphan of orphans) expect(output).toContain(orphan)
    expect(await tree.exists('handlers/deleteJob.ts')).toBe(true)
    const check = await tree.run('bin/muster.js', ['generate', '--check'])
    expect(check.status).toBe(1)
    for (const orphan of orphans) expect(check.output).toContain(orphan)
  },
  LONG_MS,
)

test(
  'an existing handler or test: never overwritten',
  async () => {
    await using tree = await copyOfRepository()
    await tree.write('test/handlers/getJob.test.ts', 'mine')
    await tree.remove('handlers/getJob.ts')
    await tree.write('handlers/getTask.ts', 'mine')
    const { output } = await tree.run('bin/muster.js', ['generate'])
    expect(output).toContain('wrote handlers/getJob.ts')
    expect(output).not.toContain('getJob.test.ts')
    expect(await tree.read('test/handlers/getJob.test.ts')).toBe('mine')
    expect(await tree.read('handlers/getTask.ts')).toBe('mine')
  },
  LONG_MS,
)

const PING = `  /public/v1/ping:
    get:
      operationId: getPing
      tags: [Events]
      summary: Ping
      description: Says that it is there.
      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2099-06-01'
      responses:
        '204': { $ref: '#/components/responses/NoContent' }
        '422': { $ref: '#/components/responses/ValidationFailed' }
`
const HANDLER = 'export async function getPing(): Promise<void> {}\n'

test(
  'muster dev: follows changes of the contract and the code, and survives errors in both',
  async () => {
    await using tree = await copyOfRepository()
    const first = await whenReady(tree)
    await first.running.stop()
    const port = new URL(first.url).port
    const dev = tree.start(['dev'], { PORT: port, RATE_LIMIT_PER_MINUTE: '1000000' })
    const answers = (status: number) =>
      until(
        `getPing answers ${status}: ${dev.output()}`,
        async () => (await call(first, 'GET', '/ping').catch(() => undefined))?.status === status,
        WITHIN_MS,
      )
    const says = (text: string) =>
      until(`dev says ${text}`, () => dev.output().includes(text), WITHIN_MS)

    await answers(404)
    const contract = await tree.read('openapi.yaml')
    await tree.write('openapi.yaml', contract.replace('\npaths:\n', `\npaths:\n${PING}`))
    await says('wrote handlers/getPing.ts')
    await answers(501)
    await tree.write('handlers/getPing.ts', HANDLER)
    await answers(204)
    // RFC 9745 and RFC 8594, on errors too, and on nothing else.
    for (const key of [first.key, 'nobody']) {
      const { headers } = await fetch(`${first.url}/public/v1/ping`, {
        headers: { Authorization: `Bearer ${key}` },
      })
      expect([headers.get('deprecation'), headers.get('sunset')]).toEqual([
        '@1767225600',
        'Mon, 01 Jun 2099 00:00:00 GMT',
      ])
    }
    const { headers } = await fetch(`${first.url}/public/v1/tasks`, {
      headers: { Authorization: `Bearer ${first.key}` },
    })
    expect([headers.get('deprecation'), headers.get('sunset')]).toEqual([null, null])

    await tree.write('openapi.yaml', contract.replace('\npaths:\n', '\npaths: [\n'))
    await says('is not YAML')
    await answers(204)
    await tree.write('handlers/getPing.ts', 'export {')
    await says('Waiting for file changes')
    await tree.write('handlers/getPing.ts', HANDLER)
    await answers(204)

    await tree.write('openapi.yaml', contract)
    await says('handlers/getPing.ts serves no operation')
    await answers(404)
    await dev.stop()
    expect(dev.child.exitCode).toBe(0)
    await expect(fetch(first.url)).rejects.toThrow()
  },
  LONG_MS,
)
