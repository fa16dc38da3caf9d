/** `npm run test:generators`: generates, compiles and runs clients in several languages. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import { parseList } from '../../cli/shell.ts'
import { assertDelivery, assertReport } from './expected.ts'
import {
  type Generator,
  generators,
  type Language,
  type LanguageName,
  languages,
} from './generators.ts'
import { type Service, startService } from './service.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const GUIDE = fileURLToPath(new URL('../../docs/guides/generated-clients.md', import.meta.url))
const CONTRACTS = ['openapi.yaml', 'openapi.json', 'asyncapi.yaml']
const COMMAND_TIMEOUT_MS = 10 * 60_000

interface Options {
  only: string[]
  require: LanguageName[]
  folder?: string
}

const names = generators.map(({ name }) => name)
const languageNames = Object.keys(languages) as LanguageName[]
const options: Options = new Command('npm run test:generators --')
  .description('Generates, compiles and runs clients against the real service.')
  .addOption(
    new Option('--only <generators>', 'comma-separated names')
      .argParser(parseList(...names))
      .default(names, 'all'),
  )
  .addOption(
    new Option('--require <languages>', 'fail if a toolchain of these languages is missing')
      .argParser(parseList(...languageNames))
      .default([], 'none: skip the language'),
  )
  .option('--folder <path>', 'keep the generated files in this folder (default: a temporary one)')
  .parse()
  .opts()

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const guide = await readFile(GUIDE, 'utf8')
const installed = new Set<LanguageName>()
let passed = 0
let failed = 0
let skipped = 0

const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'muster-generators-')))
try {
  await using service = await startService()
  await copySources(service)
  for (const generator of generators)
    if (options.only.includes(generator.name)) await test(generator, service)
} finally {
  if (!options.folder) await rm(folder, { recursive: true, force: true })
}
console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`)
if (failed > 0) process.exitCode = 1

/** Copies the programs to the folder, with the contracts that a developer downloads from the
 *  service and the body of a delivery. */
async function copySources(service: Service): Promise<void> {
  for (const language of languageNames)
    await cp(join(HERE, language), join(folder, language), { recursive: true })
  await mkdir(join(folder, 'contracts'), { recursive: true })
  for (const name of CONTRACTS) {
    const response = await fetch(`${service.url}/${name}`)
    await writeFile(join(folder, 'contracts', name), await response.text())
  }
  await writeFile(join(folder, 'contracts', 'delivery.json'), await service.receiveDelivery())
}

async function test(generator: Generator, service: Service): Promise<void> {
  const { name, language } = generator
  console.log(`\n${name} (${language})`)
  if (!(await checkToolchain(language))) return
  try {
    const { install }: Language = languages[language]
    if (install && !installed.has(language)) await step(language, 'install', install)
    installed.add(language)
    await step(language, 'generate', generator.generate)
    await step(language, 'compile', generator.compile)
    const output = await step(language, 'run', generator.run, {
      MUSTER_URL: service.url,
      MUSTER_PROXY_URL: service.proxyUrl,
      MUSTER_API_KEY: await service.newKey(name),
    })
    // Maven prints escape sequences around the report.
    const report = JSON.parse(/\{.*\}/.exec(output)?.[0] ?? '')
    if (generator.newStatus) assertReport(report, generator, guide)
    else assertDelivery(report)
    passed++
  } catch (error) {
    failed++
    console.log(error instanceof Error ? error.message : error)
  }
}

/** Returns false if a program of the toolchain is missing. Then also counts the generator: as
 *  failed if its language is required, else as skipped. */
async function checkToolchain(language: LanguageName): Promise<boolean> {
  const { probe } = languages[language]
  const isInstalled = await execute(language, probe).then(
    () => true,
    () => false,
  )
  if (isInstalled) return true
  const isRequired = options.require.includes(language)
  if (isRequired) failed++
  else skipped++
  console.log(`  ${isRequired ? 'failed' : 'skipped'}: "${probe}" fails`)
  return false
}

/** Runs a command, prints how long it took, and returns its standard output. */
async function step(
  language: LanguageName,
  name: string,
  command: string,
  environment: Record<string, string> = {},
): Promise<string> {
  const started = performance.now()
  const output = await execute(language, command, environment)
  const seconds = (performance.now() - started) / 1000
  console.log(`  ${name.padEnd(10)}${seconds.toFixed(1).padStart(6)} s`)
  return output
}

/** Runs a shell command in the folder of the language. Returns its standard output. */
async function execute(
  language: LanguageName,
  command: string,
  environment: Record<string, string> = {},
): Promise<string> {
  const child = spawn('sh', ['-c', command], {
    cwd: join(folder, language),
    env: { ...process.env, ...environment },
    timeout: COMMAND_TIMEOUT_MS,
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text
    })
  const [status] = await once(child, 'close')
  if (status === 0) return output.stdout
  throw new Error(
    `${command} ended with ${status}:\n${(output.stdout + output.stderr).slice(-8000)}`,
  )
}
