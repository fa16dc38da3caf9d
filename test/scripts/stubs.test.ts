/** The stubs that `muster generate` writes for new operations, their way to working code, and
 *  removed operations. */
import { expect, test } from 'vitest'
import { until } from '../helpers.ts'
import { replaceOnce, withPing } from '../repository.ts'
import { copyOfRepository, START_LIMIT_MS, serveTree, type Tree } from './tree.ts'
import { addVenues, withBookings, withMoreFields } from './venues.ts'

const TIMEOUT_MS = 600_000

/** The paths of the code that `generate --resource` writes. */
const RESOURCE_CODE = ['handlers', 'records', 'test/handlers', 'test/resources.ts']
const VENUE_OPERATIONS = ['listVenues', 'createVenue', 'getVenue', 'updateVenue', 'deleteVenue']
const VENUE_STUBS = VENUE_OPERATIONS.flatMap((id) => [
  `handlers/${id}.ts`,
  `test/handlers/${id}.test.ts`,
])

test('docs/new-resource.md: each step works as described', { timeout: TIMEOUT_MS }, async () => {
  await using tree = await copyOfRepository()
  await addVenuesAndBookings(tree)
  await writeStubs(tree)
  await serveStubs(tree)
  await writeResource(tree, 'venues', {
    replacedTest: 'test/handlers/createVenue.test.ts',
    // The contract does not have all rules of a resource.
    leftForYou: ['records/venues.ts:', 'Run'],
  })
  await writeResource(tree, 'bookings', {
    replacedTest: 'test/handlers/createBooking.test.ts',
    leftForYou: ['openapi.yaml:', 'records/bookings.ts:', 'Run'],
  })
  expect(await tree.muster(['generate', '--check'])).toEqual({
    status: 0,
    output: 'generated/ is fresh.\n',
  })
  await expectCorrectCode(tree, RESOURCE_CODE)
  await testResources(tree)
  const { running } = await serveTree(tree, { NODE_ENV: 'production' })
  await running.stop()
})

async function addVenuesAndBookings(tree: Tree): Promise<void> {
  await addVenues(tree)
  await tree.write('openapi.yaml', withMoreFields(await tree.read('openapi.yaml')))
  for (const file of ['openapi.yaml', 'asyncapi.yaml'])
    await tree.write(file, await withBookings(file, await tree.read(file)))
}

async function writeStubs(tree: Tree): Promise<void> {
  expect(await tree.muster(['generate', '--check'])).toMatchObject({
    status: 1,
    output: expect.stringContaining('handlers/createVenue.ts is missing\n'),
  })
  const { status, output } = await tree.muster(['generate'])
  expect(status).toBe(0)
  for (const file of VENUE_STUBS) expect(output).toContain(`wrote ${file}\n`)
  expect(await tree.muster(['lint'])).toEqual({
    status: 0,
    output: 'openapi.yaml and asyncapi.yaml have no problems.\n',
  })
  await expectCorrectCode(tree, VENUE_STUBS)
}

async function serveStubs(tree: Tree): Promise<void> {
  const service = await serveTree(tree)
  const create = (body: object, key = service.key) =>
    call({ url: service.url, key }, 'POST', '/venues', body)
  expect(await create({ name: 'Hall' })).toEqual({
    status: 501,
    body: { message: 'createVenue is not implemented yet.' },
  })
  expect(await create({ capacity: 0 })).toMatchObject({
    status: 422,
    body: { errors: { name: ['is required.'], capacity: [expect.any(String)] } },
  })
  expect((await create({ name: 'Hall' }, 'nobody')).status).toBe(401)
  await service.running.stop()

  const production = { PORT: '0', NODE_ENV: 'production' }
  expect(await tree.muster(['serve'], production)).toMatchObject({
    status: 1,
    output: expect.stringContaining(VENUE_OPERATIONS.join(', ')),
  })
}

/** `leftForYou`: the first word of each task that is left to the developer. */
async function writeResource(
  tree: Tree,
  slug: string,
  { replacedTest, leftForYou }: { replacedTest: string; leftForYou: string[] },
): Promise<void> {
  const { status, output } = await tree.muster(['generate', '--resource', slug])
  expect(status, output).toBe(0)
  expect(output).toContain(`removed ${replacedTest}\n`)
  expect(new Set(output.match(/(?<=^left for you: )\S+/gm))).toEqual(new Set(leftForYou))
}

/** TypeScript finds no error, and Biome finds none in these paths. */
async function expectCorrectCode(tree: Tree, paths: string[]): Promise<void> {
  expect(await tree.run('node_modules/typescript/bin/tsc', [])).toEqual({ status: 0, output: '' })
  const biome = ['check', '--vcs-enabled=false', ...paths]
  expect(await tree.run('node_modules/@biomejs/biome/bin/biome', biome)).toMatchObject({
    status: 0,
  })
}

async function testResources(tree: Tree): Promise<void> {
  const vitest = (...args: string[]) => tree.run('node_modules/vitest/vitest.mjs', ['run', ...args])
  expect(
    await vitest('--project', 'sqlite', 'test/records/schema.test.ts', '--update'),
  ).toMatchObject({ status: 0 })
  const { status, output } = await vitest(
    ...['--project', 'sqlite', '--project', 'plain'],
    'test/handlers/venues.test.ts',
    'test/handlers/bookings.test.ts',
    'test/handlers/isolation.test.ts',
    'test/handlers/lists.test.ts',
    'test/contract/events.test.ts',
    'test/records/removal-rules.test.ts',
    'test/records/account-keys.test.ts',
  )
  expect(status, output).toBe(0)
}

