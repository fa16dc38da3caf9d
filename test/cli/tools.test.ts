/** Packs @muster/tools, installs it in an empty folder with the packages that it declares, and runs
 *  its commands against the service. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newSecret } from '../../webhooks/transport/secret.ts'
import { type AppOptions, startApp, until } from '../helpers.ts'
import { startReceiver } from '../receiver.ts'
import { ROOT } from '../repository.ts'
import { type Muster, newMuster, waitForOutput } from './muster.ts'

const run = promisify(execFile)
const SOURCE = join(ROOT, 'cli/tools')

let folder: string
/** The executable of the installed package. */
let bin: string
let muster: Muster

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'muster-tools-'))
  const source = join(folder, 'source')
  await mkdir(source)
  await run(process.execPath, [join(SOURCE, 'build.js'), join(source, 'dist')])
  for (const name of ['package.json', 'README.md', 'LICENSE'])
    await cp(join(SOURCE, name), join(source, name))
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts'], { cwd: source })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  const modules = join(folder, 'consumer/node_modules')
  const installed = join(modules, '@muster/tools')
  await mkdir(installed, { recursive: true })
  const tarball = join(source, filename)
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
  const { bin: bins, dependencies } = await readManifest(installed)
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  }
  bin = join(installed, bins.muster)
  muster = await newMuster()
})
afterAll(async () => {
  await muster[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

interface Manifest {
  version: string
  bin: { muster: string }
  dependencies: Record<string, string>
}

async function readManifest(directory: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'))
}

/** A service, and the environment of commands that call it. */
async function startService(options: AppOptions = {}) {
  const environment = { WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8' }
  const app = await startApp({ ...options, environment })
  const { key } = await app.newAccount()
  return Object.assign(app, { environment: { MUSTER_URL: app.url, MUSTER_API_KEY: key } })
}

describe('@muster/tools', () => {
  it('has the version and the packages of the service', async () => {
    const service = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const { version, dependencies } = await readManifest(SOURCE)
    const known = { ...service.devDependencies, ...service.dependencies }
    expect(version).toBe(service.version)
    for (const [name, range] of Object.entries(dependencies)) expect(known[name], name).toBe(range)
  })

  it('has no source and no part that needs a database', async () => {
    const installed = dirname(dirname(dirname(dirname(bin))))
    const files = await readdir(installed, { recursive: true })
    expect(
      files.filter((file) => /^dist\/(?!docs\/).*\.ts$|migrations|knex|pg-boss/.test(file)),
    ).toEqual([])
  })

  it('runs the commands that need no service', async () => {
    const site = join(folder, 'site')
    const docs = ['docs', '--out', site, '--server-url', 'https://api.example.com']
    expect(await muster.run(docs, { bin })).toMatchObject({ status: 0, stderr: '' })
    expect(await readdir(site)).toContain('index.html')
    const earlier = ['diff', join(ROOT, 'docs/released'), '--json']
    const { status, stdout } = await muster.run(earlier, { bin })
    expect([status, JSON.parse(stdout).from]).toEqual([0, '1.1.0'])
    const completed = await muster.run(['complete', '--', 'trigger', 'task.comp'], { bin })
    expect(completed.stdout).toBe('task.completed\n')
  })

  it('mock, check-receiver and contract run', async () => {
    const mock = muster.start(['mock', '--port', '0'], { bin })
    const [, url = ''] = await waitForOutput(mock, /listens at (\S+)/)
    expect(
      (await fetch(`${url}/public/v1/me`, { headers: { Authorization: 'Bearer x' } })).status,
    ).toBe(200)
    mock.process.kill('SIGTERM')
    const rules = await muster.run(['check-receiver', '--help'], { bin })
    expect(rules.stdout).toContain('wrong-signature')
    await using service = await startService()
    const contract = ['contract', '--url', service.url, '--key', service.environment.MUSTER_API_KEY]
    const { stdout } = await muster.run([...contract, '--only', 'getMe'], { bin })
    expect(stdout).toContain('the contract holds')
  })

  it('contract and docs name the options that they need without a service', async () => {
    const contract = await muster.run(['contract'], { bin })
    expect([contract.status, contract.stderr]).toEqual([
      2,
      expect.stringContaining("'--url <url>'"),
    ])
    const docs = await muster.run(['docs', '--out', folder], { bin })
    expect([docs.status, docs.stderr]).toEqual([2, expect.stringContaining('--server-url')])
  })

  it('trigger causes the event and deletes its records; events list and show it', async () => {
    await using service = await startService()
    const options = { bin, environment: service.environment }
    const types = ['job_application.status_changed', 'task.completed', 'payment.updated']
    for (const type of types) {
      const { resource_id } = await muster.json(['trigger', type], options)
      const events = await muster.json(['events', 'list', '--resource', resource_id], options)
      expect(events.map(({ event_type }: { event_type: string }) => event_type)).toContain(type)
      const { id } = events[0]
      expect(await muster.json(['events', 'show', id], options)).toMatchObject({ id })
    }
    const participants = await fetch(`${service.url}/public/v1/participants`, {
      headers: { Authorization: `Bearer ${service.environment.MUSTER_API_KEY}` },
    })
    expect(await participants.json()).toMatchObject({ data: [] })
  })

  it('listen follows the events of a service and forwards signed deliveries', async () => {
    await using service = await startService()
    await using receiver = await startReceiver()
    const secret = newSecret()
    const options = { bin, environment: service.environment }
    await muster.json(['trigger', 'task.created'], options)
    const args = ['listen', '--forward', receiver.url, '--secret', secret]
    const listener = muster.start(args, options)
    await waitForOutput(listener, /Following the events/)
    await muster.json(['trigger', 'job.updated'], options)
    await waitForOutput(listener, /job\.deleted[\s\S]*responded 2/)
    listener.process.kill('SIGTERM')
    const { status, stdout } = await listener.ended
    expect(status).toBe(0)
    expect(stdout.match(/\w+\.\w+(?=\n {2}Delivery)/g)).toEqual([
      'job.created',
      'job.updated',
      'job.deleted',
    ])
    expect(stdout).not.toContain('task.created')
  })

  it('webhooks, deliveries and events resend use the API', async () => {
    await using service = await startService({ role: 'all' })
    await using receiver = await startReceiver()
    const options = { bin, environment: service.environment }
    const create = ['webhooks', 'create', '--url', receiver.url, '--events', 'job.created']
    const { id, secret } = await muster.json(create, options)
    expect(secret).toMatch(/^whsec_/)
    const { resource_id } = await muster.json(['trigger', 'job.created'], options)
    await until('the delivery arrived', async () => receiver.requests.length === 1)
    const list = ['deliveries', 'list', '--state', 'delivered']
    await until('it is delivered', async () => (await muster.json(list, options)).length === 1)
    const [event] = await muster.json(
      ['events', 'list', '--resource', resource_id, '--type', 'job.created'],
      options,
    )
    expect((await muster.json(['events', 'resend', event.id], options)).deliveries).toHaveLength(1)
    await until('it arrived again', async () => receiver.requests.length === 2)
    const [{ id: delivery }] = await muster.json(list, options)
    const retried = await muster.run(['deliveries', 'retry', delivery], options)
    expect([retried.status, retried.stderr]).toEqual([1, expect.stringContaining('returned 409')])
    await muster.json(['webhooks', 'test', id], options)
    await until('the test arrived', async () => receiver.requests.length === 3)
    await muster.json(['webhooks', 'delete', id], options)
    expect(await muster.json(['webhooks', 'list'], options)).toEqual([])
  })

  it('says what is wrong with the environment, the key and the URL', async () => {
    const list = (environment: Record<string, string>) =>
      muster.run(['events', 'list'], { bin, environment })
    expect(await list({})).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('MUSTER_URL'),
    })
    const unreachable = { MUSTER_URL: 'http://127.0.0.1:9', MUSTER_KEY: 'mst_x' }
    expect((await list(unreachable)).stderr).toContain('http://127.0.0.1:9 cannot be reached')
    await using service = await startService()
    const refused = await list({ ...service.environment, MUSTER_API_KEY: 'mst_x' })
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('returned 401') })
  })
})
