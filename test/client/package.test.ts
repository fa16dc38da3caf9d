/** Packs the client, installs it in an empty project, type-checks it and runs it against the
 *  service. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventTypes } from '../../generated/events.ts'
import { newSecret, signingKeys } from '../../webhooks/transport/secret.ts'
import { signatureHeaders } from '../../webhooks/transport/sign.ts'
import { otherNodes } from '../cli/nodes.ts'
import { readTabs } from '../docs/pages.ts'
import { operationIds, startApp } from '../helpers.ts'
import { ROOT } from '../repository.ts'

const TIMEOUT_MS = 120_000
const run = promisify(execFile)

const npm = (args: string[], cwd: string) =>
  run('npm', args, { cwd, env: { ...process.env, npm_config_update_notifier: 'false' } })

let directory: string
/** A copy of the package, so that the build does not change the repository. */
let source: string
/** A project that depends on the package. */
let project: string
let samples: Record<string, string>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'muster-client-'))
  source = join(directory, 'muster/client')
  project = join(directory, 'consumer')
  for (const name of [
    ...['client/src', 'client/package.json', 'client/tsconfig.json', 'client/README.md'],
    ...['client/LICENSE', 'generated', 'package.json'],
  ])
    await cp(join(ROOT, name), join(directory, 'muster', name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(directory, 'muster/node_modules'))
  await mkdir(project)
  samples = await readSamples()
  const { stdout } = await npm(['pack', '--json', '--pack-destination', project], source)
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  const fileUrl = (name: string): string => `file:${join(ROOT, 'node_modules', name)}`
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { '@muster/client': `file:${filename}` },
    // Installs without a registry.
    overrides: {
      'openapi-fetch': fileUrl('openapi-fetch'),
      'openapi-typescript-helpers': fileUrl('openapi-typescript-helpers'),
    },
  }
  await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
  await npm(['install', '--offline', '--no-audit', '--no-fund', '--no-package-lock'], project)
  await mkdir(join(project, 'node_modules/@types'))
  await symlink(join(ROOT, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'))
}, TIMEOUT_MS)
afterAll(() => rm(directory, { recursive: true, force: true }))

/** The output of the compiler for the files. Empty without errors. */
async function compileFiles(files: string[], moduleOptions: string[]): Promise<string> {
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--types', 'node']
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const args = [tsc, ...options, ...moduleOptions, ...files]
  return run(process.execPath, args, { cwd: project }).then(
    () => '',
    ({ stdout }) => stdout,
  )
}