test('generate refuses an operation without an API key, and names its line', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  const id = 'operationId: listEventTypes\n'
  await tree.replace('openapi.yaml', id, `${id}      security: []\n`)
  expect(await tree.muster(['generate'])).toEqual({
    status: 1,
    output: expect.stringMatching(
      /^openapi\.yaml:\d+ listEventTypes must have security: \[\{ apiKey: \[\] \}\]/,
    ),
  })
})

test('generate lists the files of a removed operation, and leaves them', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  const openapi = await tree.read('openapi.yaml')
  const [, operation = ''] =
    /\n( {4}delete:\n {6}operationId: deleteJob\n[\s\S]*?)(?=\n {2}\/)/.exec(openapi) ?? []
  await tree.replace('openapi.yaml', operation, '')
  await tree.replace(
    'openapi.yaml',
    'x-emits: [job.updated]',
    'x-emits: [job.updated, job.deleted]',
  )
  await tree.replace(
    'openapi.yaml',
    '  schemas:\n',
    '  schemas:\n    Unused:\n      type: object\n      example: {}\n',
  )
  await tree.write('test/handlers/deleteJob.test.ts', '')
  await tree.write('scripts/contract/hooks.ts', "export const id = 'deleteJob'\n")

  const generated = await tree.muster(['generate'])
  expect(generated.status).toBe(0)
  const check = await tree.muster(['generate', '--check'])
  expect(check.status).toBe(1)
  for (const { output } of [generated, check])
    for (const orphan of [
      'handlers/deleteJob.ts serves no operation: remove it, or rename it with its operation',
      'test/handlers/deleteJob.test.ts tests no operation: remove it, or rename it with its operation',
      'scripts/contract/hooks.ts:1 names deleteJob, which is no operation: remove it, or rename it',
      'nothing refers to components.schemas.Unused: remove it, or refer to it',
    ])
      expect(output).toContain(orphan)
  expect(await tree.exists('handlers/deleteJob.ts')).toBe(true)
  expect(await tree.exists('test/handlers/deleteJob.test.ts')).toBe(true)
})

test('generate never overwrites an existing handler or test', { timeout: TIMEOUT_MS }, async () => {
  await using tree = await copyOfRepository()
  await tree.write('test/handlers/getJob.test.ts', 'mine')
  await tree.remove('handlers/getJob.ts')
  await tree.write('handlers/getTask.ts', 'mine')
  const { output } = await tree.muster(['generate'])
  expect(output).toContain('wrote handlers/getJob.ts')
  expect(output).not.toContain('getJob.test.ts')
  expect(await tree.read('test/handlers/getJob.test.ts')).toBe('mine')
  expect(await tree.read('handlers/getTask.ts')).toBe('mine')
})

const PING_ID = 'operationId: getPing\n'
const DEPRECATED_PING = `${PING_ID}      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2099-06-01'
`
const HANDLER = 'export async function getPing(): Promise<void> {}\n'

test('muster dev follows changes of the contract and the code, and survives errors in both', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  const { running, url, key } = await serveTree(tree)
  await running.stop()
  const { port } = new URL(url)
  const dev = tree.start(['dev'], { PORT: port, RATE_LIMIT_PER_MINUTE: '1000000' })
  const untilPingReturns = (status: number) =>
    until(
      `GET /ping returns ${status}: ${dev.output()}`,
      async () =>
        (await call({ url, key }, 'GET', '/ping').catch(() => undefined))?.status === status,
      START_LIMIT_MS,
    )
  const untilDevPrints = (text: string) =>
    until(`dev prints ${text}`, () => dev.output().includes(text), START_LIMIT_MS)

  await untilPingReturns(404)
  const openapi = await tree.read('openapi.yaml')
  await tree.write('openapi.yaml', replaceOnce(withPing(openapi), PING_ID, DEPRECATED_PING))
  await untilDevPrints('wrote handlers/getPing.ts')
  await untilPingReturns(501)
  await tree.write('handlers/getPing.ts', HANDLER)
  await untilPingReturns(204)
  await expectDeprecation(url, key)

  await tree.write('openapi.yaml', replaceOnce(openapi, '\npaths:\n', '\npaths: [\n'))
  await untilDevPrints('is not YAML')
  await untilPingReturns(204)
  await tree.write('handlers/getPing.ts', 'export {')
  await untilDevPrints('Waiting for file changes')
  await tree.write('handlers/getPing.ts', HANDLER)
  await untilPingReturns(204)

  await tree.write('openapi.yaml', openapi)
  await untilDevPrints('handlers/getPing.ts serves no operation')
  await untilPingReturns(404)
  await dev.stop()
  expect(dev.child.exitCode).toBe(0)
  await expect(fetch(url)).rejects.toThrow()
})

/** RFC 9745 and RFC 8594: the headers are in each response of the deprecated `getPing`, errors
 *  included, and in no other response. */
async function expectDeprecation(url: string, key: string): Promise<void> {
  const datesOf = async (path: string, token: string) => {
    const { headers } = await fetch(`${url}/public/v1${path}`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    return [headers.get('deprecation'), headers.get('sunset')]
  }
  const expected = ['@1767225600', 'Mon, 01 Jun 2099 00:00:00 GMT']
  expect(await datesOf('/ping', key)).toEqual(expected)
  expect(await datesOf('/ping', 'nobody')).toEqual(expected)
  expect(await datesOf('/tasks', key)).toEqual([null, null])
}

async function call(
  { url, key }: { url: string; key: string },
  method: string,
  path: string,
  body?: object,
) {
  const response = await fetch(`${url}/public/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body && { 'Content-Type': 'application/json' }),
    },
    body: body && JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}