/** The blocks of TypeScript in a page of Markdown. */
async function codeIn(page: string): Promise<string[]> {
  const text = await readFile(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```(?:ts|typescript)\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
}

/** The samples of the operations in the documentation, by the name of their file. */
async function readSamples(): Promise<Record<string, string>> {
  await using app = await startApp()
  const samples = operationIds.map(async (id) => {
    const page = await (await fetch(`${app.url}/docs/operations/${id}`)).text()
    return [`sample-${id}.ts`, readTabs(page, 'request').client ?? '']
  })
  return Object.fromEntries(await Promise.all(samples))
}

const MODULE_OPTIONS = [
  ['--module', 'nodenext'],
  ['--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2022,dom,dom.iterable'],
]

describe('the package', () => {
  it('has the version of the service and of both contracts', async () => {
    const read = async (file: string) => JSON.parse(await readFile(join(ROOT, file), 'utf8'))
    const { version } = await read('client/package.json')
    const service = await read('package.json')
    const openapi = await read('generated/openapi.json')
    const asyncapi = await read('generated/asyncapi.json')
    expect([service.version, openapi.info.version, asyncapi.info.version]).toEqual(
      Array(3).fill(version),
    )
  })

  it('contains only built files', async () => {
    const { stdout } = await npm(['pack', '--json', '--dry-run', '--ignore-scripts'], source)
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
    for (const { path } of files)
      expect(path).toMatch(
        /^(package\.json|README\.md|LICENSE|dist\/(client\/src|generated)\/[a-z]+(\.d\.ts|\.js))$/,
      )
  })

  it.each(MODULE_OPTIONS)(
    'compiles with the documented code, and not with mistakes: %s %s',
    { timeout: TIMEOUT_MS },
    async (...moduleOptions) => {
      const [calls = '', batches = '', lists = '', errors = '', webhooks = '', ...others] =
        await codeIn('client/README.md')
      expect(others).toEqual([])
      const guide = await codeIn('docs/guides/typescript.md')
      expect(guide).toHaveLength(2)
      const files = {
        'shown.ts': [calls, batches, lists, errors].join('\n'),
        'receiver.ts': webhooks,
        'guide-0.ts': guide[0],
        'guide-1.ts': guide[1],
        ...samples,
      }
      const mistakes = [
        `muster.GET('/public/v1/cats')`,
        `muster.GET('/public/v1/tasks/{task}')`,
        `muster.DELETE('/public/v1/tasks')`,
        `muster.POST('/public/v1/tasks')`,
        `muster.POST('/public/v1/tasks', { body: { titel: 'x' } })`,
        `muster.POST('/public/v1/tasks', { body: { title: 1 } })`,
        `muster.records('/public/v1/tasks/{task}')`,
        `muster.records('/public/v1/tasks', { 'filter[status]': ['odd'] })`,
        `muster.records('/public/v1/tasks', { sort: ['odd'] })`,
        `muster.GET('/public/v1/tasks').then(({ data }) => data.meta.totl)`,
        `verifyWebhook('', {}, '').then((e) => e.event_type === 'task.created' && e.data.screening_outcome)`,
        `verifyWebhook('', {}, '').then((event) => event.event_type === 'task.crated')`,
      ]
      const start = [
        "import { createMuster, verifyWebhook } from '@muster/client'",
        "const muster = createMuster({ baseUrl: '', apiKey: '' })",
      ]
      const mistakesFile = [...start, ...mistakes].join('\n')
      for (const [file, code] of Object.entries({ ...files, 'mistakes.ts': mistakesFile }))
        await writeFile(join(project, file), code ?? '')
      const output = await compileFiles([...Object.keys(files), 'mistakes.ts'], moduleOptions)
      // Indented lines continue a message.
      const messages = output.split('\n').filter((line) => /^\S/.test(line))
      expect(messages.filter((message) => !message.startsWith('mistakes.ts('))).toEqual([])
      const lineNumbers = messages.map((message) =>
        Number(/^mistakes\.ts\((\d+),/.exec(message)?.[1]),
      )
      const expected = mistakes.map((_, index) => start.length + index + 1)
      expect(new Set(lineNumbers)).toEqual(new Set(expected))
    },
  )

  it.each([process.execPath, ...otherNodes()])(
    'runs against the service, under %s',
    { timeout: TIMEOUT_MS },
    async (node) => {
      await using app = await startApp()
      const { key } = await app.newAccount()
      const secret = newSecret()
      const { example } = eventTypes['job_application.created']
      const delivery = JSON.stringify(example)
      const headers = signatureHeaders(
        signingKeys(secret),
        example.id,
        Buffer.from(delivery),
        new Date(),
      )
      const program = `
      import { createMuster, MusterError, verifyWebhook } from '@muster/client'
      const { url, key, secret, delivery, headers } = JSON.parse(process.argv[2])
      const muster = createMuster({ baseUrl: url, apiKey: key })
      for (const title of ['One', 'Two', 'Three'])
        await muster.POST('/public/v1/tasks', { body: { title } })
      const titles = []
      for await (const { title } of muster.records('/public/v1/tasks', { 'page[size]': 2 })) titles.push(title)
      const refused = await muster.POST('/public/v1/tasks', { body: {} }).catch((error) => error)
      const { data } = await verifyWebhook(delivery, headers, secret)
      const isMusterError = refused instanceof MusterError
      console.log(JSON.stringify({ titles, refused: [isMusterError, refused.errors], data }))
    `
      await writeFile(join(project, 'program.js'), program)
      const { stdout } = await run(
        node,
        ['program.js', JSON.stringify({ url: app.url, key, secret, delivery, headers })],
        { cwd: project },
      )
      expect(JSON.parse(stdout)).toEqual({
        titles: ['One', 'Two', 'Three'],
        refused: [true, { title: ['is required.'] }],
        data: example.data,
      })
    },
  )
})
